"""Recordings of what a console saw of its regions, and playing them back in the same views."""
