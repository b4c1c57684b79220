"""Losses of a plan (history, values, the way back), and their acceptance by the operator."""
