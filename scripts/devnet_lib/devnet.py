"""A whole development network: validators, providers, a client, and a real model."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import models, wait
from .errors import DevnetError
from .folders import CHEAT, REPO, binaries, cache_dir, write_secret
from .ports import Ports
from .processes import Process, Supervisor
from .surety import Surety
from .validators import Validators

TEXT = REPO / "examples/text/paraphrases.txt"
MODEL, GENERATOR = models.EMBEDDER, models.GENERATOR
PROMPT = "It was a clear steel-blue day, and"
# Who pays for what: accounts that the `local` preset endows and everybody knows.
SPONSORS = (
    "//Alice",
    "//Bob",
    "//Charlie",
    "//Dave",
    "//Eve",
    "//One",
    "//Two",
    "//Alice//stash",
    "//Charlie//stash",
    "//Dave//stash",
)
CLIENT = "//Ferdie"
STASH_SURE, BOND_SURE, AGENT_SURE = 1100, 1000, 20
# More lines than there are: the difference comes back.
UNITS_MAX = 100
# Of whoever shares its machine with many others.
REGISTER_SECONDS = 240
# A life takes two minutes on a machine with time, and may take six.
TASK_SECONDS = 900
# Flags that only one program has.
WRONG = {"--cheat", "--crash-at"}


@dataclass
class Provider:
    """A provider with its two keys."""

    index: int
    surety: Surety
    stash: str
    agent: str
    process: Process | None = None
    role = "provider"

    @property
    def name(self):
        """What it is called, and its process."""
        return f"{self.role}-{self.index + 1}"


@dataclass
class Verifier(Provider):
    """A verifier with its two keys. It asks its own validator."""

    role = "verifier"


class Devnet:
    """Starts it, keeps it, stops it."""

    # What each agent has for fees and prices.
    agent_sure = AGENT_SURE
    # By name: the models that there are.
    embedder, generator = MODEL, GENERATOR
    # Of each worker. On a small machine the validators need theirs.
    threads = 1

    def __init__(
        self, run_dir, console, providers=3, ports=None, databases=None, verifiers=3, cheats=None, spares=0, rich=()
    ):
        ports = ports or Ports()
        self.run_dir, self.console, self.ports = Path(run_dir), console, ports
        self.provider_count, self.verifier_count, self.spare_count = providers, verifiers, spares
        # What single workers do wrong, by their names, such as "provider-1".
        self.cheats = cheats or {}
        # Workers with ten times the stake and money of others, by their names.
        self.rich = set(rich)
        self.bin = binaries(*([CHEAT] if self.cheats else []))
        self.logs = self.run_dir / "logs"
        self.logs.mkdir(parents=True)
        self.supervisor = Supervisor(self.logs)
        databases = databases or self.run_dir / "validators"
        self.validators = Validators(self.supervisor, self.bin / "surety-node", ports, databases)
        self.providers, self.verifiers, self.client = [], [], None
        # Further providers with keys, stake and models: whoever wants one starts it.
        self.spares = []

    @property
    def chain(self):
        """The first validator's view."""
        return self.validators.all[0].chain

    @property
    def ws(self):
        """Where programs connect."""
        return f"ws://127.0.0.1:{self.ports.rpc(0)}"

    def surety(self, home, key_file=None, rpc=None):
        """The `surety` command with a home of its own."""
        return Surety(self.supervisor, self.bin / "surety", home, rpc or self.ws, key_file)

    def stop(self):
        """Ends everything that was started."""
        self.supervisor.stop()

    def up(self):
        """Everything, until the providers can be given tasks."""
        self.ports.check_workers(self.provider_count + self.spare_count)
        self.validators.prepare()
        self.console.step(f"starting {self.validators.count} validators (logs in {self.logs})")
        self.validators.start_all()
        self.console.step("validators answer; waiting for the first final block")
        number = self.validators.wait_for_finality(1)
        self.console.step(f"block {number} is final")
        home = self.prepare_models()
        # Everything from here on mostly waits for blocks to be final.
        with ThreadPoolExecutor(1 + len(SPONSORS)) as pool:
            registered = pool.submit(self.register_models, home)
            self.make_accounts(pool)
            registered.result()
        self.share_models(home)
        self.console.step(f"starting {self.provider_count} providers, and a verifier beside each validator")
        for provider in self.providers:
            self.start_provider(provider)
        for verifier in self.verifiers:
            self.start_verifier(verifier)
        for provider in self.providers:
            self.wait_for_provider(provider)
        self.console.step("all providers are registered on the chain")
        for verifier in self.verifiers:
            self.wait_for_verifier(verifier)
        self.console.step("all verifiers are at work")

    def prepare_models(self):
        """The models' files, from the cache, the network, or made here; checked in any case."""
        # The engine's own tests keep their models there, too.
        home = cache_dir()
        self.models = models.prepare(self.surety(home), self.console)
        self.model = self.models[MODEL]
        return home

    def make_accounts(self, pool):
        """Keys, money and stake for everybody who works."""
        roles = ["provider"] * self.provider_count + ["verifier"] * self.verifier_count
        roles += ["provider"] * self.spare_count
        if len(roles) > len(SPONSORS):
            raise DevnetError(f"{len(roles)} workers, and accounts for {len(SPONSORS)}: name more in SPONSORS")
        self.console.step(f"making {len(roles)} stashes with an agent each, and bonding {BOND_SURE} SURE")
        places = [roles[:at].count(role) for at, role in enumerate(roles)]
        # Each has a sponsor of its own, so that no two calls of one key overlap.
        workers = list(pool.map(self.make_worker, roles, places, SPONSORS[: len(roles)]))
        providers = [worker for worker in workers if not isinstance(worker, Verifier)]
        self.verifiers = [worker for worker in workers if isinstance(worker, Verifier)]
        self.providers, self.spares = providers[: self.provider_count], providers[self.provider_count :]

    def make_worker(self, role, index, sponsor):
        """One worker's keys, funds, bond and nomination."""
        home = self.run_dir / f"{role}-{index + 1}"
        home.mkdir()
        keys = {name: home / f"{name}.key" for name in ("stash", "agent", "sponsor")}
        write_secret(keys["sponsor"], sponsor)
        by = {name: self.surety(home, key) for name, key in keys.items()}
        stash, agent = (by[name].run("account", "new")["address"] for name in ("stash", "agent"))
        times = 10 if f"{role}-{index + 1}" in self.rich else 1
        by["sponsor"].run("account", "fund", "--to", stash, "--amount", f"{STASH_SURE * times} SURE")
        with ThreadPoolExecutor(1) as beside:
            funded = beside.submit(
                by["sponsor"].run, "account", "fund", "--to", agent, "--amount", f"{self.agent_sure * times} SURE"
            )
            by["stash"].run("account", "bond", "--role", role, "--amount", f"{BOND_SURE * times} SURE")
            by["stash"].run("account", "agent", "set", "--agent", agent)
            funded.result()
        self.console.detail(f"{role} {index + 1}: stash {stash}, agent {agent}")
        if role == "provider":
            return Provider(index, self.surety(home, keys["agent"]), stash, agent)
        ws = f"ws://127.0.0.1:{self.ports.rpc(index % self.validators.count)}"
        return Verifier(index, self.surety(home, keys["agent"], ws), stash, agent)

    def register_models(self, home):
        """Publishes the models."""
        folder = self.run_dir / "client"
        folder.mkdir()
        self.client = self.surety(folder, write_secret(folder / "account.key", CLIENT))
        client = self.surety(home, self.client.key_file)
        for name, model in self.models.items():
            client.run("model", "register", name)
            self.console.step(f"{name} is registered on the chain as {model}")

    def share_models(self, home):
        """Hands the models' files to everybody who computes: they are only read."""
        for worker in self.workers() + self.spares:
            (worker.surety.home / "models").symlink_to(home / "models")

    def start_provider(self, provider, *flags, models=None, env=None, program=None):
        """Starts a provider that offers these models, for the first time or again; `program` in place of `surety`."""
        listen = f"127.0.0.1:{self.ports.data(provider.index)}"
        args = ["provider", "up", "--stash", provider.stash, "--listen", listen, "--threads", str(self.threads)]
        # Receipts reach the chain soon, for whoever watches.
        env = {"SURETY_CALLS_BATCH_BLOCKS": "10", **(env or {})}
        # There may be other models in the cache.
        models = models or (self.embedder, self.generator)
        args += [part for model in models for part in ("--model", model)] + list(flags)
        self.start_worker(provider, args, env, program)

    def start_verifier(self, verifier, *flags, env=None):
        """Starts a verifier, for the first time or again."""
        args = ["verifier", "up", "--stash", verifier.stash, "--threads", str(self.threads)]
        args += ["--model", self.embedder, "--model", self.generator, *flags]
        self.start_worker(verifier, args, env)

    def start_worker(self, worker, args, env, program=None):
        """Starts a provider or verifier, honest or not."""
        surety = worker.surety
        if worker.name in self.cheats:
            args = [*args, "--cheat", self.cheats[worker.name]]
        if program or WRONG.intersection(args):
            surety = surety.played_by(program or binaries(CHEAT) / CHEAT)
        worker.process = surety.start(worker.name, *args, env=env)

    def workers(self):
        """Providers and verifiers, but for the spare ones."""
        return self.providers + self.verifiers

    def wait_for_verifier(self, verifier):
        """Waits until a verifier says that it is at work."""
        wait.until(
            f"verifier {verifier.index + 1} to be at work",
            lambda: "verifier is up" in verifier.process.log.read_text(errors="replace"),
            REGISTER_SECONDS,
            self.supervisor.check,
        )

    def wait_for_provider(self, provider):
        """Waits until the chain knows a provider."""
        wait.until(
            f"provider {provider.index + 1} to be registered",
            lambda: self.chain.provider_record(provider.stash),
            REGISTER_SECONDS,
            self.supervisor.check,
        )

    def task_args(self, text=TEXT, cap="3 SURE", redundancy=3, units_max=UNITS_MAX):
        """What `surety task submit` needs to be told in any case. The client pays for the units there are."""
        args = ["task", "submit", "--file", text, "--model", self.embedder, "--redundancy", redundancy, "--cap", cap]
        args += ["--units-max", units_max, "--until", "settled"]
        return args + ["--listen", f"127.0.0.1:{self.ports.client()}"]

    def submit(self, out, timeout=TASK_SECONDS, **options):
        """Posts a task, follows it to its end, and returns the client's report."""
        args = self.task_args(**options)
        return self.client.run(*args, "--out", out, on_line=self.console.detail, timeout=timeout)

    def generation_args(self, prompt=PROMPT, cap="1 SURE", redundancy=3, max_tokens=64, temperature=0.8, seed=7):
        """What `surety task submit` needs to be told to have text generated."""
        args = ["task", "submit", "--raw", "--prompt", prompt, "--model", self.generator]
        args += ["--redundancy", redundancy, "--cap", cap]
        args += ["--max-tokens", max_tokens, "--temperature", temperature, "--seed", seed, "--until", "settled"]
        return args + ["--listen", f"127.0.0.1:{self.ports.client()}"]

    def generate(self, on_event=None, timeout=TASK_SECONDS, **options):
        """Has text generated, and returns the client's report."""
        args = self.generation_args(**options)
        return self.client.follow(*args, "--follow", on_event=on_event, on_line=self.console.detail, timeout=timeout)

    def nearest(self, out, text=TEXT):
        """For every line of the text, the nearest other line by its vector."""
        count = len(text.read_text().splitlines())
        return self.client.run("task", "nearest", "--input", text, "--output", out, "--count", count)

    def purses(self, block=None):
        """What each stash has beside its stake, in plancks, in the last final block or another: work, with what is
        minted for it, and audits are paid into it."""
        workers = self.workers() + self.spares
        return {worker.stash: self.chain.account(worker.stash, block)["free"] for worker in workers}

    def memory(self):
        """Resident memory of each running process, in MiB."""
        rows = [(process.name, process.pid, process.memory()) for process in self.supervisor.processes]
        return [
            {"process": name, "pid": pid, "rss_mib": memory[0], "rss_peak_mib": memory[1]}
            for name, pid, memory in rows
            if memory
        ]
