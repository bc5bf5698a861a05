"""`scripts/bench trust`: does honesty pay, is the honest side always right, and what does it cost the chain?"""

import datetime
import json
import os
import subprocess
import threading
from pathlib import Path

from devnet_lib.folders import REPO, cache_dir
from devnet_lib.processes import child_options

from . import machine, trust_plot, weights, windows
from .errors import BenchError


def run(options, console):
    """Plays everything. Returns the report, and draws the plot beside where it goes."""
    found_windows = windows.all_presets()
    found = _simulate(found_windows["production"], options.quick, console)
    report = {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "quick": options.quick,
    }
    report |= _headline(found, found_windows) | found
    report["windows"] = found_windows
    report["weights"] = weights.calls()
    report["checks"] = _checks(report)
    plot = Path(options.report or REPO / "target" / "reports" / "trust.json").with_suffix(".svg")
    plot.parent.mkdir(parents=True, exist_ok=True)
    plot.write_text(trust_plot.draw(report["break_even"]))
    report["plot"] = str(plot)
    return report


def program():
    """The simulation."""
    target = os.environ.get("CARGO_TARGET_DIR") or cache_dir() / "target"
    path = Path(target) / "release" / "surety-simulation"
    if not os.access(path, os.X_OK):
        raise BenchError(f"no surety-simulation in {path.parent}: run scripts/bench trust without --no-build")
    return path


def _simulate(blocks, quick, console):
    names = {"audit": "AuditWindow", "reveal": "RevealWindow", "challenge": "ChallengeWindow", "clock": "DisputeClock"}
    names |= {"veto": "SlashDeferral", "unbonding": "UnbondingPeriod"}
    pairs = ",".join(f"{name}={blocks[parameter]}" for name, parameter in names.items())
    argv = [str(program()), "--blocks", pairs, *(["--quick"] if quick else [])]
    running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **child_options())
    # The report is one piece that a pipe may not hold: it is read while the other stream is.
    said = []
    reader = threading.Thread(target=lambda: said.append(running.stdout.read()))
    reader.start()
    last = ""
    for line in running.stderr:
        last = line.strip()
        console.step(last)
    reader.join()
    if running.wait():
        raise BenchError(f"the simulation ended with {running.returncode}: {last}")
    return json.loads(said[0])


def _headline(found, found_windows):
    """What others look for, on top."""
    return {
        "honest_tasks": found["honest_tasks"],
        "honest_slashes": found["honest_slashes"],
        "best_cheat_profit_in_r": found["best_cheat_profit_in_r"],
        "bytes_happy_task": found["bytes"]["happy_task"],
        "bytes_dispute_max": max(dispute["bytes_on_chain"] for dispute in found["bytes"]["disputes"]),
        "verdict_blocks": {preset: windows.verdict_blocks(blocks) for preset, blocks in found_windows.items()},
        "snowflake": found["snowflake"],
    }


def _checks(report):
    """What has to hold, by name."""
    profits = [
        of_one["profit_in_r"] + 3 * of_one["error"]
        for strategy in report["strategies"]
        for of_one in strategy["by_corrupt_percent"].values()
    ]
    curves = report["break_even"]
    return {
        "no strategy gains (by 3 sigma)": max(profits) < 0,
        "no honest party was slashed": report["honest_slashes"] == 0,
        "at least 1,000,000 honest tasks": report["honest_tasks"] >= 1_000_000,
        "detection within 3 sigma": all(abs(row["sigmas"]) < 3 for row in report["detection"]),
        "committees within 3 sigma, none wrong": all(
            abs(row["sigmas"]) < 3 and not row["wrong_seen"] for row in report["snowflake"]
        ),
        "break-even within 3 % of theory": all(
            abs(curve["break_even_seen_in_r"] / curve["break_even_promised_in_r"] - 1) < 0.03 for curve in curves
        ),
        "happy task under 900 bytes": report["bytes_happy_task"] < 900,
        "dispute under 16 KiB": report["bytes_dispute_max"] <= 16 * 1024,
    }
