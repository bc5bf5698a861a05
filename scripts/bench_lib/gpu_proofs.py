"""`scripts/bench gpu-proofs`: providers as processes of their own take part in a round of the benchmark.

Two of three are measured on the processor, one of them is killed once it has committed to its run, and the third takes
no part. A task before the round and one in it have to be settled and paid as if there were none.
"""

import contextlib
import datetime
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devnet_lib import verdict, wait
from devnet_lib.chain import SURE, sure
from devnet_lib.devnet import REGISTER_SECONDS, Devnet
from devnet_lib.errors import DevnetError
from devnet_lib.folders import new_run_dir, remove_data
from devnet_lib.ports import Ports
from devnet_lib.scale import ss58_encode
from devnet_lib.verdict import ANSI

from . import machine
from .chaos.extrinsic import Runtime, Signer
from .report import table

# Beside the devnet.
PORTS = Ports(900)
# Who is killed, and who takes no part.
KILLED, APART = "provider-1", "provider-3"
ROOT = Signer("root")
# For fees.
ROOT_MONEY = 1_000 * SURE
# Five minutes to show samples: whoever is killed computes twice, and promised work goes before.
OPEN_BLOCKS = 150
BLOCK_SECONDS = 2
# Eight authors' outputs or a minute of computing, and until the block is final, with much room.
SOON_SECONDS = 240
OPEN_SECONDS = OPEN_BLOCKS * BLOCK_SECONDS + SOON_SECONDS
# Validators, which share the processor, go first: on machines of their own no worker would delay their blocks.
NICENESS = 10
SPEED = re.compile(r"operations a second\b.*\bgiga_operations=(\d+)")
UP, AGAIN, PASSED = "provider is up", "making the run again", "this round of the benchmark is passed"
LINES_MAX = 8


def rooted(patch):
    """Puts a root with money into a genesis."""
    root = ss58_encode(ROOT.account)
    patch["balances"]["balances"].append([root, ROOT_MONEY])
    patch["sudo"] = {"key": root}


class Net(Devnet):
    """A devnet with a root, on which all providers but some want to be measured."""

    # Who takes no part, by name.
    apart = (APART,)

    def __init__(self, run_dir, console, **options):
        super().__init__(run_dir, console, ports=PORTS, **options)
        self.root = ROOT
        self.validators.change = rooted

    def start_provider(self, provider, *flags, **options):
        """Starts a provider that takes part in rounds, or does not."""
        when = "off" if provider.name in self.apart else "on"
        super().start_provider(provider, "--benchmark", when, *flags, **options)


def _variant(metadata, type_id, name):
    """How a variant begins, and the types of its fields."""
    variants = metadata.types[type_id].variants
    index, fields = next((index, fields) for index, (of, fields) in variants.items() if of == name)
    return bytes([index]), [of for _, of in fields]


def parameter(metadata, name, value):
    """The call by which root sets a number among the parameters of gpu-proofs."""
    _, (parameters,) = _variant(metadata, metadata.calls["Parameters"], "set_parameter")
    group, (of_group,) = _variant(metadata, parameters, "GpuProofs")
    key, _ = _variant(metadata, of_group, name)
    some = b"\1" + value.to_bytes(4, "little")
    return metadata.call_index("Sudo", "sudo") + metadata.call_index("Parameters", "set_parameter") + group + key + some


