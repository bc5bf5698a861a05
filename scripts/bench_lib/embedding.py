"""Sentence embeddings: how near the exact form is to f32, and how fast it is beside others."""

import json
import time
from statistics import median

from devnet_lib.folders import cache_dir

from .contestant import all_of
from .rounds import in_turns

EXACT, EXACT_INT8, CANDLE, ORT_F32 = "exact", "exact, int8", "candle f32", "onnxruntime f32"
ORT_INT8 = {
    "onnxruntime int8, per channel": "int8-channel",
    "onnxruntime int8, per tensor": "int8-tensor",
}
SECONDS_MAX = 75.0
TRACE_SECONDS_MAX = 30.0
# Sentences that an engine takes through the products together, about.
TOGETHER = 3


def starters(models, sentences, threads):
    """Everybody who makes vectors, as functions that start them."""
    ours = {
        EXACT: (models.home, "encoder"),
        EXACT_INT8: (models.home, "encoder-int8"),
        CANDLE: (cache_dir(), "all-MiniLM-L6-v2"),
    }
    started = {name: lambda where=where: models.embedder(*where, sentences, threads) for name, where in ours.items()}
    for name, file in {ORT_F32: "f32", **ORT_INT8}.items():
        started[name] = lambda file=file: models.onnxruntime(file, sentences, threads)
    return started


def accuracy(models, sentences, folder, console):
    """Cosines and nearest neighbors of everybody against candle's f32: `{name: {...}}`."""
    files = {}
    with all_of(starters(models, sentences, 1), console) as running:
        for name, contestant in running.items():
            files[name] = folder / f"{name}.safetensors"
            contestant.ask(seconds_max=180.0, vectors=str(files[name]))
    reference = files.pop(CANDLE)
    compared = json.loads(models.peers.script("compare.py", reference, *files.values()))
    return dict(zip(files, compared, strict=True))


def speed(models, sentences, threads, stride, rounds, console):
    """Sentences per second, and what each needed to start."""
    feeding = ["alone", "batches"] + (["side by side"] if threads > 1 else [])
    with all_of(starters(models, sentences, threads), console) as running:
        modes = {
            name: {"job": {"stride": stride}}
            if name in (EXACT, EXACT_INT8, CANDLE)
            else {mode: {"mode": mode, "stride": stride} for mode in feeding}
            for name in running
        }
        rates = in_turns(running, modes, rounds, console, SECONDS_MAX)
        needs = {
            name: {
                "load_seconds": contestant.ready["load_seconds"],
                "start_seconds": contestant.ready["start_seconds"],
                "peak_memory_mib": contestant.peak_memory_mib(),
            }
            for name, contestant in running.items()
        }
    return rates, needs


def trace(models, sentences, stride, console):
    """What recording the trace costs, as a share of the time without; and where the time goes, step by step.

    It is a few per cent, and what else a machine does to one measurement is more. So these are many and short, each
    with the trace beside one without, either of them first in turns; the median of the pairs counts.
    """
    modes = {look: {"look": look, "stride": stride, "together": TOGETHER} for look in ("blind", "traced", "timed")}
    with all_of({"encoder": lambda: models.encoder(sentences, 1)}, console) as running:
        if "encoder" not in running:
            return None
        encoder = running["encoder"]
        encoder.ask(**modes["blind"])
        begun, pairs = time.monotonic(), []
        while len(pairs) < 2 or time.monotonic() - begun < TRACE_SECONDS_MAX:
            order = ("blind", "traced") if len(pairs) % 2 else ("traced", "blind")
            pairs.append({look: encoder.ask(**modes[look]) for look in order})
        shares = encoder.ask(**modes["timed"])["shares"]

    def cost(key):
        return median(pair["traced"][key] / pair["blind"][key] for pair in pairs) - 1

    return {
        "overhead": cost("seconds"),
        "overhead_of_processor_time": cost("processor_seconds"),
        "rounds": len(pairs),
        "shares": shares,
    }
