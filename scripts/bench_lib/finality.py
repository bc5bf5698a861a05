"""How long it takes until a block is final: four validators, each in a network namespace of its own, some way apart.

The time of a block begins as its author has it, and ends, for each node, as that node's RPC says that it is final.
"""

import statistics
import threading
import time

from devnet_lib import wait
from devnet_lib.errors import RpcError
from devnet_lib.folders import binaries, new_run_dir, remove_data, write_secret
from devnet_lib.ports import Ports
from devnet_lib.processes import Supervisor
from devnet_lib.scale import Reader, blake2_256
from devnet_lib.validators import Validators

from .chaos.extrinsic import compact
from .errors import BenchError
from .namespaces import Namespaces
from .report import table
from .websocket import Connection

DELAYS_MS = (0, 50, 150)
BLOCKS, QUICK_BLOCKS = 100, 15
# Until the network goes its usual way.
FIRST_BLOCKS = 5
# Beside the devnet.
PORTS = Ports(600)
VALIDATORS = 4
URI = "//Surety//testnet//{}"
# With empty slots, and what is not final yet.
SECONDS_A_BLOCK_MAX = 6
# As the runtime has it (runtime/src/units.rs).
SLOT_SECONDS = 2
PRE_RUNTIME = 6
JOIN_SECONDS = 10


class Apart(Validators):
    """The validators of `testnet`, each in its namespace."""

    def __init__(self, spaces, supervisor, home):
        super().__init__(supervisor, binaries() / "surety-node", PORTS, home, chain="testnet", count=VALIDATORS)
        self.spaces = spaces

    def host(self, index):
        return self.spaces.address(index)

    def start(self, index, env=None):
        with self.spaces.inside(index):
            return super().start(index, env)

    def wait_for_answer(self, validator):
        with self.spaces.inside(validator.index):
            super().wait_for_answer(validator)

    def wait_for_finality(self, number, through=0):
        with self.spaces.inside(through):
            return super().wait_for_finality(number, through)


def header_hash(header):
    """Of a header as RPC has it."""
    parts = [bytes.fromhex(header[name][2:]) for name in ("parentHash", "stateRoot", "extrinsicsRoot")]
    logs = [bytes.fromhex(log[2:]) for log in header["digest"]["logs"]]
    encoded = parts[0] + compact(int(header["number"], 16)) + parts[1] + parts[2]
    return "0x" + blake2_256(encoded + compact(len(logs)) + b"".join(logs)).hex()


def slot_of(header):
    """In which slot a block was made, by its BABE digest."""
    for log in header["digest"]["logs"]:
        reader = Reader(bytes.fromhex(log[2:]))
        if reader.u8() == PRE_RUNTIME and reader.take(4) == b"BABE":
            digest = Reader(reader.bytes())
            digest.u8(), digest.u32()
            return digest.uint(8)
    raise BenchError(f"no slot in {header}")


class Follower(threading.Thread):
    """Takes down when one node has a block, and when it says that it is final."""

    def __init__(self, connection):
        super().__init__(daemon=True)
        self.connection = connection
        # [(time, header)]
        self.had, self.final = [], []
        # Why it sees no more.
        self.fault = None
        imports, finals = (connection.ask(f"chain_subscribe{heads}Heads") for heads in ("All", "Finalized"))
        # Which list is meant by an answer, and then by a subscription.
        self._asked, self._subscribed = {imports: self.had, finals: self.final}, {}

    def run(self):
        try:
            while True:
                self._note(self.connection.receive())
        except (RpcError, OSError, ValueError, KeyError) as error:
            # So it ends, too, once the connection is closed: then nobody asks any more.
            self.fault = error

    def _note(self, message):
        now = time.time()
        if "params" in message:
            said = message["params"]
            self._subscribed[said["subscription"]].append((now, said["result"]))
        else:
            self._subscribed[message["result"]] = self._asked[message["id"]]

    def final_number(self):
        """The last block that it said is final."""
        if self.fault:
            raise BenchError(f"a node is not followed any more: {self.fault!r}")
        return int(self.final[-1][1]["number"], 16) if self.final else 0


