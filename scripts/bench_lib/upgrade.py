"""`scripts/bench upgrade`: code with a migration passes by referendum, while a dispute is open and a task under way.

Nobody has a key that could do it alone. One provider lies about a task; meanwhile holders of SURE vote for the next
version. Once the lie is disputed anybody brings its code, and both tasks have to end as they would have.
"""

import datetime
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devnet_lib import cheats, wait
from devnet_lib.chain import SURE, storage_key
from devnet_lib.devnet import GENERATOR, MODEL, Devnet
from devnet_lib.errors import DevnetError
from devnet_lib.folders import new_run_dir, remove_data, write_secret
from devnet_lib.ports import Ports
from devnet_lib.processes import run as run_program
from devnet_lib.scale import Reader, blake2_256, ss58_encode
from devnet_lib.watch import SlashWatch

from . import machine
from .chaos.extrinsic import Runtime, Signer, compact
from .programs import program

# Beside the devnet.
PORTS = Ports(800)
CHEAT = cheats.CHEATS["altered-activation"]
CLIENT = "//Two"
# With half of all SURE, root's track confirms at once.
VOTERS = 3
# For fees.
KEPT = 1_000 * SURE
# From a task's post to its dispute; a referendum is decided within 150 blocks.
DISPUTE_SECONDS, REFERENDUM_SECONDS = 300, 400
# Until what a node has taken is final, or the code is there.
SOON_SECONDS = 120
# What the referendum says, as SCALE has it: root's origin (of pallet 0, variant 0), a call that is not noted before,
# and as soon as its track lets it.
ROOT, INLINE, AFTER_NOTHING = b"\0\0", b"\1", b"\1" + bytes(4)
# Yes, locked for one period; and the kind of vote that has one direction.
STANDARD, AYE = b"\0", bytes([0x80 | 1])
BARE_V4, FROM_OUTSIDE, VALID = b"\4", b"\2", 0
# What `runtime/src/next_version.rs` leaves behind: how many tasks, rounds and disputes it has written anew.
WRITTEN = storage_key("NextVersion", "Written")


class Net(Devnet):
    """A devnet on which half of all SURE is its voters', and who lies does so about one of the models."""

    def __init__(self, *args, **options):
        super().__init__(*args, cheats=dict.fromkeys(CHEAT.workers, CHEAT.kind), **options)
        self.voters = [Signer(f"voter {index}") for index in range(VOTERS)]
        self.validators.change = self._genesis

    def _genesis(self, patch):
        accounts, given = patch["balances"]["balances"], 0
        for account in accounts:
            if account[1] > KEPT:
                given += account[1] // 2
                account[1] -= account[1] // 2
        self.share = given // VOTERS
        # Not a planck more than there was.
        accounts += [[ss58_encode(voter.account), self.share] for voter in self.voters]

    def start_provider(self, provider, *flags, models=(MODEL, GENERATOR), **options):
        """The other task is for honest providers alone."""
        models = (MODEL,) if provider.name in self.cheats else models
        super().start_provider(provider, *flags, models=models, **options)


class Calls:
    """Calls of governance, as the runtime that has to take them encodes them."""

    def __init__(self, runtime):
        self.runtime, self.index = runtime, runtime.metadata.call_index

    def submit(self, call):
        """A referendum of root's track for a call of 128 bytes at most."""
        proposal = ROOT + INLINE + compact(len(call)) + call
        return self.index("Referenda", "submit") + proposal + AFTER_NOTHING

    def deposit(self, referendum):
        return self.index("Referenda", "place_decision_deposit") + referendum.to_bytes(4, "little")

    def vote(self, referendum, amount):
        vote = STANDARD + AYE + amount.to_bytes(16, "little")
        return self.index("ConvictionVoting", "vote") + compact(referendum) + vote

    def authorize(self, code):
        return self.index("System", "authorize_upgrade") + blake2_256(code)

    def bring(self, code):
        """The whole extrinsic: nobody signs it."""
        body = BARE_V4 + self.index("System", "apply_authorized_upgrade") + compact(len(code)) + code
        return compact(len(body)) + body


