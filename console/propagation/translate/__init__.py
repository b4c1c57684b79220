"""What a migration has left to do in a store, as values; the dialects make them."""
