"""What is to come in the regions, judged from their views: what needs a person, and when a backfill ends."""
