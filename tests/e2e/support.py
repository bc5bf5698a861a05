"""What the end-to-end tests share: one devnet, started by whoever needs it first, stopped when Python ends.

A task waits for blocks most of its life, so the lives of all modules go on side by side: each module has a function
`begin` that posts its tasks and does not wait for their end, and `go_on` for what is to happen meanwhile. No task may
be harmed by another, so whoever is killed is a *spare* provider, which is too dear for any other task.
"""

import atexit
import functools
import os
import pprint
import re
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "scripts"))

from devnet_lib import report, wait  # noqa: E402
from devnet_lib.console import Silent  # noqa: E402
from devnet_lib.devnet import Devnet  # noqa: E402
from devnet_lib.folders import new_run_dir, remove_data, write_secret  # noqa: E402
from devnet_lib.watch import FinalityWatch  # noqa: E402

# A whole life takes about 110 s; one that waits for its commit window 90 s more. Others compute beside it, and another
# machine may take three times as long.
LIFE_SECONDS = 900
# For a command that says something to the chain, or a worker that begins.
SOON_SECONDS = 300
# What a client says of its task's number: when it is in a block, and when another block has taken the place of that.
NUMBER = re.compile(r"task (\d+) posted|it is task (\d+) now")
# Threads that wait for commands. Their processes end with them, so they stay until the end.
WAITING_MAX = 16
SPARES = 3
# Of each log, where a test says what it saw.
TOLD_LINES = 40
# For a unit: more than other tasks pay; and a task that pays that.
SPARE_PRICE = "0.02 SURE"
SPARE_TASK = {"cap": "12 SURE", "redundancy": 4}


@functools.cache
def waiting():
    """Threads for commands that run beside the tests."""
    return ThreadPoolExecutor(WAITING_MAX)


@functools.cache
def run_dir():
    """This run's folder. Its logs stay when a test fails."""
    path = new_run_dir()
    print(f"logs are in {path}/logs", file=sys.stderr)
    return path


def scratch():
    """A folder for databases, removed in the end. In memory where there is room: removing it from a disk takes long."""
    memory = "/dev/shm"
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 << 30
    path = Path(tempfile.mkdtemp(prefix="surety-e2e-", dir=memory if roomy else None))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path / "validators"


@functools.cache
def devnet():
    """Three validators, providers and verifiers, at work, and spare providers."""
    net = Devnet(run_dir(), Silent(), databases=scratch(), spares=SPARES)
    atexit.register(remove_data, run_dir())
    atexit.register(net.stop)
    try:
        net.up()
    except BaseException:
        net.stop()
        raise
    return net


def start_spare(place, model, *flags, program=None):
    """Starts a spare provider of one model, for the first time or again. Returns it once the chain has heard of it.

    One at a time for a model: it works, with the three others, for a task with `SPARE_TASK`.
    """
    net = devnet()
    spare = net.spares[place]
    registered = net.chain.provider_record(spare.stash)
    net.start_provider(spare, "--price", SPARE_PRICE, *flags, models=[model], program=program)
    wait.until("its sign of life", lambda: net.chain.provider_record(spare.stash) != registered, SOON_SECONDS)
    return spare


def end_of(spare, life):
    """Waits until a spare provider has died of its task. Returns its process, and what there is to say.

    Not longer than the task lives: a provider that missed its bid would be waited for in vain.
    """
    process = spare.process
    over = lambda: process.returncode() is not None or life.is_over()  # noqa: E731
    wait.until(f"the end of {process.name}, or of its task", over, LIFE_SECONDS)
    return process, life.told(spare)


def with_spare(spare):
    """The stashes that work for a task with `SPARE_TASK`."""
    return {provider.stash for provider in [*devnet().providers, spare]}


def end_spare(spare):
    """Ends a spare provider, so that another can be started."""
    devnet().supervisor.forget(spare.process)
    spare.process.stop()


def interrupt(_number, _frame):
    """Ends the tests early, and leaves nothing behind."""
    # Threads that wait for its commands would be waited for.
    if devnet.cache_info().currsize:
        devnet().stop()
    raise KeyboardInterrupt


signal.signal(signal.SIGTERM, interrupt)


