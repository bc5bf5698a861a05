"""The measurements of `scripts/bench`. Python's standard library only; what is in `peers` runs in programs of its own."""
