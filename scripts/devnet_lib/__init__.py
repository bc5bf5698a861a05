"""The development network of `scripts/devnet` and of the end-to-end tests. Python's standard library only."""
