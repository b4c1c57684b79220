"""Rows of tables, whole or in part, as Delta itself reads them."""
