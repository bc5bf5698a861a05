"""How fast it is: what a device does, and torch beside it in the same run."""

import contextlib
import json
import statistics
import sys

from ..contestant import Contestant
from ..install import PEERS
from .programs import BENCH, environment

LOAD_SECONDS_MAX = 90.0
# In the first round memory is taken, and graphs are recorded.
WARM_UP = 1
TORCH = "torch_models.py"
MATRICES = ("query, key, value", "gate, up", "down")
SIDES = ("blind", "traced")


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
    return started(context, BENCH, argv, environment(context.programs.folder))


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
        env = environment(context.programs.folder)
        with started(context, BENCH, [*argv, context.device + suffix], env) as running:
            for streams in trial.streams:
                command = {"streams": streams, "prompt": 32, "decode": trial.decode, "batched": True}
                of = rates(context, running, {"tokens": {**command, "step_rows": 256}})
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


def torch(context, found):
    """The same models in bf16 with torch, where the machine has it."""
    trial = context.trial
    argv = [sys.executable, PEERS / TORCH, json.dumps(trial.decoder), json.dumps(trial.encoder)]
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
