"""The panes of one region: pure drawings, and the widgets that hold them."""
