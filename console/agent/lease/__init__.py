"""The region's lock on a store without file locks: a lease with an epoch, and logs that each new holder takes over (docs/stores.md)."""
