"""The line and the keys of a playback, on every screen."""
