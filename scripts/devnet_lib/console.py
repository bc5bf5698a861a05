"""What a person sees: steps with their seconds, and lines of what runs underneath."""

import sys
import threading
import time

_LOCK = threading.Lock()


class Console:
    """Prints steps as they happen, each with the seconds since the start."""

    def __init__(self, stream=sys.stdout):
        self.stream = stream
        self.started = time.monotonic()

    def _line(self, text):
        with _LOCK:
            print(text, file=self.stream, flush=True)

    def step(self, text):
        """The next thing that happens."""
        self._line(f"[{time.monotonic() - self.started:6.1f} s] {text}")

    def detail(self, text):
        """Something about the step that is going on."""
        self._line(f"             {text}")

    def title(self, text):
        """A heading."""
        self._line(f"\n{text}\n{'─' * len(text)}")

    def table(self, rows):
        """Rows of (name, value), aligned."""
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            self._line(f"  {name:<{width}}  {value}")

    def text(self, text=""):
        """A line as it is."""
        self._line(text)


class Silent(Console):
    """Says nothing: for tests."""

    def _line(self, text):
        pass
