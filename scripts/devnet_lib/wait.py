"""Waiting for something to become true, never longer than told."""

import time

from .errors import DevnetError, RpcError

POLL_SECONDS = 0.25
# What one look counts for at most: while a machine is paused nobody on it comes further.
LOOK_SECONDS_MAX = 30.0


class Limit:
    """Time that is left, for whoever looks again and again."""

    def __init__(self, seconds):
        self.left, self._seen = seconds, time.monotonic()

    def is_over(self):
        """Whether nothing is left, by now."""
        now = time.monotonic()
        self.left -= min(now - self._seen, LOOK_SECONDS_MAX)
        self._seen = now
        return self.left <= 0


def until(what, probe, seconds, watch=None):
    """Calls `probe` until it returns something true, and returns that. A node that does not answer has not said no.

    `watch` is called in between and raises when waiting has become pointless.
    """
    limit = Limit(seconds)
    while True:
        try:
            found, trouble = probe(), ""
        except RpcError as error:
            found, trouble = None, f"; the last answer: {error}"
        if found:
            return found
        if watch:
            watch()
        if limit.is_over():
            raise DevnetError(f"waited {seconds:.0f} s in vain for {what}{trouble}")
        time.sleep(POLL_SECONDS)
