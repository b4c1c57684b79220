"""The proof that a rollback would work now: the previous release is fed, its files exist, its endpoints answer."""
