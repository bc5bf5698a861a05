"""`scripts/bench soak`: does a test fail by chance, or only seldom? For before releases.

First every property test at many cases, in turns whose length follows from how fast each is; then the end-to-end tests
again and again. Ends at the first failure, or when its time is over.
"""

import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from devnet_lib.errors import DevnetError
from devnet_lib.folders import CHEAT, REPO, binaries
from devnet_lib.processes import child_options, end_of

from . import machine, properties
from .errors import BenchError
from .report import table

PARTS = ("properties", "e2e")
MINUTES = 60.0
# Of each property, while there is time.
CASES = 10_000
CASES_QUICK = 256
# The first turn of a property; how long later ones should take; and when one is given up.
CASES_FIRST = 64
TURN_SECONDS = 30.0
TURN_SECONDS_MAX = 300.0
# So many turns without an end, and it gets no other.
UNFINISHED_MAX = 3
# The properties' share of the time.
SHARE = 0.5
# A run of the end-to-end tests that takes longer hangs.
E2E_SECONDS_MAX = 2400.0


def run(options, console):
    """Runs everything. Returns the report."""
    began = time.monotonic()
    minutes = options.minutes or MINUTES
    end = began + 60 * minutes
    wanted = CASES_QUICK if options.quick else CASES
    report = {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "quick": options.quick,
        "minutes": minutes,
        "cases_wanted": wanted,
    }
    half = end if options.only == "properties" else began + SHARE * (end - began)
    report["properties"] = [] if options.only == "e2e" else _properties(wanted, half, options.match, console)
    failed = any(not row["held"] for row in report["properties"])
    report["e2e"] = [] if failed or options.only == "properties" else _end_to_end(end, console)
    report["seconds"] = round(time.monotonic() - began)
    report["properties_at_wanted_cases"] = sum(row["cases"] >= wanted for row in report["properties"])
    report["failures"] = sum(not row["held"] for row in report["properties"] + report["e2e"])
    return report


def _properties(wanted, end, match, console):
    console.step("building the tests")
    found = [one for one in properties.find() if match in f"{one.package} {one.name}"]
    rows = [
        {"package": one.package, "name": one.name, "cases": 0, "seconds": 0.0, "held": True, "unfinished": 0}
        for one in found
    ]
    console.step(f"{len(found)} property tests, up to {wanted:,} cases each")
    open_ = list(range(len(found)))
    while open_ and time.monotonic() < end:
        for place in list(open_):
            left = end - time.monotonic()
            if left <= 0:
                break
            one, row = found[place], rows[place]
            cases = _turn(row, wanted)
            outcome = properties.run(one, cases, min(left, TURN_SECONDS_MAX))
            # The end of our own time says nothing of a property.
            if outcome.ended or left >= TURN_SECONDS_MAX:
                _note(row, cases, outcome)
            if not row["held"]:
                console.step(f"FAILED: {one.package} {one.name}")
                return rows
            # Nothing is known of a turn without an end; the next is shorter, until there is none.
            if row["cases"] >= wanted or row["unfinished"] >= UNFINISHED_MAX:
                open_.remove(place)
                console.step(f"{one.package} {one.name}: {row['cases']:,} cases, {row['seconds']:.0f} s")
    return rows


def _turn(row, wanted):
    """Cases of the next turn."""
    if row["unfinished"] and not row["cases"]:
        return 1
    if not row["cases"]:
        return min(CASES_FIRST, wanted)
    rate = row["cases"] / max(row["seconds"], 0.001)
    turn = max(1, int(rate * TURN_SECONDS) >> row["unfinished"])
    return min(wanted - row["cases"], turn)


def _note(row, cases, outcome):
    if outcome.ended:
        row["cases"] += cases
        row["seconds"] = round(row["seconds"] + outcome.seconds, 1)
    else:
        row["unfinished"] += 1
    if not outcome.held:
        row["held"], row["said"] = False, outcome.said
    elif not row["cases"] and row["unfinished"] >= UNFINISHED_MAX:
        row["held"] = False
        row["said"] = f"no case comes to an end: {row['unfinished']} turns of {TURN_SECONDS_MAX:.0f} s\n{outcome.said}"


def _end_to_end(end, console):
    # With programs of its own: a build beside it may replace those that were built.
    with tempfile.TemporaryDirectory(prefix="surety-soak-") as folder:
        try:
            for name in ("surety", "surety-node", CHEAT):
                shutil.copy(binaries(CHEAT) / name, folder)
        except DevnetError as error:
            raise BenchError(str(error)) from None
        rows = []
        # One at least: a run that has begun is not cut short.
        while not rows or (rows[-1]["held"] and time.monotonic() + rows[-1]["seconds"] < end):
            console.step(f"end-to-end tests, run {len(rows) + 1}")
            rows.append(_one_end_to_end(folder))
            console.detail(f"{'passed' if rows[-1]['held'] else 'FAILED'} in {rows[-1]['seconds']:.0f} s")
        return rows


def _one_end_to_end(folder):
    begun = time.monotonic()
    options = child_options({"SURETY_BIN_DIR": folder})
    with tempfile.NamedTemporaryFile("w+", prefix="surety-soak-", suffix=".log", delete=False) as log:
        running = subprocess.Popen(
            [sys.executable, str(REPO / "tests" / "e2e")], cwd=REPO, stdout=log, stderr=log, **options
        )
        # Its networks end with it.
        code, late = end_of(running, E2E_SECONDS_MAX)
        held = code == 0 and not late
    row = {"held": held, "seconds": round(time.monotonic() - begun, 1)}
    if held:
        os.unlink(log.name)
        return row
    said = Path(log.name).read_text(errors="replace").splitlines()[-properties.TAIL_LINES :]
    why = [f"ended after {E2E_SECONDS_MAX:.0f} s, which is too long: it hangs"] if late else []
    return row | {"log": log.name, "said": "\n".join(said + why)}


def _verdict(row):
    if not row["held"]:
        return "FAILED"
    return "held" if row["cases"] else "no time left for it"


def show(report, console):
    """Prints the report."""
    if report["properties"]:
        console.title(f"Properties: {report['cases_wanted']:,} cases are wanted")
        rows = [
            (
                f"{row['package']} {row['name']}",
                f"{row['cases']:,}",
                f"{row['seconds']:.0f}",
                row["unfinished"] or "",
                _verdict(row),
            )
            for row in sorted(report["properties"], key=lambda row: -row["seconds"])
        ]
        table(("", "cases", "seconds", "unfinished turns", ""), rows, console)
    if report["e2e"]:
        console.title("End-to-end tests")
        rows = [
            (number, f"{row['seconds']:.0f}", "passed" if row["held"] else "FAILED")
            for number, row in enumerate(report["e2e"], 1)
        ]
        table(("run", "seconds", ""), rows, console)
    for row in report["properties"] + report["e2e"]:
        if not row["held"]:
            console.title(f"FAILED: {row.get('name', 'end to end')}")
            console.text(row["said"])
            if "log" in row:
                console.text(f"all of it: {row['log']}")
    console.text(f"\n  {report['failures']} failures in {report['seconds']} s")
