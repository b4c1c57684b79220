"""Expectations of tables, checked where their rows are written and at the gate."""
