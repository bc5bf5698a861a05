"""Waiting for something to become true, never longer than told."""

import time

from .errors import DevnetError

POLL_SECONDS = 0.25


def until(what, probe, seconds, watch=None):
    """Calls `probe` until it returns something true, and returns that.

    `watch` is called in between and raises when waiting has become pointless.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if watch:
            watch()
        if time.monotonic() >= deadline:
            raise DevnetError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(POLL_SECONDS)
