"""A development network in which every path of a worker goes through a proxy, and every process can be made to fail."""

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devnet_lib.devnet import Devnet
from devnet_lib.folders import write_secret
from devnet_lib.ports import Ports
from devnet_lib.processes import Supervisor, run
from devnet_lib.scale import ss58_encode
from devnet_lib.validators import COMMAND_SECONDS

from .extrinsic import Signer
from .proxy import Proxies

PORTS = Ports(700)
# From here: proxies before nodes and data planes, and the clients.
PROXY_PORT, CLIENT_PORT = 21_000, 22_000
# All together stay below the cap of SURE.
ENDOWMENT = 10**17
FLOODERS = 8
# The node whose pool is small, and how many calls it takes.
SMALL_POOL, POOL_LIMIT = 2, 48


class ChaosNet(Devnet):
    """Three validators, providers and verifiers, and accounts for clients."""

    agent_sure = 500

    def __init__(self, run_dir, console, clients, small_pool=False):
        super().__init__(run_dir, console, ports=PORTS)
        self.proxies, self.client_count = Proxies(), clients
        # By worker's name: proxies before the nodes that it asks, and the one before its data plane.
        self.rpc_proxies, self.data_proxies = {}, {}
        self.root = Signer("root")
        self.flooders = [Signer(f"flooder {index}") for index in range(FLOODERS)]
        self.clients, self.client_addresses = [], []
        # They come and go: whoever waits for the others does not ask for them.
        self.client_processes = Supervisor(self.logs)
        # When a node did not answer: {place: [(from, to)]}; the last one may go on.
        self.outages = {place: [] for place in range(self.validators.count)}
        self.validators.change = self._genesis
        if small_pool:
            self.validators.flags[SMALL_POOL] = ["--pool-limit", POOL_LIMIT]

    def _genesis(self, patch):
        """Money for clients and for ourselves, and a root that upgrades the runtime."""
        self.client_addresses = self._addresses(self.client_count)
        mine = [ss58_encode(signer.account) for signer in (self.root, *self.flooders)]
        patch["balances"]["balances"] += [[address, ENDOWMENT] for address in (*self.client_addresses, *mine)]
        patch["sudo"] = {"key": ss58_encode(self.root.account)}

    def _addresses(self, count):
        def address(uri):
            argv = [self.bin / "surety-node", "key", "inspect", "--output-type", "json", uri]
            return json.loads(run(argv, COMMAND_SECONDS).stdout)["ss58PublicKey"]

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(address, map(client_uri, range(count))))

    def stop(self):
        """Ends everything, what is paused included."""
        for process in self.supervisor.processes:
            process.signal(signal.SIGCONT)
        self.client_processes.stop()
        super().stop()
        self.proxies.close()

    def make_accounts(self, pool):
        super().make_accounts(pool)
        port = PROXY_PORT
        for worker in self.workers():
            self.rpc_proxies[worker.name] = []
            # Its own node first, then the others.
            for step in range(self.validators.count):
                node = (worker.index + step) % self.validators.count
                proxy = self.proxies.add(
                    f"{worker.name} to {self.validators.all[node].name}", port, self.ports.rpc(node)
                )
                proxy.node = node
                self.rpc_proxies[worker.name].append(proxy)
                port += 1
            worker.surety.rpc = [f"ws://127.0.0.1:{proxy.port}" for proxy in self.rpc_proxies[worker.name]]
        for provider in self.providers:
            proxy = self.proxies.add(f"data plane of {provider.name}", port, self.ports.data(provider.index))
            self.data_proxies[provider.name] = proxy
            port += 1
        for place in range(self.client_count):
            self.clients.append(self._client(place))

    def _client(self, place):
        home = self.run_dir / f"client-{place}"
        home.mkdir()
        key = write_secret(home / "account.key", client_uri(place))
        (home / "models").symlink_to(Path(self.bench_models))
        nodes = [(place + step) % self.validators.count for step in range(self.validators.count)]
        return self.surety(home, key, [f"ws://127.0.0.1:{self.ports.rpc(node)}" for node in nodes])

    def prepare_models(self):
        home = super().prepare_models()
        self.bench_models = home / "models"
        return home

    def start_worker(self, worker, args, env, program=None):
        """Providers are reached through their proxies alone."""
        if worker.role == "provider":
            args = [*args, "--external", f"/ip4/127.0.0.1/tcp/{self.data_proxies[worker.name].port}"]
        super().start_worker(worker, args, env, program)

    # --- what fails -------------------------------------------------------------------------------------------------

    def node_is_out(self, place):
        """A node does not answer from now on."""
        self.outages[place].append((time.time(), None))

    def node_is_back(self, place):
        """It answers again."""
        if self.outages[place] and self.outages[place][-1][1] is None:
            self.outages[place][-1] = (self.outages[place][-1][0], time.time())

    def kill_worker(self, worker):
        """Ends a worker as a power cut would."""
        self.supervisor.forget(worker.process)
        worker.process.kill()

    def start_again(self, worker, env=None):
        """Starts a worker again, as it was."""
        start = self.start_provider if worker.role == "provider" else self.start_verifier
        start(worker, env=env)

    def stop_node(self, place):
        """Ends a node in good order."""
        process = self.validators.all[place].process
        self.node_is_out(place)
        self.supervisor.forget(process)
        process.stop()

    def start_node(self, place, env=None):
        """Starts a node again, on the database that it left."""
        self.validators.start(place, env)

    def answered(self, name, first, last):
        """For how many whole seconds between two times at least one node could be asked by a worker."""
        found, at = 0, first
        while at < last:
            paths = self.rpc_proxies[name]
            found += any(
                not _within(proxy.outages, at) and not _within(self.outages[proxy.node], at) for proxy in paths
            )
            at += 1
        return found


def _within(outages, at):
    return any(first <= at and (last is None or at <= last) for first, last in outages)


def client_uri(place):
    """The secret of a client: everybody knows it."""
    return f"//Surety//bench//{place}"
