"""How many payments a chain takes: ours beside a stock one, on the same node program, in the same run.

Each chain has one validator, and its pool is kept full of payments that were signed before. Counted is what is in
final blocks, over the time that these say.
"""

import collections
import contextlib
import http.client
import json
import re
import statistics
import threading
import time

from devnet_lib import wait
from devnet_lib.chain import Chain
from devnet_lib.folders import binaries, built, new_run_dir, remove_data
from devnet_lib.ports import Ports
from devnet_lib.processes import Supervisor, run
from devnet_lib.scale import Reader

from .errors import BenchError
from .install import command
from .programs import program
from .report import table

# Beside the devnet.
PORTS = Ports(700)
# Each has one payment that is not final yet: together what either chain takes in its blocks until one is final, and
# as much again.
ACCOUNTS = 16_000
ENDOWMENT = 10 * 10**12
# Signed before: more than either chain takes in the time.
PAYMENTS, QUICK_PAYMENTS = 160_000, 64_000
WARM_SECONDS, SECONDS = 30, 120
QUICK_WARM_SECONDS, QUICK_SECONDS = 12, 24
BATCH, SENDERS = 200, 4
# More than that is never in the pool: it refuses nothing, and what limits is something else.
POOL = ["--pool-limit", "50000", "--pool-kbytes", "100000", "--rpc-max-request-size", "30"]
START_SECONDS = 240
SIGN_SECONDS = 300
SEND_SECONDS = 60
PAUSE_SECONDS = 0.1
_PROPOSED = re.compile(r"Prepared block for proposing at (\d+) \((\d+) ms\).*end: (\w+).*extrinsics_count: (\d+)")
OURS, STOCK = "ours", "stock"


def _stock_wasm():
    path = built().parent / "stock-runtime" / "stock_runtime.wasm"
    if not path.is_file():
        raise BenchError(f"there is no {path}: run scripts/bench staking without --no-build")
    return path.read_bytes()


def _stock(spec, endowed):
    """Has the chain of a specification be a stock one with the same validator."""
    genesis = spec["genesis"]["runtimeGenesis"]
    patch = genesis["patch"]
    ((_, _, keys),) = patch["session"]["keys"]
    spec.update(name="Stock", id="stock", protocolId="stock", properties={})
    genesis["code"] = "0x" + _stock_wasm().hex()
    genesis["patch"] = {
        "balances": {"balances": endowed},
        "babe": {"authorities": [[keys["babe"], 1]], "epochConfig": patch["babe"]["epochConfig"]},
        "grandpa": {"authorities": [[keys["grandpa"], 1]]},
    }


def _ours(spec, endowed):
    spec["genesis"]["runtimeGenesis"]["patch"]["balances"]["balances"] += endowed


CHANGES = {OURS: _ours, STOCK: _stock}


class Live:
    """A chain with one validator."""

    def __init__(self, name, addresses, folder, supervisor, place):
        self.supervisor, self.port = supervisor, PORTS.rpc(place)
        node, plain, raw = binaries() / "surety-node", folder / f"{name}.json", folder / f"{name}-raw.json"
        run([node, "export-chain-spec", "--chain", "dev", "--output", plain], START_SECONDS)
        spec = json.loads(plain.read_text())
        CHANGES[name](spec, [[address, ENDOWMENT] for address in addresses])
        plain.write_text(json.dumps(spec))
        run([node, "export-chain-spec", "--chain", plain, "--raw", "--output", raw], START_SECONDS)
        self.chain = Chain(f"http://127.0.0.1:{self.port}")
        argv = [node, "--chain", raw, "--base-path", folder / name, "--alice", "--validator", "--force-authoring"]
        argv += ["--listen-addr", f"/ip4/127.0.0.1/tcp/{PORTS.p2p(place)}", "--no-mdns", "--no-telemetry"]
        argv += ["--rpc-port", self.port, "--no-prometheus", *POOL]
        self.process = supervisor.start(name, argv)
        wait.until(f"{name} to answer", self.chain.rpc.answers, START_SECONDS, supervisor.check)
        wait.until("a final block", self.chain.finalized_number, START_SECONDS, supervisor.check)

    def extrinsics(self, block):
        return self.chain.rpc.call("chain_getBlock", block)["block"]["extrinsics"]

    def sign(self, count):
        """So many payments, as lines of hexadecimal."""
        version = self.chain.rpc.call("state_getRuntimeVersion")
        argv = [_signer(), self.chain.block_hash(0), version["specVersion"], version["transactionVersion"]]
        return command([*argv, ACCOUNTS, count], SIGN_SECONDS).splitlines()


