"""Watches finality from beside, for the figures of the report."""

import statistics
import threading


class FinalityWatch:
    """Samples how far the last final block is behind the best one."""

    def __init__(self, chain, seconds=1.0):
        self.chain, self.seconds = chain, seconds
        self.samples = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._end.wait(self.seconds):
            lag = self.chain.finality_lag()
            if lag is not None:
                self.samples.append(lag)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def lags(self):
        """Median and maximum, in blocks."""
        samples = list(self.samples) or [0]
        return {"median": statistics.median_low(samples), "max": max(samples), "samples": len(samples)}
