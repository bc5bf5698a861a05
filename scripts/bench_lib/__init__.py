"""The measurements of `scripts/bench`. Python's standard library only; what is in `peers` runs apart from it."""
