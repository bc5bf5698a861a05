"""What is done to the network. Every fault ends, and is undone."""

import signal
import threading
import time
from pathlib import Path

from devnet_lib.errors import RpcError
from devnet_lib.rpc import TIMEOUT_SECONDS
from devnet_lib.scale import ss58_encode

from . import proxy
from .extrinsic import Runtime
from .net import POOL_LIMIT, SMALL_POOL

FAKETIME = [f"/usr/lib/{machine}-linux-gnu/faketime/libfaketimeMT.so.1" for machine in ("x86_64", "aarch64")]
CLOCK_SECONDS_MAX = 6
RESTART_SECONDS = 5.0
# How many of those who lose a node lose all of them.
CUT_OFF = 0.3
FLOOD_TIP = 10**6
# Longer than a request may take.
FLOOD_END_SECONDS = TIMEOUT_SECONDS + 10.0


class Fault:
    """Something that goes wrong for a while."""

    kind = ""
    # How long it may take, in seconds.
    seconds = (30.0, 60.0)

    def __init__(self, net, rng):
        self.net, self.rng = net, rng
        self.length = rng.uniform(*self.seconds)

    def begin(self):
        """Begins it, and says what it is."""
        raise NotImplementedError

    def end(self):
        """Undoes it. Says what was wrong with it, if anything was."""
        raise NotImplementedError

    def is_over(self, since):
        """Whether it has lasted long enough."""
        return since >= self.length


class ValidatorPaused(Fault):
    """One of three: finality stands still meanwhile."""

    kind, seconds = "validator-paused", (30.0, 300.0)

    def begin(self):
        self.place = self.rng.randrange(self.net.validators.count)
        self.process = self.net.validators.all[self.place].process
        self.net.node_is_out(self.place)
        self.process.signal(signal.SIGSTOP)
        return self.net.validators.all[self.place].name

    def end(self):
        self.process.signal(signal.SIGCONT)
        self.net.node_is_back(self.place)


class RpcDropped(Fault):
    """Some workers cannot ask one of their nodes, or any."""

    kind, mode, seconds = "rpc-dropped", proxy.REFUSE, (15.0, 90.0)

    def begin(self):
        names = self.rng.sample(sorted(self.net.rpc_proxies), self.rng.randint(1, len(self.net.rpc_proxies)))
        paths = [self.net.rpc_proxies[name] for name in names]
        # Of some all of them: they are cut off.
        self.hit = [one for of in paths for one in (of if self.rng.random() < CUT_OFF else [self.rng.choice(of)])]
        for one in self.hit:
            one.set(self.mode)
        return ", ".join(one.name for one in self.hit)

    def end(self):
        for one in self.hit:
            one.set(proxy.PASS)


class RpcSilent(RpcDropped):
    """They can, and nothing comes back."""

    kind, mode = "rpc-silent", proxy.FREEZE


class RpcDelayed(RpcDropped):
    """It comes seconds late."""

    kind, mode = "rpc-delayed", proxy.DELAY


class SlowPeer(Fault):
    """A provider's data plane trickles."""

    kind, mode, seconds = "slow-peer", proxy.TRICKLE, (30.0, 90.0)

    def begin(self):
        self.hit = self.rng.sample(sorted(self.net.data_proxies), self.rng.randint(1, 2))
        for name in self.hit:
            self.net.data_proxies[name].set(self.mode)
        return ", ".join(self.hit)

    def end(self):
        for name in self.hit:
            self.net.data_proxies[name].set(proxy.PASS)


class LyingPeer(SlowPeer):
    """What comes out of it is damaged."""

    kind, mode, seconds = "lying-peer", proxy.DAMAGE, (20.0, 60.0)


class SilentPeer(SlowPeer):
    """Connections to it stay open, and nothing comes."""

    kind, mode, seconds = "silent-peer", proxy.FREEZE, (20.0, 60.0)


class PoolFull(Fault):
    """A flood of valid payments through a node with a small pool, each with a little tip."""

    kind, seconds = "pool-full", (20.0, 60.0)

    def begin(self):
        # Calls that it took and refused, and how many it kept at most when it was asked.
        self.over, self.sent, self.refused, self.kept = threading.Event(), 0, 0, 0
        self.thread = threading.Thread(target=self._flood, daemon=True)
        self.thread.start()
        return f"{self.net.validators.all[SMALL_POOL].name}, which keeps {POOL_LIMIT} calls"

    def _flood(self):
        chain = self.net.validators.all[SMALL_POOL].chain
        while not self.over.is_set():
            try:
                runtime = Runtime(chain)
                for signer in self.net.flooders:
                    self._burst(chain, runtime, signer)
                    self.kept = max(self.kept, len(chain.rpc.call("author_pendingExtrinsics")))
            except RpcError:
                self.over.wait(1.0)

    def _burst(self, chain, runtime, signer):
        nonce = chain.next_nonce(ss58_encode(signer.account))
        for step in range(POOL_LIMIT):
            if self.over.is_set():
                return
            call = runtime.transfer(self.net.root.account, 1 + step)
            try:
                chain.rpc.call("author_submitExtrinsic", signer.sign(runtime, call, nonce + step, FLOOD_TIP))
                self.sent += 1
            except RpcError as error:
                if error.__cause__ is not None:
                    # It was not asked at all.
                    raise
                # A pool that is full drops what it has kept longest, and takes none of that again for a while.
                self.refused += 1
                self.over.wait(0.05)
                return

    def end(self):
        self.over.set()
        self.thread.join(FLOOD_END_SECONDS)
        if self.thread.is_alive():
            return f"the flood does not end within {FLOOD_END_SECONDS:.0f} s"
        if not self.refused and self.kept < POOL_LIMIT:
            return f"the pool was never full: {self.sent} calls sent, none refused, at most {self.kept} kept"
        return None


