"""What one region looks like: pure drawings, and the widgets that hold them."""
