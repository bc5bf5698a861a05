"""`scripts/bench bounds`: what a node evaluates of a model before anybody has paid, beside the declared weights."""

import datetime
import json
import os
import subprocess
from pathlib import Path

from devnet_lib.folders import cache_dir

from . import machine, weights
from .errors import BenchError
from .report import table

# Each figure of the program, and the calls that evaluate it; the lightest is the one to be below.
CALLS = {
    "claim_ns": ("authorize_reveal", "reveal", "reveal_audit", "challenge"),
    "output_bytes_ns": ("supply",),
    "pick_ns": ("play_int8_product", "play_int12_product", "play_choice"),
}


def run(_options, _console):
    """Measures. Returns the report."""
    target = os.environ.get("CARGO_TARGET_DIR") or cache_dir() / "target"
    program = Path(target) / "release" / "examples" / "bench_bounds"
    if not os.access(program, os.X_OK):
        raise BenchError(f"no bench_bounds in {program.parent}: run scripts/bench bounds without --no-build")
    said = subprocess.run([str(program)], stdout=subprocess.PIPE, check=True, text=True).stdout
    declared = weights.calls()
    declared = {**declared["results"], **declared["disputes"]}
    lightest = {
        figure: min((declared[name]["microseconds"], name) for name in names) for figure, names in CALLS.items()
    }
    return {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "declared": {figure: {"call": name, "microseconds": of} for figure, (of, name) in lightest.items()},
        "models": json.loads(said),
    }


def show(report, console):
    """Prints the report."""
    console.title("Microseconds, natively, and the lightest declared weight of a call that evaluates it")
    rows = [
        (
            row["model"],
            f"{row['layers']:,}",
            f"{row['units']:,}" if row["has_a_trace"] else "-",
            "yes" if row["can_be_registered"] else "no",
            *(f"{row[figure] / 1e3:.2f}" for figure in CALLS),
        )
        for row in report["models"]
    ]
    declared = [f"{report['declared'][figure]['microseconds']:.2f}" for figure in CALLS]
    rows.append(("declared", "", "", "", *declared))
    head = ("", "layers", "units", "can be registered", "is a claim possible", "bytes of its output", "picking a cell")
    table(head, rows, console)
    calls = (of["call"] for of in report["declared"].values())
    console.text(f"\n  declared: {', '.join(calls)}, with reads and writes")