class NodeRestarted(Fault):
    """A node is ended and started again; it has pruned the state of old blocks, as it does by default."""

    kind, seconds = "node-restarted", (20.0, 40.0)
    env = None

    def begin(self):
        self.place, self.started = self.rng.randrange(self.net.validators.count), False
        self.net.stop_node(self.place)
        return self.net.validators.all[self.place].name

    def is_over(self, since):
        if not self.started and since >= RESTART_SECONDS:
            self.started = True
            self.net.start_node(self.place, self.env)
        return super().is_over(since) and self.net.validators.all[self.place].chain.rpc.answers()

    def end(self):
        if not self.started:
            self.net.start_node(self.place)
        self.net.node_is_back(self.place)


class WorkerKilled(Fault):
    """kill -9, and started again."""

    kind, seconds = "worker-killed", (2.0, 20.0)

    def begin(self):
        self.worker = self.rng.choice(self.net.workers())
        self.net.kill_worker(self.worker)
        return self.worker.name

    def end(self):
        self.net.start_again(self.worker)


class ClockOff(Fault):
    """A worker's or a node's clock is some seconds wrong."""

    kind, seconds = "clock-off", (60.0, 120.0)

    def begin(self):
        off = self.rng.choice((-1, 1)) * self.rng.randint(2, CLOCK_SECONDS_MAX)
        env = {"LD_PRELOAD": faketime(), "FAKETIME": f"{off:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        self.worker = self.rng.choice([None, *self.net.workers()])
        if self.worker:
            self._restart_worker(env)
            return f"{self.worker.name}, by {off:+d} s"
        self.place = self.rng.randrange(self.net.validators.count)
        self._restart_node(env)
        return f"{self.net.validators.all[self.place].name}, by {off:+d} s"

    def _restart_worker(self, env):
        process = self.worker.process
        self.net.supervisor.forget(process)
        process.stop()
        self.net.start_again(self.worker, env)

    def _restart_node(self, env):
        self.net.stop_node(self.place)
        self.net.start_node(self.place, env)

    def is_over(self, since):
        if self.worker is None and self.net.validators.all[self.place].chain.rpc.answers():
            self.net.node_is_back(self.place)
        return super().is_over(since)

    def end(self):
        if self.worker:
            self._restart_worker(None)
        else:
            self._restart_node(None)
            self.net.validators.wait_for_answer(self.net.validators.all[self.place])
            self.net.node_is_back(self.place)


class Upgrade(Fault):
    """Another runtime, while tasks are under way."""

    kind, seconds = "runtime-upgrade", (30.0, 60.0)
    wasm = None

    def begin(self):
        chain = self.net.validators.all[0].chain
        runtime = Runtime(chain)
        nonce = chain.next_nonce(ss58_encode(self.net.root.account))
        call = runtime.upgrade(Path(self.wasm).read_bytes())
        chain.rpc.call("author_submitExtrinsic", self.net.root.sign(runtime, call, nonce))
        self.before = runtime.spec
        return f"from version {self.before}"

    def is_over(self, since):
        return super().is_over(since) and self._version() != self.before or since > 4 * self.length

    def _version(self):
        try:
            return self.net.validators.all[0].chain.rpc.call("state_getRuntimeVersion")["specVersion"]
        except RpcError:
            return self.before

    def end(self):
        """It stays."""
        return None if self._version() != self.before else f"the chain stays at version {self.before}"


ALL = (
    ValidatorPaused,
    RpcDropped,
    RpcSilent,
    RpcDelayed,
    SlowPeer,
    LyingPeer,
    SilentPeer,
    PoolFull,
    NodeRestarted,
    WorkerKilled,
    ClockOff,
    Upgrade,
)


def faketime():
    """Debian's libfaketime, or nothing."""
    return next((path for path in FAKETIME if Path(path).exists()), None)


class Schedule:
    """One fault after the other: first every kind, then whichever chance says."""

    REST_SECONDS = (8.0, 25.0)

    def __init__(self, net, rng, kinds, console):
        self.net, self.rng, self.console = net, rng, console
        self.kinds = list(kinds)
        self.first = rng.sample(self.kinds, len(self.kinds))
        self.current, self.begun, self.next_at = None, 0.0, time.monotonic() + rng.uniform(*self.REST_SECONDS)
        self.log = []

    def step(self, may_begin=True):
        """Ends the fault that has lasted long enough, begins the next one when it is time."""
        now = time.monotonic()
        if self.current is not None:
            if self.current.is_over(now - self.begun):
                self.stop()
        elif may_begin and self.kinds and now >= self.next_at:
            kind = self.first.pop() if self.first else self.rng.choice(self.kinds)
            self.current, self.begun = kind(self.net, self.rng), now
            what = self.current.begin()
            self.log.append({"kind": kind.kind, "what": what, "at": time.time(), "seconds": None})
            self.console.step(f"fault: {kind.kind}, {what}, for {self.current.length:.0f} s")
            if kind is Upgrade:
                self.kinds.remove(kind)

    def stop(self):
        """Undoes what is under way."""
        if self.current is None:
            return
        fault, self.current = self.current, None
        problem = fault.end()
        if problem:
            self.log[-1]["problem"] = problem
        self.log[-1]["seconds"] = round(time.monotonic() - self.begun, 1)
        self.next_at = time.monotonic() + self.rng.uniform(*self.REST_SECONDS)
        self.console.step(f"over: {fault.kind}" + (f", but {problem}" if problem else ""))

    def counts(self):
        """Kind -> how often."""
        found = {kind.kind: 0 for kind in ALL}
        for entry in self.log:
            found[entry["kind"]] += 1
        return found
