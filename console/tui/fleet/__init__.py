"""Drawings over all regions: banner, needs, events, graph."""