def _signer():
    return program("staking", "examples", "transfers")


class Load:
    """Sends payments: of each account the next once the one before is final. A pool drops those that wait for another
    when that comes late, and then one account's loss is all that it pays afterwards."""

    def __init__(self, live, payments):
        self.live, self.fault, self.is_over = live, None, False
        self._payments, self._places = payments, {payment: place for place, payment in enumerate(payments)}
        # The places of those that may be sent.
        self._ready = collections.deque(range(ACCOUNTS))
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(SENDERS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        for thread in self._threads:
            thread.join(SEND_SECONDS)

    def final(self, extrinsics):
        """A block of these is final. Returns how many payments are in it."""
        paid = [self._places[extrinsic] for extrinsic in extrinsics if extrinsic in self._places]
        later = [place + ACCOUNTS for place in paid]
        self.is_over |= any(place >= len(self._payments) for place in later)
        self._ready.extend(place for place in later if place < len(self._payments))
        return len(paid)

    def _batch(self):
        batch = []
        with contextlib.suppress(IndexError):
            while len(batch) < BATCH:
                batch.append(self._payments[self._ready.popleft()])
        return batch

    def _send(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.live.port, timeout=SEND_SECONDS)
        while not self._end.is_set():
            batch = self._batch()
            if not batch:
                time.sleep(PAUSE_SECONDS)
                continue
            calls = (
                f'{{"jsonrpc":"2.0","id":{place},"method":"author_submitExtrinsic","params":["{payment}"]}}'
                for place, payment in enumerate(batch)
            )
            try:
                connection.request("POST", "/", f"[{','.join(calls)}]", {"Content-Type": "application/json"})
                answers = json.loads(connection.getresponse().read())
            except (OSError, ValueError, http.client.HTTPException) as error:
                self.fault = f"payments cannot be sent: {error}"
                return
            refused = [answer["error"] for answer in answers if "error" in answer]
            if refused:
                self.fault = f"{len(refused)} payments were refused, the first for {refused[0]}"

    def check(self):
        """Raises when the load is not what it is to be."""
        if self.fault:
            raise BenchError(self.fault)
        if self.is_over:
            raise BenchError("an account has paid all that was signed before the time was over: sign more")


def one(name, addresses, place, times, console):
    """Measures one chain."""
    payments, warm_seconds, seconds = times
    folder = new_run_dir()
    logs = folder / "logs"
    logs.mkdir()
    supervisor = Supervisor(logs)
    try:
        live = Live(name, addresses, folder, supervisor, place)
        console.step(f"{name}: signing {payments:,} payments")
        signed = live.sign(payments)
        console.step(f"{name}: {seconds} s of payments, after {warm_seconds} s")
        with Load(live, signed) as load:
            marks = _watch(live, load, warm_seconds, seconds)
        found = _figures(live, marks, (logs / f"{name}.log").read_text(errors="replace"))
        console.step(f"{name}: {found['transfers_per_s']:,.0f} a second; {found['capped_by']}")
        return found
    finally:
        supervisor.stop()
        remove_data(folder)


def _watch(live, load, warm_seconds, seconds):
    """What was paid up to the last final block, as the time begins and as it ends: [(number, block, paid)]."""
    began, marks, last, paid = time.monotonic(), [], 0, 0
    while len(marks) < 2:
        live.supervisor.check()
        load.check()
        number = live.chain.finalized_number()
        if number == last:
            time.sleep(PAUSE_SECONDS)
            continue
        for at in range(last + 1, number + 1):
            block = live.chain.block_hash(at)
            paid += load.final(live.extrinsics(block))
        last, passed = number, time.monotonic() - began
        # Both ends are final blocks as they come, so that their times fit what was paid.
        if passed >= warm_seconds + len(marks) * seconds:
            marks.append((number, block, paid))
    return marks


def _figures(live, marks, log):
    chain = live.chain
    numbers = [number for number, _, _ in marks]
    clock = [chain.value("Timestamp", "Now", block=block) / 1e3 for _, block, _ in marks]
    paid = marks[1][2] - marks[0][2]
    proposed = {int(of[1]): (int(of[2]), of[3], int(of[4])) for of in _PROPOSED.finditer(log)}
    blocks = [proposed[number] for number in range(numbers[0] + 1, numbers[1] + 1) if number in proposed]
    if not blocks or not paid:
        raise BenchError(f"no payments were final between blocks {numbers[0]} and {numbers[1]}")
    ends = collections.Counter(end for _, end, _ in blocks)
    full = chain.block_hash(max(range(numbers[0] + 1, numbers[1] + 1), key=lambda at: proposed.get(at, (0, "", 0))[2]))
    return {
        "transfers_per_s": round(paid / (clock[1] - clock[0]), 1),
        "transfers": paid,
        "seconds": clock[1] - clock[0],
        "blocks": numbers[1] - numbers[0],
        "transfers_in_the_fullest": _transfers(chain, full),
        "ms_to_build_median": statistics.median(ms for ms, _, _ in blocks),
        "ms_to_build_most": max(ms for ms, _, _ in blocks),
        "ends": dict(ends),
        "capped_by": ", ".join(f"{WHY.get(end, end)} in {count} of {len(blocks)}" for end, count in ends.most_common()),
        **_fullness(chain, full),
    }


# Why a block takes no more, as the node names it.
WHY = {
    "NoMoreTransactions": "the pool has no more ready",
    "HitDeadline": "the time for building is over",
    "HitBlockWeightLimit": "the block's weight is full",
    "HitBlockSizeLimit": "the block's bytes are full",
}


def _transfers(chain, block):
    extrinsics = chain.rpc.call("chain_getBlock", block)["block"]["extrinsics"]
    return sum(is_signed(bytes.fromhex(extrinsic[2:18])) for extrinsic in extrinsics)


def is_signed(head):
    """Whether an extrinsic that begins so is signed."""
    reader = Reader(head)
    reader.compact()
    return bool(reader.u8() & 0x80)


def _fullness(chain, block):
    """How full the fullest block is, of what extrinsics of users may fill."""
    limits = chain.metadata(block).constant("System", "BlockWeights")
    lengths = chain.metadata(block).constant("System", "BlockLength")
    weight = chain.value("System", "BlockWeight", block=block)["normal"]["ref_time"]
    extrinsics = chain.rpc.call("chain_getBlock", block)["block"]["extrinsics"]
    size = sum(len(extrinsic) // 2 - 1 for extrinsic in extrinsics)
    transfers = _transfers(chain, block)
    return {
        "weight_us_per_transfer": round(weight / 1e6 / max(1, transfers), 1),
        "weight_filled": round(weight / limits["per_class"]["normal"]["max_total"]["ref_time"], 3),
        "bytes_filled": round(size / lengths["max"]["normal"], 3),
    }


def measure(options, console):
    """Both chains, one after the other."""
    times = (QUICK_PAYMENTS, QUICK_WARM_SECONDS, QUICK_SECONDS) if options.quick else (PAYMENTS, WARM_SECONDS, SECONDS)
    any_chain = ["0x" + bytes(32).hex(), 0, 0]
    addresses = command([_signer(), *any_chain, ACCOUNTS]).split()
    found = {name: one(name, addresses, place, times, console) for place, name in enumerate(CHANGES)}
    found["transfers_vs_template"] = round(found[OURS]["transfers_per_s"] / found[STOCK]["transfers_per_s"], 2)
    return found


def show(found, console):
    """Prints the figures for people."""
    console.title("Payments a second that become final, one validator")
    names = ("transfers_per_s", "transfers_in_the_fullest", "ms_to_build_median", "weight_us_per_transfer")
    rows = [
        (
            name,
            *(f"{found[name][field]:,.0f}" for field in names),
            f"{found[name]['weight_filled']:.0%}",
            f"{found[name]['bytes_filled']:.0%}",
        )
        for name in CHANGES
    ]
    head = ("", "a second", "in the fullest block", "ms to build", "us of weight each", "weight filled", "bytes filled")
    table(head, rows, console)
    for name in CHANGES:
        console.text(f"  {name}: {found[name]['capped_by']}")
    console.text(f"  ours by the stock one's: {found['transfers_vs_template']:.2f}")
