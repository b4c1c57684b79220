"""Compiled expectations: conditions over a table's columns that an agent evaluates along with its writes."""
