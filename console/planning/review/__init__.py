"""What a plan says of its region beyond the steps: what it rests on, what was altered by hand, who will notice, what it costs."""
