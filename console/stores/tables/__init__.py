"""Descriptions of tables by each kind of server."""
