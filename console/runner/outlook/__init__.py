"""The outlook of the regions, judged from their views: needs of a person's attention, and the end of backfills."""
