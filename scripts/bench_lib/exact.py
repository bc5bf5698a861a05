"""`scripts/bench exact`: is the exact tier right, and what does it cost?"""

import datetime
import tempfile
import time
from pathlib import Path

from devnet_lib.folders import REPO, cache_dir

from . import corpus, decoding, embedding, isa, machine
from .install import Peers
from .models import SHAPE, TEXT, Models
from .rounds import best

SENTENCES = 1024
THREADS = (1, 2)
# More than this in use by somebody else, and figures by the clock say little.
BUSY = 0.1


def run(options, console):
    """Measures everything. Returns the report."""
    peers = Peers(cache_dir() / "bench", console)
    peers.install()
    peers.install_node()
    models = Models(peers, console, options.decoder)
    models.make()
    if options.isa:
        isa.only(options.isa, peers.folder)
    rounds, stride = (2, 32) if options.quick else (7, 8)
    began = time.monotonic()
    report = {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "isa": options.isa,
        "versions": peers.versions(),
        "busy_before": machine.busy_share(),
        "quick": options.quick,
    }
    if report["busy_before"] > BUSY:
        console.detail(f"something else uses {report['busy_before']:.0%} of this machine: times will be off")
    with tempfile.TemporaryDirectory(prefix="surety-bench-") as folder:
        folder = Path(folder)
        report["embedding"] = _embedding(models, folder, rounds, stride, console)
        report["decoding"] = _decoding(models, folder, rounds, console)
    report["busy_after"] = machine.busy_share()
    report["seconds"] = round(time.monotonic() - began)
    return _headline(report) | report


def _embedding(models, folder, rounds, stride, console):
    sentences = corpus.sentences(TEXT, SENTENCES)
    path = folder / "sentences.txt"
    path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    console.step(f"accuracy: {len(sentences)} sentences")
    found = {
        "sentences": len(sentences),
        "text": str(TEXT.relative_to(REPO)),
        "accuracy": embedding.accuracy(models, path, folder, console),
        "threads": {},
    }
    for threads in THREADS:
        console.step(f"sentences per second, {threads} thread{'s' if threads > 1 else ''}")
        rates, needs = embedding.speed(models, path, threads, stride, rounds, console)
        found["threads"][str(threads)] = {"rates": rates, "needs": needs}
    console.step("the trace's cost")
    found["trace"] = embedding.trace(models, path, 4 * stride, console)
    return found


def _decoding(models, folder, rounds, console):
    console.step("perplexity of the demonstration model, exact and f32")
    text = folder / "held-out.txt"
    models.held_out(text)
    found = {"shape": SHAPE, "perplexity": models.perplexity(text), "threads": {}}
    for threads in THREADS:
        console.step(f"prefill and decoding, {threads} thread{'s' if threads > 1 else ''}")
        rates, needs = decoding.speed(models, threads, rounds, console)
        found["threads"][str(threads)] = {"rates": rates, "needs": needs}
    found["shares"] = decoding.shares(models, console)
    console.step(f"memory of {', '.join(map(str, decoding.STREAMS))} generations side by side")
    found["memory"] = decoding.memory(models, max(THREADS), console)
    return found


def ratio(rates, ours, *theirs, key="median"):
    """How many times faster our best is than the best of theirs. None when somebody is missing."""
    mine = best(rates.get(ours, {}), key)
    others = [found for found in (best(rates.get(name, {}), key) for name in theirs) if found]
    if not mine or not others:
        return None
    return mine[1] / max(rate for _, rate in others)


def speeds(report, threads, key="median"):
    """All ratios for a number of threads."""
    sentences = report["embedding"]["threads"][str(threads)]["rates"]
    tokens = report["decoding"]["threads"][str(threads)]["rates"]
    return {
        "speed_vs_ort_int8": ratio(sentences, embedding.EXACT, *embedding.ORT_INT8, key=key),
        "speed_vs_ort_f32": ratio(sentences, embedding.EXACT, embedding.ORT_F32, key=key),
        "speed_vs_candle_f32": ratio(sentences, embedding.EXACT, embedding.CANDLE, key=key),
        "prefill_vs_llamacpp_q8": ratio(tokens["prefill"], decoding.EXACT, decoding.LLAMA_CPP, key=key),
        "decode_vs_llamacpp_q8": ratio(tokens["decode"], decoding.EXACT, decoding.LLAMA_CPP, key=key),
    }


def _trace_of_decoder(report):
    """What recording the trace costs, as a share of the time without, with one thread."""
    rates = report["decoding"]["threads"]["1"]["rates"]

    def cost(what):
        faster = ratio(rates[what], decoding.BLIND, decoding.EXACT)
        return None if faster is None else faster - 1

    return {what: cost(what) for what in rates}


def _needs(report, key):
    """Of the exact tier, with one thread."""
    found = {"embedding": embedding.EXACT, "decoding": decoding.EXACT}
    return {what: report[what]["threads"]["1"]["needs"].get(name, {}).get(key) for what, name in found.items()}


def _headline(report):
    """What others look for, on top. Speeds are those with one thread, by the clock; above 1 we are faster."""
    exact = report["embedding"]["accuracy"].get(embedding.EXACT, {})
    trace = report["embedding"]["trace"] or {}
    return {
        "mean_cosine": exact.get("mean_cosine"),
        "min_cosine": exact.get("min_cosine"),
        "nearest_kept": exact.get("nearest_kept"),
        "perplexity_ratio": report["decoding"]["perplexity"]["perplexity_ratio"],
        **speeds(report, 1),
        "trace_overhead": trace.get("overhead"),
        "trace_overhead_decoder": _trace_of_decoder(report),
        "nearest_kept_where_clear": exact.get("nearest_kept_where_clear"),
        "similarity_lost_mean": exact.get("similarity_lost_mean"),
        "model_load_seconds": _needs(report, "load_seconds"),
        "peak_memory_mib": _needs(report, "peak_memory_mib"),
        "memory_per_stream": report["decoding"]["memory"],
        "speeds_by_threads": {str(threads): speeds(report, threads) for threads in THREADS},
        "speeds_by_processor_time": speeds(report, 1, key="median_per_processor_second"),
    }
