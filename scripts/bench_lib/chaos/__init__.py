"""`scripts/bench chaos`: real processes under load; one thing after the other fails. Nobody honest may lose anything.

`net` is the network, `proxy` its paths, `faults` what is done to it, `load` who posts, `account` what it came to.
"""

import datetime
import random
import time

from devnet_lib import wait
from devnet_lib.errors import DevnetError, RpcError
from devnet_lib.folders import new_run_dir, remove_data
from devnet_lib.watch import ChainLog

from .. import machine, report
from ..errors import BenchError
from . import account, faults
from .load import Load
from .net import ChaosNet

# A task takes three minutes or more, most of them waiting. `every`: seconds from one post to the next.
LONG = {"tasks": 500, "minutes": 60.0, "in_flight": 32, "every": 2.0}
SHORT = {"tasks": 20, "minutes": 5.0, "in_flight": 20, "every": 6.0}
# Beyond the time for posting: what is under way may take so long to end, in seconds.
DRAIN_SECONDS = 900
STEP_SECONDS = 0.5
ANSWER_SECONDS = 180
TELL_SECONDS = 20
SEED_MAX = 2**32


class ShortPause(faults.ValidatorPaused):
    """Longer than the windows in which a task of the `local` preset is computed and checked: 90 s."""

    seconds = (100.0, 130.0)


class ShortDrop(faults.RpcDropped):
    """Shorter than them."""

    seconds = (15.0, 40.0)


SHORT_KINDS = (ShortPause, ShortDrop, faults.WorkerKilled)


def arguments(parser):
    """What `chaos` and `burst` can be told."""
    group = parser.add_argument_group("chaos, burst")
    group.add_argument("--tasks", type=int, metavar="N", help="how many to post [default: 500; with --quick 20]")
    group.add_argument("--in-flight", type=int, metavar="N", help="clients that post [default: 32; --quick: 20]")
    group.add_argument(
        "--seed", type=int, metavar="S", help="decides which faults and tasks there are [default: by chance]"
    )
    group.add_argument(
        "--faults", metavar="KIND,...", help="only these kinds: " + ", ".join(kind.kind for kind in faults.ALL)
    )
    group.add_argument(
        "--upgrade-wasm",
        metavar="FILE",
        help="a runtime of a higher version to upgrade to meanwhile; `upgrade`, too, takes that one",
    )


def run(options, console):
    """Posts tasks and makes things fail. Returns the report."""
    form = {**(SHORT if options.quick else LONG)}
    form |= {name: value for name in form if (value := getattr(options, name, None)) is not None}
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(SEED_MAX)
    kinds, skipped = _kinds(options)
    console.step(f"seed {seed}: --seed {seed} has the same tasks and faults again")
    for kind, why in skipped.items():
        console.step(f"left out: {kind}, {why}")
    return live(form, seed, kinds, skipped, console)


def live(form, seed, kinds, skipped, console):
    """A network's life under load. Returns the report."""
    rng, started = random.Random(seed), time.monotonic()
    run_dir = new_run_dir()
    clients = min(form["in_flight"], form["tasks"])
    net = ChaosNet(run_dir, console, clients, small_pool=faults.PoolFull in kinds)
    try:
        net.up()
        run = Run(net, form, rng, kinds, console)
        with run.log:
            run.go_on()
            found = run.result()
    finally:
        net.stop()
        remove_data(run_dir)
    found |= {
        "seed": seed,
        "faults_skipped": skipped,
        "form": form,
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "seconds": round(time.monotonic() - started),
        "logs": str(net.logs),
    }
    found["failed"] = [name for name in account.MUST_BE_ZERO if found[name]] + ([] if found["tasks"] else ["tasks"])
    found["failed"] += [fault["kind"] for fault in found["fault_log"] if "problem" in fault]
    return found


def _kinds(options):
    """Kinds of faults, and those that cannot be, with the reason."""
    every = {kind.kind: kind for kind in (*faults.ALL, *(SHORT_KINDS if options.quick else ()))}
    kinds, skipped = list(SHORT_KINDS if options.quick else faults.ALL), {}
    if options.faults is not None:
        wanted = [name for name in options.faults.split(",") if name]
        if unknown := [name for name in wanted if name not in every]:
            raise BenchError(f"no such fault: {', '.join(unknown)}; there are {', '.join(every)}")
        kinds = [every[name] for name in wanted]
    if faults.ClockOff in kinds and not faults.faketime():
        kinds.remove(faults.ClockOff)
        skipped[faults.ClockOff.kind] = "there is no libfaketime: apt-get install libfaketime"
    if faults.Upgrade in kinds:
        if options.upgrade_wasm:
            faults.Upgrade.wasm = options.upgrade_wasm
        else:
            kinds.remove(faults.Upgrade)
            skipped[faults.Upgrade.kind] = "there is no other runtime: --upgrade-wasm FILE"
    return kinds, skipped