@functools.cache
def begin_happy_life():
    """Posts the first task, in which nothing goes wrong."""
    net = devnet()
    out, before = net.run_dir / "vectors.safetensors", net.purses()

    def live():
        with FinalityWatch(net.chain) as watch:
            result = net.submit(out)
        made = report.make(net, result, out, watch, before)
        settled = made["state"] == "Settled"
        return made | {"settlement": settlement(net, made["settled_block"]) if settled else None}

    return waiting().submit(live)


def settlement(net, number):
    """What a final block gave to workers, the tasks that there were by then, and what happened in it.

    To be asked soon: nodes forget the state of old blocks.
    """
    chain = net.chain
    parent, block = (chain.block_hash(at) for at in (number - 1, number))
    before, after = net.purses(parent), net.purses(block)
    return {
        "received": {stash: after[stash] - before[stash] for stash in after},
        "tasks": [chain.task(task, block) for task in range(chain.next_task(block))],
        "events": chain.events(block),
    }


def happy_life():
    """The report of the first task."""
    return begin_happy_life().result()


def client(name, uri):
    """`surety` with an account that nobody else uses meanwhile."""
    net = devnet()
    home = net.run_dir / name
    home.mkdir()
    return net.surety(home, write_secret(home / "account.key", uri))


def at_port(args, place):
    """The arguments of a task whose client listens where no other does."""
    args = list(args)
    args[args.index("--listen") + 1] = f"127.0.0.1:{devnet().ports.client() + place}"
    return args


def short_text():
    """A file that is computed in no time."""
    path = run_dir() / "short.txt"
    path.write_text("One line.\nAnother line.\n" * 5)
    return path


class Life:
    """A task that a client has posted and follows, beside the test."""

    def __init__(self, name, uri, place, args):
        self.net, self.name = devnet(), name
        self.out = self.net.run_dir / f"{name}.out"
        surety = client(name, uri)
        self.address = surety.run("account", "show")["address"]
        self.process = surety.start(name, *at_port(args, place), "--out", self.out)
        # It ends with its task, whoever else is still waiting.
        self.net.supervisor.forget(self.process)

    @property
    def task(self):
        """Its number, as its client has told it last. Until that is final, it may become another."""
        said = lambda: NUMBER.findall(self.process.log.read_text(errors="replace"))  # noqa: E731
        return int("".join(wait.until(f"{self.name} to post", said, SOON_SECONDS, self.net.supervisor.check)[-1]))

    def view(self, block=None):
        """The task as the last final block, or the given one, has it; nothing where that number is somebody else's."""
        view = self.net.chain.task(self.task, block)
        return view if view and view["client"] == self.address else None

    def wait_for_state(self, *states, best=False):
        """Waits for one of the states, and returns the task then. `best` looks ahead of finality."""

        def reached():
            view = self.view(self.net.chain.best_hash() if best else None)
            return view if view and view["state"]["name"] in states else None

        what = f"task {self.task} ({self.name}) to be {' or '.join(states)}"
        return wait.until(what, reached, LIFE_SECONDS, self.net.supervisor.check)

    def is_over(self):
        """Whether nothing will change any more."""
        view = self.view()
        return bool(view) and view["state"]["name"] in ("Settled", "Failed", "Cancelled")

    def told(self, *workers):
        """What is known of it, for the message of a test that fails."""
        try:
            view = self.view()
        except Exception as error:  # The message has to come all the same.
            view = repr(error)
        logs = [worker.process for worker in workers] + [self.process]
        tails = [f"{log.name} (code {log.returncode()}):\n{log.tail(TOLD_LINES)}" for log in logs]
        return "\n".join([f"task {self.task}: {pprint.pformat(view, width=110)}", *tails])

    def finish(self):
        """Waits for the client's process to end, and returns its exit code."""
        try:
            if not self.process.wait(LIFE_SECONDS):
                raise AssertionError(f"{self.name} does not end:\n{self.process.tail()}")
        finally:
            self.process.stop()
        return self.process.returncode()


def paid(view):
    """Who was paid how much, by stash."""
    return {payment["provider"]: payment["price"] for payment in view["state"]["payments"]}


def money_out(view):
    """Where the money of a finished task went, in all."""
    return sum(paid(view).values()) + view["state"]["fee"] + view["state"]["refund"]
