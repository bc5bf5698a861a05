"""`scripts/bench trust`: does honesty pay, is the honest side always right, and what does it cost the chain?"""

import datetime
import json
import subprocess
import threading
import time
from pathlib import Path

from devnet_lib.folders import REPO
from devnet_lib.processes import child_options

from . import machine, trust_plot, weights, windows
from .errors import BenchError
from .programs import program

# It takes ten minutes on two cores.
SECONDS_MAX = 3600.0
# What is claimed of honest tasks is claimed of so many.
HONEST_TASKS, HONEST_TASKS_QUICK = 1_000_000, 20_000


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
    report["failed"] = [name for name, held in report["checks"].items() if not held]
    plot = Path(options.report or REPO / "target" / "reports" / "trust.json").with_suffix(".svg")
    plot.parent.mkdir(parents=True, exist_ok=True)
    plot.write_text(trust_plot.draw(report["break_even"]))
    report["plot"] = str(plot)
    return report


def _simulate(blocks, quick, console):
    names = {"audit": "AuditWindow", "reveal": "RevealWindow", "challenge": "ChallengeWindow", "clock": "DisputeClock"}
    names |= {"opening": "OpeningWindow", "decision": "DecisionWindow"}
    names |= {"veto": "SlashDeferral", "unbonding": "UnbondingPeriod"}
    pairs = ",".join(f"{name}={blocks[parameter]}" for name, parameter in names.items())
    argv = [str(program("trust", "surety-simulation")), "--blocks", pairs, *(["--quick"] if quick else [])]
    running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **child_options())
    timer = threading.Timer(SECONDS_MAX, running.kill)
    timer.start()
    # The report is one piece that a pipe may not hold: it is read while the other stream is.
    said = []
    reader = threading.Thread(target=lambda: said.append(running.stdout.read()))
    reader.start()
    last, begun = "", time.monotonic()
    try:
        for line in running.stderr:
            last = line.strip()
            console.step(last)
        reader.join()
        code = running.wait()
    finally:
        timer.cancel()
    if code and time.monotonic() - begun > SECONDS_MAX:
        raise BenchError(f"the simulation took more than {SECONDS_MAX:.0f} s; the last it said: {last}")
    if code:
        raise BenchError(f"the simulation ended with {code}: {last}")
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
        "audit_pay_over_cost": found["audit_pay_over_cost"],
        "stalls_simulated": found["stalls_simulated"],
        "refusals_simulated": found["refusals_simulated"],
    }


def _checks(report):
    """What has to hold, by name."""
    profits = [
        of_one["profit_in_r"] + 3 * of_one["error"]
        for strategy in report["strategies"]
        for of_one in strategy["by_corrupt_percent"].values()
    ]
    curves = report["break_even"]
    honest = HONEST_TASKS_QUICK if report["quick"] else HONEST_TASKS
    return {
        "no strategy gains (by 3 sigma)": max(profits) < 0,
        "no honest party was slashed": report["honest_slashes"] == 0,
        f"at least {honest:,} honest tasks": report["honest_tasks"] >= honest,
        "detection within 3 sigma": all(abs(row["sigmas"]) < 3 for row in report["detection"]),
        "committees within 3 sigma, none wrong": all(
            abs(row["sigmas"]) < 3 and not row["wrong_seen"] for row in report["snowflake"]
        ),
        "break-even within 3 % of theory": all(
            abs(curve["break_even_seen_in_r"] / curve["break_even_promised_in_r"] - 1) < 0.03 for curve in curves
        ),
        "audits of every operation are paid above their cost": min(report["audit_pay_over_cost"].values()) > 1,
        "no stall makes an auditor late": report["stalls_late"] == 0,
        "refused exactly where nobody able may be honest": report["refusals_wrong"] == 0,
        "no cheat over channels gains, locks as theory says": report["channels_hold"],
        "no honest party over channels was slashed": report["channels_honest_slashes"] == 0,
        # A chunk, and what a demand or a transaction costs.
        "none over channels lost more than a chunk": report["channels_honest_loss_in_chunks_max"] < 1.1,
        "one wrong receipt in 1,000 is found as often as its price says": all(
            abs(row["sigmas"]) < 3 for row in report["channels_detection"]
        ),
        "happy task under 900 bytes": report["bytes_happy_task"] < 900,
        "dispute under 16 KiB": report["bytes_dispute_max"] <= 16 * 1024,
    }