def p95(values):
    """What nineteen of twenty values are not above."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def times(followers):
    """What the followers saw, in seconds by block and node."""
    headers, first = {}, {}
    for follower in followers:
        for at, header in list(follower.had):
            name = header_hash(header)
            headers[name] = header
            first[name] = min(at, first.get(name, at))
    # Of those that did not make it.
    since_first = [at - first[header_hash(header)] for follower in followers for at, header in list(follower.had)]
    arrived = [seconds for seconds in since_first if seconds > 0]
    finals = [_final_times(list(follower.final), headers) for follower in followers]
    # What one node has not seen final yet would count by those that were fast.
    counted = [name for name in first if all(name in of for of in finals)]
    if not counted:
        raise BenchError("no block became final on all nodes")
    since_had = [of[name] - first[name] for of in finals for name in counted]
    since_slot = [of[name] - slot_of(headers[name]) * SLOT_SECONDS for of in finals for name in counted]
    numbers = [int(headers[name]["number"], 16) for name in counted]
    among = [name for name, of in headers.items() if min(numbers) <= int(of["number"], 16) <= max(numbers)]
    return {
        "blocks": len(counted),
        "p50_s": round(statistics.median(since_had), 3),
        "p95_s": round(p95(since_had), 3),
        "max_s": round(max(since_had), 3),
        "from_slot_p50_s": round(statistics.median(since_slot), 3),
        "from_slot_p95_s": round(p95(since_slot), 3),
        "import_elsewhere_p50_s": round(statistics.median(arrived), 3),
        "import_elsewhere_p95_s": round(p95(arrived), 3),
        "blocks_not_of_the_chain": len(among) - len(counted),
    }


def _final_times(said, headers):
    """When a node first said so of each block, itself or through one of its descendants."""
    found = {}
    for at, header in said:
        name = header_hash(header)
        while name in headers and name not in found:
            found[name] = at
            name = headers[name]["parentHash"]
    return found


def at(delay_ms, blocks, console):
    """Measures with one delay."""
    folder = new_run_dir()
    logs = folder / "logs"
    logs.mkdir()
    # The network's process is forked before anything else is started.
    spaces = Namespaces(VALIDATORS, delay_ms / 1e3)
    supervisor, connections = Supervisor(logs), []
    try:
        net = Apart(spaces, supervisor, folder / "validators")
        net.prepare()
        for index in range(VALIDATORS):
            net.insert_keys(index, write_secret(folder / f"{index}.key", URI.format(index)))
        net.start_all()
        net.wait_for_finality(FIRST_BLOCKS)
        for index in range(VALIDATORS):
            with spaces.inside(index):
                connections.append(Connection(PORTS.rpc(index)))
        followers = [Follower(connection) for connection in connections]
        for follower in followers:
            follower.start()
        first = wait.until("a final block", followers[0].final_number, 60, supervisor.check)
        console.step(f"{delay_ms} ms: {blocks} blocks from {first} on")
        last = first + blocks
        done = lambda: min(follower.final_number() for follower in followers) >= last  # noqa: E731
        wait.until(f"block {last} to be final", done, blocks * SECONDS_A_BLOCK_MAX, supervisor.check)
        for connection in connections:
            connection.close()
        for follower in followers:
            follower.join(JOIN_SECONDS)
        found = times(followers)
        console.step(f"{delay_ms} ms: final after {found['p50_s']:.2f} s, {found['p95_s']:.2f} s of one in twenty")
        return found
    finally:
        supervisor.stop()
        spaces.close()
        remove_data(folder)


def measure(options, console):
    """With every delay, one after the other."""
    blocks = QUICK_BLOCKS if options.quick else BLOCKS
    return {str(delay): at(delay, blocks, console) for delay in DELAYS_MS}


def show(found, console):
    """Prints the figures for people."""
    console.title("Seconds until a block is final on a node, four validators, by the delay between them")
    rows = [
        (
            f"{delay} ms",
            *(f"{of[name]:.2f}" for name in ("p50_s", "p95_s", "max_s", "from_slot_p50_s", "import_elsewhere_p50_s")),
            of["blocks"],
            of["blocks_not_of_the_chain"],
        )
        for delay, of in found.items()
    ]
    head = (
        "one way",
        "p50",
        "p95",
        "most",
        "p50 since its slot",
        "p50 until others have it",
        "blocks",
        "beside the chain",
    )
    table(head, rows, console)
