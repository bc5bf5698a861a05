"""The programs that a bench measures."""

import os

from devnet_lib.folders import built

from .errors import BenchError


def program(bench, *path):
    """A program that `scripts/bench` builds for a bench."""
    found = built().joinpath(*path)
    if not os.access(found, os.X_OK):
        raise BenchError(f"there is no {found}: run scripts/bench {bench} without --no-build")
    return found