class Run:
    """Load and faults, until all that was posted has ended."""

    def __init__(self, net, form, rng, kinds, console):
        self.net, self.form, self.console = net, form, console
        self.log = ChainLog([validator.chain for validator in net.validators.all])
        self.load = Load(net, self.log, random.Random(rng.random()), form["tasks"], form["every"])
        self.faults = faults.Schedule(net, random.Random(rng.random()), kinds, console)
        self.crashes, self.told = [], 0.0
        self.begun = time.monotonic()

    def go_on(self):
        """Until everything has ended, or time is over."""
        posting_seconds = self.form["minutes"] * 60
        while time.monotonic() - self.begun < posting_seconds + DRAIN_SECONDS:
            if time.monotonic() - self.begun > posting_seconds:
                self.load.open = False
            self.load.step()
            self._restart_crashed()
            self.faults.step(may_begin=self.load.wants_more() or not self._all_begun())
            self._tell()
            if self.load.is_over() and self.faults.current is None and self._all_begun():
                break
            time.sleep(STEP_SECONDS)
        self.faults.stop()

    def _all_begun(self):
        """Whether each kind of fault has had its turn; nothing is worth waiting for once no task is left."""
        return not self.faults.first or self.load.is_over() or not self.load.open

    def _restart_crashed(self):
        """What has ended by itself is started again, as a service manager would."""
        for worker in self.net.workers():
            if worker.process in self.net.supervisor.processes and worker.process.returncode() is not None:
                self.crashes.append({"worker": worker.name, "code": worker.process.returncode()})
                self.console.step(f"{worker.name} ended by itself with {worker.process.returncode()}:")
                self.console.text(worker.process.tail())
                self.net.supervisor.forget(worker.process)
                self.net.start_again(worker)

    def _tell(self):
        if time.monotonic() - self.told < TELL_SECONDS:
            return
        self.told = time.monotonic()
        tasks = self.load.chain_log
        posted = f"{len(tasks.posted)} of {self.form['tasks']} tasks posted"
        self.console.detail(f"block {self.log.seen()}: {posted}, {len(tasks.ended)} ended")

    def result(self):
        """What it came to."""
        chains = [validator.chain for validator in self.net.validators.all]
        self.log.catch_up(told_by_any(chains, "the last final block", lambda chain: chain.finalized_number()))
        seen = account.Seen(
            blocks=self.log.blocks,
            computed=account.logs_of(self.net),
            stashes={worker.name: worker.stash for worker in self.net.workers()},
            clients=set(self.net.client_addresses),
            answered=self.net.answered,
            money=told_by_any(chains, "all accounts", lambda chain: account.money(chain, self.net.client_addresses)),
        )
        found = account.judge(seen)
        if found["settled"] and not found["results_computed"]:
            raise BenchError(
                "tasks were settled, and no log says that anything was computed: does it say so differently?"
            )
        gave_up = [case for slot in self.load.slots for case in slot.gave_up]
        found["cases"]["clients_gave_up"] = gave_up
        return found | {
            "faults": self.faults.counts(),
            "fault_log": self.faults.log,
            "clients_gave_up": len(gave_up),
            "workers_crashed": self.crashes,
            "blocks": len(self.log.blocks),
        }


def told_by_any(chains, what, ask, seconds=ANSWER_SECONDS):
    """What the first node says that answers. One may still be on its way up."""
    refused = []

    def told():
        for chain in chains:
            try:
                return ask(chain)
            except RpcError as error:
                refused.append(str(error))
        return None

    try:
        return wait.until(f"a node that tells {what}", told, seconds)
    except DevnetError as error:
        raise BenchError(f"{error}; the last answer: {refused[-1] if refused else 'nothing'}") from None


def show(found, console):
    """Prints the report for people."""
    console.title("What it came to")
    names = ("tasks", "settled", *account.MUST_BE_ZERO, "failed_tasks", "cancelled", "suspensions", "jailings")
    names += ("bids_forfeited", "clients_gave_up", "seconds", "seed")
    rows = []
    for name in names:
        value = found["failed_reasons"] if name == "failed_tasks" else found[name]
        mark = "  <- must be 0" if name in account.MUST_BE_ZERO and value else ""
        rows.append((name.replace("_", " "), f"{value}{mark}"))
    console.table(rows)
    console.title("Faults")
    report.table(("kind", "times"), [(kind, count) for kind, count in found["faults"].items()], console)
    for kind, why in found["faults_skipped"].items():
        console.text(f"  {kind}: left out, {why}")
    for what in ("slashes", "unpaid", "clients_gave_up"):
        for case in found["cases"][what]:
            console.text(f"  {what}: {case}")
    console.text(f"\n  logs: {found['logs']}")
