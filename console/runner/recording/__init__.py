"""Recordings of everything that a console received from its regions, and their playback in the same views."""
