"""Watches a chain from beside: finality for the figures of a report, and what happened in each block."""

import statistics
import threading
import time
from dataclasses import dataclass

from .errors import DevnetError, RpcError

# Between two looks that show nothing new.
PAUSE_SECONDS = 0.25


class _Watch:
    """Looks every few seconds, in a thread of its own."""

    def __init__(self, seconds):
        self.seconds = seconds
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._end.wait(self.seconds):
            self.look()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


class FinalityWatch(_Watch):
    """Samples how far the last final block is behind the best one."""

    def __init__(self, chain, seconds=1.0):
        super().__init__(seconds)
        self.chain, self.samples = chain, []

    def look(self):
        lag = self.chain.finality_lag()
        if lag is not None:
            self.samples.append(lag)

    def lags(self):
        """Median and maximum, in blocks."""
        samples = list(self.samples) or [0]
        return {"median": statistics.median_low(samples), "max": max(samples), "samples": len(samples)}


class SlashWatch(_Watch):
    """Takes down the slashes that wait to be carried out, from number `first` on: some are carried out before their
    task is settled."""

    def __init__(self, chain, first, console, seconds=1.0):
        super().__init__(seconds)
        self.chain, self.first, self.console = chain, first, console
        # What they were, by their numbers.
        self.seen = {}
        # Held by whoever looks.
        self._looking = threading.Lock()

    def look(self):
        with self._looking:
            try:
                waiting = self.chain.slashes()
            except RpcError:
                return
            for number, slash in sorted(waiting.items()):
                if number >= self.first and number not in self.seen:
                    self.seen[number] = slash
                    self.console.step(f"slash {number} of {slash['offender']} for {slash['kind']} waits for a veto")

    def are_carried_out(self):
        """Whether there were any, and none waits."""
        self.look()
        return bool(self.seen) and not [number for number in self.chain.slashes() if number >= self.first]


@dataclass(frozen=True)
class Block:
    """A final block."""

    number: int
    # By its author's clock.
    time_ms: int
    # What windows of tasks are counted in.
    clock: int
    # (pallet, name, fields)
    events: list


class ChainLog(_Watch):
    """Keeps what happened in every final block since it began: nodes forget the state of old blocks."""

    PALLETS = ("TaskAuction", "Results", "Disputes", "TrustLock", "Billing", "Channels")
    # A whole long stall at a time would keep us from ending.
    AT_ONCE = 50

    def __init__(self, chains, seconds=1.0):
        super().__init__(seconds)
        # Any of them will do: one may be paused or restarted.
        self.chains, self.blocks = list(chains), []
        self.begun = self.chains[0].finalized_number()
        # Held by whoever reads: its own thread, and who catches up.
        self._looking = threading.Lock()
        # What the last node said that told nothing.
        self.trouble = None

    def look(self):
        with self._looking:
            for _ in range(len(self.chains)):
                try:
                    self._read(self.chains[0])
                    return
                # What a node that is on its way up or down says need not make sense.
                except (RpcError, ValueError, KeyError, TypeError) as error:
                    self.trouble = f"{type(error).__name__}: {error}"
                # The next time another one is asked first.
                self.chains.append(self.chains.pop(0))

    def _read(self, chain):
        final = chain.finalized_number()
        first = self.seen() + 1
        for number in range(first, min(final, first + self.AT_ONCE) + 1):
            block = chain.block_hash(number)
            events = [event for event in chain.events(block) if event[0] in self.PALLETS]
            self.blocks.append(Block(number, chain.timestamp_ms(number), chain.clock(block), events))

    def seen(self):
        """The last block that it knows."""
        return self.blocks[-1].number if self.blocks else self.begun

    def catch_up(self, number, seconds=60):
        """Waits until it knows a block."""
        deadline = time.monotonic() + seconds
        while self.seen() < number:
            if time.monotonic() > deadline:
                said = self.trouble or "nothing that would explain it"
                raise DevnetError(f"no node tells what happened in block {self.seen() + 1}; the last one said: {said}")
            before = self.seen()
            self.look()
            if self.seen() == before:
                time.sleep(PAUSE_SECONDS)

    def events(self):
        """What happened, as (block, pallet, name, fields)."""
        return [(block, *event) for block in list(self.blocks) for event in block.events]