class Upgrade:
    """What is done to one network, and what was seen."""

    def __init__(self, net, code, console):
        self.net, self.code, self.console = net, code, console
        self.chain, self.seen, self.failed = net.chain, {}, []
        self.began, self.blocks = time.monotonic(), {}
        self.runtime = Runtime(self.chain)
        self.calls, self.nonces = Calls(self.runtime), {}

    def check(self, what, is_so):
        """Takes down whether something is as it must be, and when, in seconds since the beginning."""
        self.seen[what] = {"as_it_must_be": bool(is_so), "seconds": round(time.monotonic() - self.began)}
        if not is_so:
            self.failed.append(what)
        self.console.step(f"{what}: {'so it is' if is_so else 'NOT SO'}")

    def until(self, what, probe, seconds=SOON_SECONDS):
        """Waits, with an eye on all processes; takes down the last final block then."""
        found = wait.until(what, probe, seconds, self.net.supervisor.check)
        self.blocks[what] = self.chain.finalized_number()
        return found

    def send(self, voter, call):
        """Signs a call and hands it to a node."""
        nonce = self.nonces.get(voter, 0)
        self.nonces[voter] = nonce + 1
        signed = self.net.voters[voter].sign(self.runtime, call, nonce)
        self.chain.rpc.call("author_submitExtrinsic", signed)

    def is_taken(self):
        """Whether the chain would take the code. Pools are not asked: they shut out for a while what they refuse."""
        block = self.chain.finalized_hash()
        asked = FROM_OUTSIDE + self.calls.bring(self.code) + bytes.fromhex(block[2:])
        answer = self.chain.rpc.call(
            "state_call", "TaggedTransactionQueue_validate_transaction", "0x" + asked.hex(), block
        )
        return bytes.fromhex(answer[2:])[0] == VALID

    def disputes(self, block=None):
        return self.chain.entries("Disputes", "Disputes", block)

    def status(self, referendum):
        """What the final state has of a referendum."""
        return self.chain.value("Referenda", "ReferendumInfoFor", referendum.to_bytes(4, "little"))

    def live(self):
        """All of it. Returns the report of the task that somebody lied about."""
        watched, out = cheats.Watched(self.net), self.net.run_dir / "vectors.safetensors"
        slashes = SlashWatch(watched.before.log, self.console)
        with watched.before, slashes, ThreadPoolExecutor(2) as pool:
            disputed = pool.submit(cheats.post, self.net, CHEAT, out)
            try:
                other = self.pass_code(pool)
                result = disputed.result()
                self.check("the disputed task is settled by the new code", result["state"] == "Settled")
                self.check("so is the other", other.result()["state"] == "Settled")
                self.until("every slash to be carried out", slashes.are_carried_out, cheats.SLASH_SECONDS)
            except BaseException:
                # Who waits for its commands would be waited for.
                self.net.stop()
                raise
            return self.judge(watched, result, slashes)

    def judge(self, watched, result, slashes):
        """Who lied has lost what it has to, and nobody else anything."""
        culprits = [cheats.worker_named(self.net, name) for name in CHEAT.workers]
        stories = watched.disputes()
        for story in stories:
            cheats.tell(story, self.console)
        found = cheats.report(self.net, CHEAT, culprits, result, watched, slashes.seen, stories)
        self.check("who lied lost what it has to, and nobody honest anything", not found["problems"])
        moves = [event for block, *event in watched.before.log.events() if block.number > self.blocks["migrated"]]
        self.check("the dispute went on after it", any(pallet == "Disputes" for pallet, _, _ in moves))
        return found

    def pass_code(self, pool):
        """From a referendum to code that runs. Returns the other task, which is posted meanwhile."""
        referendum = self.chain.value("Referenda", "ReferendumCount")
        self.check("without a referendum nobody can bring the code", not self.is_taken())
        self.send(0, self.calls.submit(self.calls.authorize(self.code)))
        self.send(0, self.calls.deposit(referendum))
        ongoing = lambda: (self.status(referendum) or {}).get("value", {}).get("decision_deposit")  # noqa: E731
        self.until("the referendum with its deposit", ongoing)
        for voter in range(VOTERS):
            # What is reserved for deposits votes, too.
            self.send(voter, self.calls.vote(referendum, self.net.share - KEPT))

        def decided():
            status = self.status(referendum)
            return status if status["name"] != "Ongoing" else None

        status = self.until("the referendum to be decided", decided, REFERENDUM_SECONDS)
        if status["name"] != "Approved":
            raise DevnetError(f"the referendum is {status['name']}")
        authorized = self.until("its call to be made", lambda: self.chain.value("System", "AuthorizedUpgrade"))
        self.check("it authorises this code", authorized["code_hash"] == "0x" + blake2_256(self.code).hex())
        self.check("and now anybody can bring it", self.is_taken())
        # It is kept until it is brought; a dispute is over within some twenty blocks.
        self.until("somebody to dispute the lie", self.disputes, DISPUTE_SECONDS)
        other = pool.submit(self.generate)
        self.until("the other task", lambda: self.chain.next_task() > 1)
        self.chain.rpc.call("author_submitExtrinsic", "0x" + self.calls.bring(self.code).hex())
        self.until("its migration", lambda: self.chain.storage(WRITTEN))
        self.upgraded()
        return other

    def upgraded(self):
        """What the block has that the new code began with."""
        number = self.chain.finalized_number()
        while self.chain.storage(WRITTEN, self.chain.block_hash(number - 1)):
            number -= 1
        self.blocks["migrated"], block = number, self.chain.block_hash(number)
        reader = Reader(self.chain.storage(WRITTEN, block))
        self.written = dict(zip(("tasks", "rounds", "disputes"), (reader.u32() for _ in range(3)), strict=True))
        self.check("the dispute is open while the code changes", self.disputes(block))
        states = [self.chain.task(task, block)["state"]["name"] for task in range(self.chain.next_task())]
        under_way = [state for state in states if state not in ("Settled", "Failed", "Cancelled")]
        self.check("and both tasks are under way", len(under_way) == 2)
        self.check(
            "its migration has written all of them anew",
            self.written["tasks"] == len(states) and self.written["disputes"] >= 1,
        )
        last = self.chain.value("System", "LastRuntimeUpgrade", block=block)["spec_version"]
        versions = {node.chain.rpc.call("state_getRuntimeVersion")["specVersion"] for node in self.net.validators.all}
        self.check("every node runs the next version", versions == {last} and last > self.runtime.spec)
        self.until("ten more blocks", lambda: self.chain.finalized_number() >= number + 10)
        times = [self.chain.timestamp_ms(at) for at in range(number - 5, number + 6)]
        self.gap = max(after - before for before, after in zip(times, times[1:], strict=False)) / 1_000

    def generate(self):
        """Text by two honest providers, for a client of its own."""
        home = self.net.run_dir / "other-client"
        home.mkdir()
        client = self.net.surety(home, write_secret(home / "account.key", CLIENT))
        args = self.net.generation_args(redundancy=2)
        args[args.index("--listen") + 1] = f"127.0.0.1:{self.net.ports.client() + 2}"
        return client.follow(*args, "--follow", timeout=cheats.TASK_SECONDS)


