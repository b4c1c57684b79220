"""Confirmations before an action: their content is computed from the views, and one dialog shows them all."""
