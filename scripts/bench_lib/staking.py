"""`scripts/bench staking`: what validators cost a chain, how fast four of them make blocks final, and how many payments
it takes beside a stock one."""

import datetime
import json

from devnet_lib.errors import DevnetError

from . import finality, machine, transfers
from .errors import BenchError
from .install import command
from .programs import program

PARTS = ("election", "finality", "transfers")
SECONDS_MAX = 900


def _election(_options, console):
    console.step("electing and paying")
    return json.loads(command([program("staking", "examples", "sessions")], SECONDS_MAX))


MEASURES = {"election": _election, "finality": finality.measure, "transfers": transfers.measure}


def run(options, console):
    """Measures. Returns the report: a part that fails leaves the others as they are."""
    report = {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "quick": options.quick,
        "busy_before": machine.busy_share(),
        "failed": [],
    }
    for part in (options.only,) if options.only else PARTS:
        try:
            report[part] = MEASURES[part](options, console)
        except (BenchError, DevnetError) as error:
            console.text(f"{part}: {error}")
            report["failed"].append(part)
    report["busy_after"] = machine.busy_share()
    return _on_top(report) | report


def _on_top(report):
    """What somebody looks for first; nothing where it was not measured."""
    election, found = report.get("election", {}), report.get("finality", {})
    return {
        "election_ms": election.get("election_ms"),
        "payout_ms": election.get("payout_ms"),
        "finality_p50_s": {delay: of["p50_s"] for delay, of in found.items()} or None,
        "finality_p95_s": {delay: of["p95_s"] for delay, of in found.items()} or None,
        "transfers_vs_template": report.get("transfers", {}).get("transfers_vs_template"),
    }


def show(found, console):
    """Prints the report for people."""
    if "election" in found:
        _show_election(found["election"], console)
    if "finality" in found:
        finality.show(found["finality"], console)
    if "transfers" in found:
        transfers.show(found["transfers"], console)
    console.text(f"\n  in use by others: {found['busy_before']:.0%} before, {found['busy_after']:.0%} after")


def _show_election(of, console):
    console.title(
        f"Milliseconds in Wasm: {of['validators']} validators of {of['candidates']:,} candidates with "
        f"{of['delegations']:,} delegations"
    )
    rows = [("election, beside an ordinary block", of["election_ms"]), ("payout, beside that", of["payout_ms"])]
    rows += [(f"a whole block {name}", ms) for name, ms in of["block_ms"].items()]
    rows += [(f"weight: {name}", ms) for name, ms in of["weight_ms"].items()]
    console.table([(name, f"{ms:,.1f}") for name, ms in rows])