def run(options, console):
    """Lives it. Returns the report."""
    folder = new_run_dir()
    net = Net(folder, console, ports=PORTS)
    try:
        code = next_code(options, folder)
        net.up()
        upgrade = Upgrade(net, code, console)
        found = upgrade.live()
    finally:
        net.stop()
        remove_data(folder)
    return {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "code_bytes": len(code),
        "written": upgrade.written,
        "blocks": upgrade.blocks,
        "longest_gap_seconds": upgrade.gap,
        "seen": upgrade.seen,
        "disputed": found,
        "logs": str(net.logs),
        "failed": upgrade.failed + found["problems"],
    }


def next_code(options, folder):
    """The Wasm of the next version."""
    if options.upgrade_wasm:
        return Path(options.upgrade_wasm).read_bytes()
    path = folder / "next.wasm"
    run_program([program("upgrade", "examples", "next_version"), path], SOON_SECONDS)
    return path.read_bytes()


def show(found, console):
    """Prints the report for people."""
    console.title("What was seen")
    rows = [(what, "as it must be" if of["as_it_must_be"] else "NOT SO") for what, of in found["seen"].items()]
    rows += [(f"last final block at {what}", number) for what, number in found["blocks"].items()]
    rows += [(f"{what} written anew", count) for what, count in found["written"].items()]
    rows.append(("longest time between blocks", f"{found['longest_gap_seconds']:.0f} s"))
    console.table([*rows, ("logs", found["logs"])])