class Round:
    """One round, and what was seen of it."""

    open_blocks = OPEN_BLOCKS

    def __init__(self, net, console):
        self.net, self.console, self.chain = net, console, net.chain
        self.runtime = Runtime(net.chain)
        self.before = verdict.Before(net)
        self.log = self.before.log
        self.log.PALLETS = (*self.log.PALLETS, "GpuProofs")
        self.measured = [provider for provider in net.providers if provider.name not in net.apart]
        self.began, self.seen, self.failed = time.monotonic(), {}, []
        # Of the whole round, and of each provider that is measured, by its name.
        self.figures, self.of = {}, {provider.name: {} for provider in self.measured}

    def check(self, what, is_so):
        """Takes down whether something is as it must be, and when, in seconds since the beginning."""
        self.seen[what] = {"as_it_must_be": bool(is_so), "seconds": round(time.monotonic() - self.began)}
        if not is_so:
            self.failed.append(what)
        self.console.step(f"{what}: {'so it is' if is_so else 'NOT SO'}")

    def until(self, what, probe, seconds=SOON_SECONDS):
        """Waits, with an eye on all processes."""
        return wait.until(what, probe, seconds, self.net.supervisor.check)

    def event(self, name, provider=None):
        """The first event of a name, of a provider or of the round, with its block; nothing before it is final."""
        for block, pallet, of, fields in self.log.events():
            is_it = provider is None or fields.get("provider") == provider.stash
            if (pallet, of) == ("GpuProofs", name) and is_it:
                return block, fields
        return None

    def happens(self, name, provider=None, seconds=SOON_SECONDS):
        """Waits for that event."""
        what = f"{name} of {provider.name}" if provider else name
        found = self.until(f"{what} in a final block", lambda: self.event(name, provider), seconds)
        self.console.step(f"{what} in block {found[0].number}")
        return found

    def set(self, **parameters):
        """Has root set parameters of gpu-proofs."""
        nonce = self.chain.next_nonce(ss58_encode(self.net.root.account))
        for step, (name, value) in enumerate(parameters.items()):
            call = parameter(self.runtime.metadata, name, value)
            signed = self.net.root.sign(self.runtime, call, nonce + step)
            self.chain.rpc.call("author_submitExtrinsic", signed)

    def says(self, provider, since=0):
        """What a provider's log has, from a byte of it on."""
        with open(provider.process.log, "rb") as log:
            log.seek(since)
            return ANSI.sub("", log.read().decode(errors="replace"))

    def status(self, provider):
        """What `surety provider status` has of its speed."""
        return provider.surety.run("provider", "status")["measured"]

    def call(self, block, provider, name):
        """Bytes of the call in a block, what was paid for it, and the tip beside that, in plancks."""
        found = self.chain.block_hash(block.number)
        metadata, place, size = self.chain.metadata(found), None, None
        for at, extrinsic in enumerate(self.chain.rpc.call("chain_getBlock", found)["block"]["extrinsics"]):
            data = bytes.fromhex(extrinsic[2:])
            signer, _ = metadata.signed(data, "GpuProofs", name) or (None, None)
            if signer == provider.agent:
                place, size = at, len(data)
        paid = [
            record["event"]["value"]
            for record in self.chain.value("System", "Events", block=found)
            if record["phase"] == {"name": "ApplyExtrinsic", "value": place}
            and record["event"]["name"] == "TransactionPayment"
        ]
        fee = sum(of["actual_fee"] - of["tip"] for of in paid) if paid else None
        return {"bytes": size, "fee": fee, "tip": sum(of["tip"] for of in paid)}

    # Steps, in the order in which they are taken.

    def before_it(self, _pool):
        """A task before the round"""
        self.check("nobody is measured before any round", not any(map(self.status, self.net.providers)))
        result = self.net.submit(self.net.run_dir / "before.safetensors")
        self.check("a task before the round is settled", result["state"] == "Settled")

    def begins(self, _pool):
        """A round begins"""
        for provider in self.measured:
            _behind_validators(provider.process)
        self.begin()

    def begin(self):
        """Has root begin a round, and no other after it."""
        self.set(OpenWindow=self.open_blocks, RoundEvery=1)
        _, begun = self.happens("RoundBegun")
        self.set(RoundEvery=0)
        self.figures["round"] = begun["round"]
        self.figures["window_ms"] = self.chain.value("GpuProofs", "CurrentRound")["window_ms"]
        self.seeded, _ = self.happens("RunsSeeded")

    def commit(self, _pool):
        """Both commit to a run"""
        for provider in self.measured:
            block, committed = self.happens("RunCommitted", provider)
            speeds = SPEED.findall(self.says(provider))
            self.of[provider.name] |= {
                **committed["plan"],
                "declared_giga_operations": int(speeds[-1]) if speeds else None,
                "commit_seconds": (block.time_ms - self.seeded.time_ms) / 1_000,
                "commitment": self.call(block, provider, "commit_run"),
            }
            self.check(f"{provider.name} has paid no fee for it", self.of[provider.name]["commitment"]["fee"] == 0)

    def kill(self, pool):
        """One is killed and started again, and a task is posted"""
        killed = self.killed
        self.net.supervisor.forget(killed.process)
        killed.process.kill()
        self.since = killed.process.log.stat().st_size
        self.net.start_provider(killed)
        self.until(f"{KILLED} to be up again", lambda: UP in self.says(killed, self.since), REGISTER_SECONDS)
        _behind_validators(killed.process)
        self.task = pool.submit(self.net.submit, self.net.run_dir / "meanwhile.safetensors")

    def show(self, _pool):
        """Both show what is drawn"""
        self.shown()
        self.check("who was killed has made its run again", AGAIN in self.says(self.killed, self.since))

    def shown(self):
        """What is drawn is shown, and the chain has measured all who take part."""
        drawn, _ = self.happens("SamplesDrawn")
        for provider in self.measured:
            block, fields = self.happens("Measured", provider, OPEN_SECONDS)
            measured = {key: fields["measurement"][key] for key in ("giga_operations", "memory_mib")}
            of = self.of[provider.name]
            of |= {**measured, "show_seconds": (block.time_ms - drawn.time_ms) / 1_000}
            of["opening"] = self.call(block, provider, "open_run")
            self.check(f"{provider.name} has paid no fee for its opening", of["opening"]["fee"] == 0)
            status = self.status(provider)
            of["tier"] = status and status["tier"]
            is_same = status and {key: status[key] for key in measured} == measured
            self.check(f"its status tells of {provider.name} what was measured", is_same)
            is_less = 0 < measured["giga_operations"] <= (of["declared_giga_operations"] or 0)
            self.check(f"{provider.name} is measured to be as fast as it says at most", is_less)
            passed = lambda of=provider: PASSED in self.says(of)  # noqa: E731
            self.check(f"{provider.name} knows it", self.until(f"{provider.name} to say that it has passed", passed))

    def ends(self, _pool):
        """The round is over, and work went on"""
        result = self.task.result()
        self.check("a task in the round is settled", result["state"] == "Settled")
        _, over = self.happens("RoundOver", seconds=OPEN_SECONDS)
        self.figures["is_counted"] = over["is_counted"]
        for provider in self.measured:
            status = self.status(provider)
            self.check(f"what {provider.name} has shown counts afterwards", status and status["rounds_missed"] == 0)
        apart = next(provider for provider in self.net.providers if provider.name == APART)
        took_part = self.event("RunCommitted", apart) or self.event("Measured", apart)
        self.check("who takes no part was not measured", not took_part and self.status(apart) is None)
        left = self.chain.entries("GpuProofs", "Commitments")
        self.check("the chain keeps no commitment", not left)
        self.judge()

    def judge(self):
        """Everybody was paid for both tasks, and nobody fined."""
        judged = verdict.judge(self.before.gather(), says=verdict.log_says)
        problems = verdict.problems(judged)
        self.check("everybody was paid for each task, and nobody fined", not problems)
        self.failed += problems

    @property
    def killed(self):
        """Who is killed."""
        return next(provider for provider in self.measured if provider.name == KILLED)

    def live(self):
        """All of it. What keeps it from going on is taken down as well."""
        with self.before, ThreadPoolExecutor(1) as pool:
            try:
                for step in (self.before_it, self.begins, self.commit, self.kill, self.show, self.ends):
                    self.console.title(step.__doc__)
                    step(pool)
            except DevnetError as error:
                self.failed.append(f"it went no further than that: {error}")
                self.console.text(f"{error}{self.told()}")
            finally:
                # Who waits for its commands would be waited for.
                self.net.stop()

    def told(self):
        """The last lines of each log that speak of the benchmark."""
        said = ""
        for provider in self.measured:
            lines = [line for line in self.says(provider).splitlines() if "benchmark" in line]
            said += f"\n{provider.name}:" + "".join(f"\n    {line}" for line in lines[-LINES_MAX:] or ["nothing of it"])
        return said


