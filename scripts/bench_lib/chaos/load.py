"""Continuous load: clients that post small tasks, each of them one after the other, with a process for each."""

import re
import time

from devnet_lib.devnet import GENERATOR, MODEL, TEXT

from .net import CLIENT_PORT

ENDED = {"TaskSettled": "Settled", "TaskFailed": "Failed", "TaskCancelled": "Cancelled", "DrawAbandoned": "Cancelled"}
GENERATIONS = 0.25
LINES_MAX, TOKENS_MAX = 5, 16
PAUSE_SECONDS = 2.0
# How `surety` ends when a task ended without a result.
NO_RESULT = 5
# What it says of its task's number: when it is in a block, and when another block has taken the place of that.
POSTED = re.compile(r"task (\d+) posted|it is task (\d+) now")


class Slot:
    """A client that has one task at a time."""

    def __init__(self, net, place, rng):
        self.net, self.place, self.rng = net, place, rng
        self.surety, self.address = net.clients[place], net.client_addresses[place]
        self.lines = TEXT.read_text().splitlines()
        self.process, self.task, self.offset, self.wait_until = None, None, 0, 0.0
        # How its processes ended that neither had a result nor were told that there is none.
        self.gave_up = []

    def post(self):
        """Begins a task of its own making."""
        home, rng = self.surety.home, self.rng
        redundancy = rng.choice((1, 2, 3, 3))
        if rng.random() < GENERATIONS:
            work = ["--raw", "--prompt", rng.choice(self.lines), "--model", GENERATOR]
            work += ["--max-tokens", rng.randint(4, TOKENS_MAX), "--seed", rng.randrange(1000), "--temperature", 0.8]
        else:
            text = home / "text.txt"
            text.write_text("\n".join(rng.sample(self.lines, rng.randint(2, LINES_MAX))) + "\n")
            work = ["--file", text, "--model", MODEL]
        self.task = None
        args = ["task", "submit", *work, "--redundancy", redundancy, "--cap", "1 SURE", "--out", home / "out"]
        self._start([*args, "--until", "settled", "--listen", f"127.0.0.1:{CLIENT_PORT + self.place}"])

    def watch(self, task):
        """Goes on with a task that its process has left."""
        self.task = task
        self._start(["task", "watch", task, "--out", self.surety.home / "out"])

    def _start(self, args):
        log = self.net.logs / f"client-{self.place}.log"
        self.offset = log.stat().st_size if log.exists() else 0
        self.process = self.net.client_processes.start(f"client-{self.place}", self.surety.argv(*args))

    def look(self, chain_log):
        """Sees to a process that has ended. Says whether it is free for another task."""
        if self.process is None:
            return time.monotonic() >= self.wait_until
        if self.process.returncode() is None:
            return False
        code = self.process.returncode()
        self.net.client_processes.forget(self.process)
        self.process, self.wait_until = None, time.monotonic() + PAUSE_SECONDS
        task = self.task if self.task is not None else self._posted()
        if code not in (0, NO_RESULT):
            self.gave_up.append({"client": self.place, "task": task, "code": code, "says": self._last_line()})
        if code and task is not None and not chain_log.has_ended(task):
            self.watch(task)
        return False

    def _said(self):
        """What its process has said."""
        with open(self.net.logs / f"client-{self.place}.log", errors="replace") as log:
            log.seek(self.offset)
            return log.read()

    def _last_line(self):
        return next(iter(self._said().strip().splitlines()[-1:]), "")

    def _posted(self):
        """The task that its process said last that it had posted."""
        said = POSTED.findall(self._said())
        return int("".join(said[-1])) if said else None


class Load:
    """All clients."""

    def __init__(self, net, chain_log, rng, tasks, every):
        self.slots = [Slot(net, place, rng) for place in range(net.client_count)]
        self.every, self.next_at = every, 0.0
        self.chain_log, self.tasks = _Tasks(chain_log, net), tasks
        self.open = True

    def step(self):
        """Sees to all clients, and has those post that are free, until there are enough tasks.

        Who finds a task of its own that it had left before it knew of it goes on with that first.
        """
        self.chain_log.read()
        for slot in self.slots:
            if not slot.look(self.chain_log):
                continue
            orphan = self.chain_log.orphan(slot.address, self.slots)
            if orphan is not None:
                slot.watch(orphan)
            elif self.wants_more() and time.monotonic() >= self.next_at:
                self.next_at = time.monotonic() + self.every
                slot.post()

    def posting(self):
        """Clients that have not come to post yet."""
        known = self.chain_log.posted
        return sum(
            slot.process is not None and slot.task is None and slot._posted() not in known for slot in self.slots
        )

    def wants_more(self):
        return self.open and len(self.chain_log.posted) + self.posting() < self.tasks

    def is_over(self):
        """Whether all that was to be posted is, and has ended."""
        return not self.wants_more() and all(slot.process is None for slot in self.slots) and not self.chain_log.alive()


class _Tasks:
    """Which tasks are posted and which have ended, as far as the chain's log goes."""

    def __init__(self, chain_log, net):
        self.log, self.at = chain_log, 0
        self.ours = set(net.client_addresses)
        # {task: client}, {task: state}
        self.posted, self.ended = {}, {}

    def read(self):
        blocks = self.log.blocks
        while self.at < len(blocks):
            for pallet, name, fields in blocks[self.at].events:
                if pallet == "TaskAuction" and name == "TaskPosted" and fields["client"] in self.ours:
                    self.posted[fields["task"]] = fields["client"]
                elif pallet == "TaskAuction" and name in ENDED:
                    self.ended[fields["task"]] = ENDED[name]
            self.at += 1

    def has_ended(self, task):
        return task in self.ended

    def alive(self):
        return [task for task in self.posted if task not in self.ended]

    def orphan(self, client, slots):
        """A task of this client that nobody follows."""
        followed = {slot.task for slot in slots if slot.process is not None}
        mine = (task for task in self.alive() if self.posted[task] == client)
        return next((task for task in mine if task not in followed), None)
