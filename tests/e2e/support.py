"""What the end-to-end tests share: one devnet, started by whoever needs it first, stopped when Python ends."""

import atexit
import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "scripts"))

from devnet_lib import report, wait  # noqa: E402
from devnet_lib.console import Silent  # noqa: E402
from devnet_lib.devnet import Devnet  # noqa: E402
from devnet_lib.folders import new_run_dir, remove_data  # noqa: E402
from devnet_lib.watch import FinalityWatch  # noqa: E402

# A whole life takes about 80 s; one that waits for its commit window 90 s more.
LIFE_SECONDS = 300


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
    """Three validators and three providers, at work."""
    net = Devnet(run_dir(), Silent(), databases=scratch())
    atexit.register(remove_data, run_dir())
    atexit.register(net.stop)
    try:
        net.up()
    except BaseException:
        net.stop()
        raise
    return net


@functools.cache
def happy_life():
    """The report of the first task: nothing goes wrong in it."""
    net = devnet()
    out, before = net.run_dir / "vectors.safetensors", net.purses()
    with FinalityWatch(net.chain) as watch:
        result = net.submit(out)
    return report.make(net, result, out, watch, before=before)


class Life:
    """A task that a client has posted and follows, beside the test."""

    def __init__(self, net, name, args=None, **options):
        self.net, self.name = net, name
        self.out = net.run_dir / f"{name}.out"
        self.task = net.chain.next_task()
        self.process = net.client.start(name, *(args or net.task_args(**options)), "--out", self.out)

    def view(self, block=None):
        """The task as the last final block, or the given one, has it."""
        return self.net.chain.task(self.task, block)

    def wait_for_state(self, *states, best=False):
        """Waits for one of the states, and returns the task then. `best` looks ahead of finality."""

        def reached():
            block = self.net.chain.block_hash(self.net.chain.best_number()) if best else None
            view = self.view(block)
            return view if view and view["state"]["name"] in states else None

        what = f"task {self.task} ({self.name}) to be {' or '.join(states)}"
        return wait.until(what, reached, LIFE_SECONDS, self.net.supervisor.check)

    def finish(self):
        """Waits for the client's process to end, and returns its exit code."""
        self.net.supervisor.forget(self.process)
        try:
            if not self.process.wait(LIFE_SECONDS):
                raise AssertionError(f"{self.name} does not end:\n{self.process.tail()}")
        finally:
            self.process.stop()
        return self.process.returncode()


def restart(provider, env=None):
    """Stops a provider and starts it again. Returns once the chain has heard of it."""
    net = devnet()
    registered = net.chain.provider_record(provider.stash)
    if provider.process.returncode() is None:
        net.supervisor.forget(provider.process)
        provider.process.stop()
    net.start_provider(provider, env=env)
    wait.until("its sign of life", lambda: net.chain.provider_record(provider.stash) != registered, 60)


def paid(view):
    """Who was paid how much, by stash."""
    return {payment["provider"]: payment["price"] for payment in view["state"]["payments"]}


def money_out(view):
    """Where the money of a finished task went, in all."""
    return sum(paid(view).values()) + view["state"]["fee"] + view["state"]["refund"]
