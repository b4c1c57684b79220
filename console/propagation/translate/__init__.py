"""The remaining work of a migration in a store, as values; the dialects produce them."""
