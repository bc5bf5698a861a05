"""Watches a chain from beside: finality for the figures of a report, and what happened in each block."""

import statistics
import threading
import time
from dataclasses import dataclass

from . import wait
from .errors import DevnetError, RpcError

# Between two looks that show nothing new.
PAUSE_SECONDS = 0.25
# Until a node that shares its machine with many others has shown what there is.
CATCH_UP_SECONDS = 180


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
    """Takes down the slashes of which the blocks of a log tell: what they take at least, and which are carried out.

    By events, and not by what waits for a veto at the moment: finality may leap over all of that time.
    """

    def __init__(self, log, console, seconds=1.0):
        super().__init__(seconds)
        self.log, self.console, self.at = log, console, 0
        # What they are, by their numbers, and those that wait to be carried out.
        self.seen, self.waiting = {}, set()
        # Held by whoever looks.
        self._looking = threading.Lock()

    def look(self):
        with self._looking:
            blocks = self.log.blocks
            while self.at < len(blocks):
                for pallet, name, fields in blocks[self.at].events:
                    if pallet == "TrustLock" and "slash" in fields:
                        self._note(name, fields)
                self.at += 1

    def _note(self, name, fields):
        number = fields["slash"]
        if name == "SlashDeferred":
            slash = self.seen[number] = {key: fields[key] for key in ("offender", "kind", "lock", "part")}
            self.waiting.add(number)
            self.console.step(f"slash {number} of {slash['offender']} for {slash['kind']} waits for a veto")
        elif name == "SlashRaised" and number in self.seen:
            self.seen[number] |= {key: fields[key] for key in ("lock", "part")}
        elif name in ("SlashCarriedOut", "SlashCancelled"):
            self.waiting.discard(number)

    def are_carried_out(self):
        """Whether there were any, and none waits."""
        self.look()
        return bool(self.seen) and not self.waiting


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
        # The last block that it is to know, once that is decided.
        self.last = None
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
        final = final if self.last is None else min(final, self.last)
        first = self.seen() + 1
        for number in range(first, min(final, first + self.AT_ONCE) + 1):
            block = chain.block_hash(number)
            events = [event for event in chain.events(block) if event[0] in self.PALLETS]
            self.blocks.append(Block(number, chain.timestamp_ms(number), chain.clock(block), events))

    def seen(self):
        """The last block that it knows."""
        return self.blocks[-1].number if self.blocks else self.begun

    def end_at_final(self, chain):
        """Ends with the last final block, and returns its hash: what a node says of that is what the log tells."""
        with self._looking:
            self.last = max(self.seen(), chain.finalized_number())
        self.catch_up(self.last)
        is_final = lambda: chain.finalized_number() >= self.last  # noqa: E731
        wait.until(f"block {self.last} to be final at {chain.rpc.url}", is_final, CATCH_UP_SECONDS)
        return chain.block_hash(self.last)

    def catch_up(self, number, seconds=CATCH_UP_SECONDS):
        """Waits until it knows a block."""
        limit = wait.Limit(seconds)
        while self.seen() < number:
            if limit.is_over():
                said = self.trouble or "nothing that would explain it"
                raise DevnetError(f"no node tells what happened in block {self.seen() + 1}; the last one said: {said}")
            before = self.seen()
            self.look()
            if self.seen() == before:
                time.sleep(PAUSE_SECONDS)

    def events(self):
        """What happened, as (block, pallet, name, fields)."""
        return [(block, *event) for block in list(self.blocks) for event in block.events]
