"""Validators: `surety-node` processes that make blocks and finality."""

import fcntl
import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import wait
from .chain import Chain
from .folders import cache_dir
from .processes import Process, run

DEV_NAMES = ("alice", "bob", "charlie")
# Keystore types of the runtime's session keys, with the scheme of each.
SESSION_KEYS = (("babe", "sr25519"), ("gran", "ed25519"), ("audi", "sr25519"))
# Several networks may start side by side, and each node compiles its runtime.
START_SECONDS = 300
FINALITY_SECONDS = 300
# Of a node's commands the longest works out a genesis, which runs the runtime.
COMMAND_SECONDS = 300
# How long the chain specification of another build is kept after its last use.
KEPT_SECONDS = 6 * 3600


def _run(argv):
    return run(argv, COMMAND_SECONDS)


def changed_spec(binary, chain, change, folder):
    """A chain's raw specification in which `change` has been at the genesis, which is JSON."""
    plain, raw = folder / "plain.json", folder / "raw.json"
    _run([binary, "export-chain-spec", "--chain", chain, "--output", plain])
    spec = json.loads(plain.read_text())
    change(spec["genesis"]["runtimeGenesis"]["patch"])
    plain.write_text(json.dumps(spec))
    _run([binary, "export-chain-spec", "--chain", plain, "--raw", "--output", raw])
    return raw


def raw_spec(binary, chain):
    """A chain's specification with its genesis worked out, made once for each build of the node.

    That takes longer than all else in starting a node, and would be done by each of them.
    """
    folder = cache_dir() / "chain-specs"
    folder.mkdir(parents=True, exist_ok=True)
    with open(binary, "rb") as file:
        build = hashlib.file_digest(file, "blake2b").hexdigest()[:16]
    path = folder / f"{chain}-{build}.json"
    # Networks that start side by side make it once.
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            path.touch()
        else:
            # Nodes of another build may run, and read theirs again when they are asked for it.
            stale = time.time() - KEPT_SECONDS
            for old in folder.glob(f"{chain}-*.json"):
                if old.stat().st_mtime < stale:
                    old.unlink()
            fresh = path.with_suffix(".new")
            _run([binary, "export-chain-spec", "--chain", chain, "--raw", "--output", fresh])
            fresh.rename(path)
    return path


@dataclass
class Validator:
    """One validator, running or not."""

    index: int
    name: str
    base_path: Path
    node_key: Path
    peer_id: str
    process: Process | None = None
    chain: Chain = field(default=None)


class Validators:
    """A chain's validators on this machine."""

    def __init__(self, supervisor, binary, ports, home, chain="local", count=3):
        self.supervisor, self.binary, self.ports = supervisor, binary, ports
        self.home, self.chain_id, self.count = Path(home), chain, count
        self.all, self.spec = [], None
        # Of what single validators are told beside the rest, by their places.
        self.flags = {}
        # Changes the genesis, where it is not to be as the chain has it.
        self.change = None

    def prepare(self):
        """Checks the ports and makes what every validator needs before the first can start."""
        self.ports.check_validators(self.count)
        self.home.mkdir(parents=True, exist_ok=True)
        if self.spec:
            # It was made elsewhere, for this build.
            pass
        elif self.change:
            self.spec = changed_spec(self.binary, self.chain_id, self.change, self.home)
        else:
            self.spec = raw_spec(self.binary, self.chain_id)
        with ThreadPoolExecutor() as pool:
            self.all = list(pool.map(self._prepare, range(self.count)))

    def _prepare(self, index):
        is_known = self.chain_id == "local" and index < len(DEV_NAMES)
        name = DEV_NAMES[index] if is_known else f"validator-{index + 1}"
        base = self.home / name
        base.mkdir(parents=True)
        key = base / "node.key"
        # Only the name is on the command line: the secret goes to the file.
        peer = _run([self.binary, "key", "generate-node-key", "--file", key]).stderr.strip().splitlines()[-1]
        key.chmod(0o600)
        chain = Chain(f"http://127.0.0.1:{self.ports.rpc(index)}")
        return Validator(index, name, base, key, peer, chain=chain)

    def insert_keys(self, index, uri_file):
        """Puts the session keys of a secret URI, which is in a file, into a validator's keystore."""
        for kind, scheme in SESSION_KEYS:
            _run(
                [self.binary, "key", "insert", "--base-path", self.all[index].base_path]
                + ["--chain", self.spec, "--key-type", kind, "--scheme", scheme, "--suri", uri_file]
            )

    def address(self, index, websocket=False):
        """A validator's network address."""
        front = f"{self.ports.p2p_ws(index)}/ws" if websocket else f"{self.ports.p2p(index)}"
        return f"/ip4/{self.host(index)}/tcp/{front}/p2p/{self.all[index].peer_id}"

    def host(self, index):
        """Where a validator is found by the others."""
        return "127.0.0.1"

    def start(self, index, env=None):
        """Starts a validator, for the first time or again."""
        validator = self.all[index]
        others = [self.address(i) for i in range(self.count) if i != index]
        argv = [self.binary, "--chain", self.spec, "--validator", "--base-path", validator.base_path]
        argv += [f"--{validator.name}"] if validator.name in DEV_NAMES else ["--name", validator.name]
        argv += ["--node-key-file", validator.node_key]
        argv += ["--listen-addr", f"/ip4/{self.host(index)}/tcp/{self.ports.p2p(index)}"]
        argv += ["--listen-addr", f"/ip4/{self.host(index)}/tcp/{self.ports.p2p_ws(index)}/ws"]
        argv += ["--rpc-port", self.ports.rpc(index), "--rpc-cors", "all"]
        argv += ["--prometheus-port", self.ports.prometheus(index)]
        # Found by address, on this machine alone.
        argv += ["--bootnodes", *others, "--no-mdns", "--allow-private-ip"]
        argv += ["--no-telemetry", *self.flags.get(index, [])]
        validator.process = self.supervisor.start(validator.name, argv, env)
        return validator

    def start_all(self):
        """Starts all and waits until each answers."""
        for index in range(self.count):
            self.start(index)
        for validator in self.all:
            self.wait_for_answer(validator)

    def wait_for_answer(self, validator):
        """Waits until a validator answers RPC."""
        wait.until(f"{validator.name} to answer", validator.chain.rpc.answers, START_SECONDS, self.supervisor.check)

    def wait_for_finality(self, number, through=0):
        """Waits until block `number` is final, and returns the last final one."""
        chain = self.all[through].chain

        def final():
            found = chain.finalized_number()
            return found if found >= number else None

        return wait.until(f"block {number} to be final", final, FINALITY_SECONDS, self.supervisor.check)

    def kill(self, index):
        """Ends a validator as a power cut would."""
        process = self.all[index].process
        self.supervisor.forget(process)
        process.kill()
