"""How fast it is: what a device does, and torch beside it in the same run."""

import contextlib
import csv
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from .. import install
from ..contestant import Contestant
from ..errors import ContestantFailed
from ..install import PEERS
from .programs import BENCH, LLAMA

LOAD_SECONDS_MAX = 90.0
# In the first round memory is taken, and graphs are recorded.
WARM_UP = 1
TORCH = "torch_models.py"
LLAMA_MODEL = "gguf_llama.py"
# Tokens of a batcher's step, of all generations together: what a provider whose device serves takes.
STEP_ROWS = 512
MATRICES = ("query, key, value", "gate, up", "down")
SIDES = ("blind", "traced")
# What a profile is made of: few layers, since each launch is measured by itself.
PROFILED_LAYERS = 3
PROFILED = {
    "prompt": {"streams": 1, "prompt": 512, "look": "traced"},
    "1 at once": {"streams": 1, "prompt": 512, "decode": 8, "look": "traced"},
    "64 at once": {"streams": 64, "prompt": 128, "decode": 8, "look": "traced"},
}
DURATION = "gpu__time_duration.sum"
MICROSECONDS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3}
KERNELS_TOLD = 12


@contextlib.contextmanager
def started(context, name, argv, env=None):
    """A program that answers, until it is left."""
    running = Contestant(name, argv, env, context.left(LOAD_SECONDS_MAX))
    try:
        yield running
    finally:
        running.stop()


def ours(context, *arguments):
    """Our own side."""
    argv = [context.programs.path(BENCH), *arguments, context.device]
    return started(context, BENCH, argv, context.env)


def rates(context, running, commands):
    """Units per second of several commands, in turns: `{name: {"median", "lowest", "highest"}}`."""
    found = {name: [] for name in commands}
    for round_number in range(WARM_UP + context.trial.rounds):
        for name, command in commands.items():
            answer = running.ask(context.left(), **command)
            if round_number >= WARM_UP:
                found[name].append(answer["units"] / answer["seconds"])
    return {
        name: {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}
        for name, values in found.items()
    }


def _told(context, what, of):
    context.console.detail(f"{what}: " + ", ".join(f"{name} {rate['median']:.0f}/s" for name, rate in of.items()))
    context.save()


def memory(context, found):
    """How fast the device's memory is for a kernel of ours that only adds."""
    with ours(context, "products", json.dumps(context.trial.decoder)) as running:
        command = {"bytes": context.trial.array_bytes, "rounds": 20}
        speeds = [running.ask(context.left(), **command)["bytes_per_second"] for _ in range(3)]
    found["bytes_per_second"] = max(speeds)
    context.console.detail(f"{found['bytes_per_second'] / 1e9:.0f} GB/s")


def _lengths(context, streams):
    """Prefill and decoding of so many sequences."""
    command = {"streams": streams, "prompt": context.trial.prompt}
    return {"prefill": command, "decode": {**command, "decode": context.trial.decode}}


def decoding(context, found):
    """Prefill and decoding, with the trace and without."""
    trial = context.trial
    with ours(context, "decoder", json.dumps(trial.decoder), context.threads) as running:
        found["model"] = running.ready
        for streams in trial.streams:
            for what, command in _lengths(context, streams).items():
                sides = {look: {**command, "look": look} for look in SIDES}
                of = rates(context, running, sides)
                of["trace_overhead"] = of["blind"]["median"] / of["traced"]["median"] - 1
                found.setdefault(what, {})[str(streams)] = of
                _told(context, f"{what}, {streams} at once", {look: of[look] for look in SIDES})
        found["memory_mib"] = running.peak_memory_mib()


def serving(context, found):
    """Whole generations through the steps of a batcher, to their claims; with graphs and without."""
    trial = context.trial
    suffixes = ("", "-without-graphs")
    for suffix in suffixes:
        argv = [context.programs.path(BENCH), "serving", json.dumps(trial.decoder), context.threads]
        with started(context, BENCH, [*argv, context.device + suffix], context.env) as running:
            for streams in trial.streams:
                command = {"streams": streams, "prompt": 32, "decode": trial.decode, "batched": True}
                of = rates(context, running, {"tokens": {**command, "step_rows": STEP_ROWS}})
                found.setdefault("without graphs" if suffix else "with graphs", {})[str(streams)] = of
                _told(context, f"{streams} at once{suffix}", of)


def embedding(context, found):
    """Items of all lengths: whole jobs, and passes with the trace and without."""
    trial = context.trial
    for precision in ("int12", "int8"):
        with ours(context, "items", json.dumps(trial.encoder), precision, context.threads) as running:
            command = {"items": trial.items, "longest": trial.longest}
            of = rates(context, running, {look: {**command, "look": look} for look in ("job", *SIDES)})
            of["trace_overhead"] = of["blind"]["median"] / of["traced"]["median"] - 1
            found[precision] = of
            _told(context, precision, {look: of[look] for look in ("job", *SIDES)})


