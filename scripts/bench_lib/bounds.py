"""`scripts/bench bounds`: what a node evaluates of a model before anybody has paid, beside the declared weights."""

import datetime
import json

from . import machine, programs, weights
from .install import command
from .report import table

# Each figure of the program, and the calls that evaluate it; the lightest is the one to be below.
CALLS = {
    "claim_ns": ("authorize_reveal", "reveal", "reveal_audit", "challenge"),
    "output_bytes_ns": ("supply",),
    "pick_ns": ("play_int8_product", "play_int12_product", "play_choice"),
}

SECONDS_MAX = 300


def run(_options, _console):
    """Measures. Returns the report."""
    said = command([programs.program("bounds", "examples", "bench_bounds")], SECONDS_MAX)
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