def _behind_validators(process):
    """Has a process's threads, and those that they start, leave the processor to others that want it."""
    for thread in Path(f"/proc/{process.pid}/task").iterdir():
        # It may have ended by now.
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), NICENESS)


def run(_options, console):
    """Lives it. Returns the report."""
    folder = new_run_dir()
    net = Net(folder, console)
    try:
        net.up()
        of = Round(net, console)
        of.live()
    finally:
        net.stop()
        remove_data(folder)
    return {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        **of.figures,
        "open_blocks": OPEN_BLOCKS,
        "providers": of.of,
        "seen": of.seen,
        "logs": str(net.logs),
        "failed": of.failed,
    }


# Figures of each provider, in the report and in words.
ROWS = {
    "declared_giga_operations": "10^9 operations a second, by its log",
    "giga_operations": "10^9 operations a second, by the chain",
    "tier": "tier",
    "memory_mib": "memory, MiB",
    "rows": "rows",
    "layers": "layers",
    "commit_seconds": "from RunsSeeded to its commitment, s",
    "show_seconds": "from SamplesDrawn to its opening, s",
}


def show(found, console):
    """Prints the report for people."""
    console.title("What was measured")
    of_each = found["providers"]
    rows = [(words, *(of.get(name, "-") for of in of_each.values())) for name, words in ROWS.items()]
    calls = [{name: of.get(name, {}) for name in ("commitment", "opening")} for of in of_each.values()]
    rows.append(("bytes of its opening", *(of["opening"].get("bytes", "-") for of in calls)))
    for what in ("fee", "tip"):
        paid = [[call[what] for call in of.values() if call.get(what) is not None] for of in calls]
        rows.append((f"{what} of both calls", *(sure(sum(of)) if of else "-" for of in paid)))
    table(("", *of_each), rows, console)
    console.title("What was seen")
    seen = [(what, "as it must be" if of["as_it_must_be"] else "NOT SO") for what, of in found["seen"].items()]
    counted = found.get("is_counted")
    seen.append(("the round counts for who has missed it", {True: "yes", False: "no"}.get(counted, "-")))
    console.table([*seen, ("logs", found["logs"])])