def products(context, found):
    """The kernel for few rows beside that for many, by how many rows there are: seconds of a product."""
    trial = context.trial
    with ours(context, "products", json.dumps(trial.decoder)) as running:
        for matrices in MATRICES:
            of_rows = found.setdefault(matrices, {})
            for rows in trial.rows:
                command = {
                    "matrices": matrices,
                    "rows": rows,
                    "rounds": trial.product_rounds,
                    "bytes": trial.matrix_bytes,
                }
                of_rows[str(rows)] = {
                    path: running.ask(context.left(), **command, path=path)["seconds"] for path in ("few", "many")
                }
                context.save()
            said = (f"{rows} rows: {of['few'] * 1e6:.0f}, {of['many'] * 1e6:.0f} us" for rows, of in of_rows.items())
            context.console.detail(f"{matrices}: " + "; ".join(said))


def profile(context, found):
    """What each kernel takes, launch by launch, as NVIDIA's profiler sees it; where the machine has it."""
    profiler = context.tools.which("ncu")
    if profiler is None or not context.device.startswith("cuda:"):
        context.console.detail("left out: it takes a device, and ncu")
        return "left out"
    shape = json.dumps(context.trial.decoder | {"layers": PROFILED_LAYERS})
    argv = [context.programs.path(BENCH), "decoder", shape, str(context.threads), f"{context.device}-without-graphs"]
    for name, command in PROFILED.items():
        with tempfile.NamedTemporaryFile("r", suffix=".csv") as out:
            as_it_is = ["--clock-control", "none", "--cache-control", "none"]
            under = [profiler, *as_it_is, "--metrics", DURATION, "--csv", "--log-file", out.name]
            done = subprocess.run(
                [*under, *argv],
                env=os.environ | context.env,
                input=json.dumps(command) + "\n",
                capture_output=True,
                text=True,
                timeout=context.left(),
                check=False,
            )
            if done.returncode:
                raise ContestantFailed(f"{profiler} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
            found[name] = _by_kernel(line for line in out if not line.startswith("=="))
        context.save()
        for of in found[name][:KERNELS_TOLD]:
            context.console.detail(f"{name}: {of['kernel']} {of['grid']}: {of['launches']} of {of['us']:.1f} us")
    return "passed"


def _by_kernel(lines):
    """Of each kernel and grid: launches, and the median of their microseconds; those that take most first."""
    times = {}
    for row in csv.DictReader(lines):
        took = float(row["Metric Value"].replace(",", "")) * MICROSECONDS[row["Metric Unit"]]
        times.setdefault((row["Kernel Name"].split("(")[0], row["Grid Size"]), []).append(took)
    found = [
        {"kernel": kernel, "grid": grid, "launches": len(took), "us": statistics.median(took)}
        for (kernel, grid), took in times.items()
    ]
    return sorted(found, key=lambda of: -of["launches"] * of["us"])


def torch(context, found):
    """The same models in bf16 with torch, where the machine has it."""
    trial = context.trial
    argv = [context.tools.python, PEERS / TORCH, json.dumps(trial.decoder), json.dumps(trial.encoder)]
    with started(context, "torch", argv) as running:
        found["versions"] = running.ready
        if not running.ready["ready"]:
            context.console.detail(f"left out: {running.ready['error']}")
            return "left out"
        found |= running.ask(context.left(), what="copy", bytes=trial.array_bytes)
        context.save()
        for streams in trial.streams:
            for what, command in _lengths(context, streams).items():
                of = rates(context, running, {"bf16": {"what": what, **command}})
                found.setdefault(what, {})[str(streams)] = of["bf16"]
                _told(context, f"{what}, {streams} at once", of)
        of = rates(context, running, {"bf16": {"what": "embed", "items": trial.items, "longest": trial.longest}})
        found["embed"] = of["bf16"]
        _told(context, "items", of)
    return "passed"


def llama_cpp(context, found):
    """The same decoder in Q8_0 with llama.cpp, where it was brought along."""
    trial = context.trial
    if not (context.programs.folder / LLAMA).is_file() or not context.device.startswith("cuda:"):
        context.console.detail("left out: it takes a device, and scripts/on-device build --llama")
        return "left out"
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.gguf"
        install.command([context.tools.python, PEERS / LLAMA_MODEL, json.dumps(trial.decoder), model], context.left())
        argv = [context.programs.path(LLAMA), model]
        with started(context, LLAMA, [*argv, context.device.removeprefix("cuda:")], context.env) as running:
            found["program"] = running.ready
            if not running.ready["ready"]:
                context.console.detail(f"left out: {running.ready['error']}")
                return "left out"
            for streams in trial.streams:
                for what, lengths in _lengths(context, streams).items():
                    of = rates(context, running, {"Q8_0": {"what": what, **lengths}})
                    found.setdefault(what, {})[str(streams)] = of["Q8_0"]
                    _told(context, f"{what}, {streams} at once", of)
            asked = {"what": "logits", "streams": 2, "prompt": 16}
            there = running.ask(context.left(), **asked)["logits"]
        with started(context, LLAMA, [*argv, "cpu"], context.env) as running:
            here = running.ask(context.left(), **asked)["logits"]
    # Both round as they like: this only shows that the device computed it.
    found["largest_difference"] = max(abs(a - b) for a, b in zip(there, here, strict=True)) / max(map(abs, here))
    return "passed"
