"""The network: a provider and a verifier on the device, one of each on the processor, and two clients."""

import contextlib
import json
import os
import re
import shutil
import urllib.request

from devnet_lib import models
from devnet_lib.errors import RpcError
from devnet_lib.folders import cache_dir, write_secret
from devnet_lib.processes import Process
from devnet_lib.verdict import ANSI

from .. import gpu_proofs
from .bundle import EMBEDDER, SPEC

# Who computes on the device; the others do on the processor.
ON_DEVICE = ("provider-1", "verifier-2")
SECOND_CLIENT = "//Eve"
PROCESSOR = "cpu"
CORES_PER_WORKER = 5
READ_SECONDS = 10
# Checks of the doctor's that are about what computes.
DOCTORS = ("device", "benchmark", "processor")
OPENED = re.compile(r"exact models run on this device.*\bname=(.+)")
# What a worker says when something is wrong with its device.
TELLING = re.compile(r"\b(WARN|ERROR)\b.*(device|processor|benchmark|graph)|panicked", re.IGNORECASE)


class Net(gpu_proofs.Net):
    """It. The provider on the device is measured."""

    apart = ("provider-2",)
    embedder = EMBEDDER
    threads = max(1, (os.cpu_count() or 1) // CORES_PER_WORKER)

    def __init__(self, run_dir, console, device, memory_mib):
        super().__init__(run_dir, console, providers=2, verifiers=2)
        self.validators.spec = self.bin / SPEC
        self.device, self.memory_mib = device, memory_mib
        self.doctor, self.samples = None, None

    @property
    def is_on_device(self):
        """Whether there is one: without, all of it is tried out on the processor."""
        return self.device != PROCESSOR

    def up(self):
        """Everything, with the driver's figures beside it every second."""
        if self.is_on_device and shutil.which("nvidia-smi"):
            fields = "timestamp,utilization.gpu,memory.used,clocks.sm,power.draw,temperature.gpu"
            argv = ["nvidia-smi", "-l", "1", f"--query-gpu={fields}", "--format=csv"]
            self.samples = Process("nvidia-smi", argv, self.logs / "nvidia-smi.log")
        super().up()

    def stop(self):
        """Ends everything that was started."""
        if self.samples:
            self.samples.kill()
        super().stop()

    def prepare_models(self):
        """They were brought here."""
        home = cache_dir()
        surety = self.surety(home)
        self.models = {name: models.shown(surety, name)["id"] for name in (self.embedder, self.generator)}
        return home

    def make_accounts(self, pool):
        """Keys, money and stake for everybody; meanwhile the doctor looks at the device."""
        asked = pool.submit(self._ask_doctor)
        super().make_accounts(pool)
        folder = self.run_dir / "second-client"
        folder.mkdir()
        self.second_client = self.surety(folder, write_secret(folder / "account.key", SECOND_CLIENT))
        self.doctor = asked.result()

    def _ask_doctor(self):
        """What `surety doctor` says of the device, before there is a key or an agent."""
        env = {"SURETY_PROVIDER_DEVICE": self.device, "SURETY_PROVIDER_BENCHMARK": "on"}
        if self.is_on_device:
            env["SURETY_PROVIDER_DEVICE_MEMORY_MIB_MAX"] = str(self.memory_mib)
        outcome = self.surety(cache_dir()).attempt("doctor", env=env)
        with contextlib.suppress(ValueError):
            return {of["name"]: of for of in json.loads(outcome.stdout) if of["name"] in DOCTORS}
        return {"said": outcome.stderr}

    def _flags(self, worker):
        flags = ["--metrics-listen", self.metrics_at(worker)]
        if self.is_on_device and worker.name in ON_DEVICE:
            flags += ["--device", self.device, "--device-memory-mib", str(self.memory_mib)]
            flags += ["--device-serves"] * (worker.role == "provider")
        return flags

    def start_provider(self, provider, *flags, **options):
        """Starts a provider on what it is to compute on."""
        super().start_provider(provider, *self._flags(provider), *flags, **options)

    def start_verifier(self, verifier, *flags, **options):
        """Starts a verifier on what it is to compute on."""
        super().start_verifier(verifier, *self._flags(verifier), *flags, **options)

    def metrics_at(self, worker):
        """Where a worker answers for its metrics."""
        place = self.workers().index(worker)
        return f"127.0.0.1:{self.ports.prometheus(self.validators.count + place)}"

    def metrics(self, worker, begin="surety_"):
        """Those that begin so, by name with labels."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://{self.metrics_at(worker)}/metrics", timeout=READ_SECONDS) as response:
                lines = response.read().decode().splitlines()
        except OSError as error:
            raise RpcError(f"metrics of {worker.name}: {error}") from error
        return dict(line.rsplit(" ", 1) for line in lines if line.startswith(begin))

    def on_device(self):
        """Workers that compute there."""
        return [worker for worker in self.workers() if worker.name in ON_DEVICE]

    def says(self, worker):
        """The lines of its log."""
        return ANSI.sub("", worker.process.log.read_text(errors="replace")).splitlines()

    def seen_of(self, worker):
        """What a worker and the driver say of its device."""
        lines = self.says(worker)
        opened = [found[1].strip('"') for line in lines if (found := OPENED.search(line))]
        said = {"opened": opened, "telling": [line for line in lines if TELLING.search(line)]}
        with contextlib.suppress(RpcError):
            said["metrics"] = self.metrics(worker, "surety_gpu_")
        return said
