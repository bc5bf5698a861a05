"""`scripts/bench devnet-runs`: `scripts/devnet` many times in a row. Every provider has to be paid in each."""

import datetime
import json
import subprocess
import sys
import time

from devnet_lib.folders import REPO, new_run_dir
from devnet_lib.processes import child_options, end, end_of

from . import machine, report

RUNS, QUICK_RUNS = 20, 2
RUN_SECONDS_MAX = 1200


def run(options, console):
    """Runs it again and again. Returns the report."""
    folder, runs = new_run_dir(), []
    count = options.runs or (QUICK_RUNS if options.quick else RUNS)
    for number in range(count):
        runs.append(_one(folder, number))
        last = runs[-1]
        said = "all paid" if last["code"] == 0 else f"NOT as it must be: see {last['log']}"
        if last["late"]:
            said = f"ended after {RUN_SECONDS_MAX} s, which is too long: see {last['log']}"
        console.step(f"run {number + 1} of {count}: {said}, {last['seconds']} s")
    bad = [of["run"] for of in runs if of["code"] or of["late"] or not of["paid"] or not all(of["paid"].values())]
    return {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "runs": runs,
        "runs_in_which_somebody_was_not_paid": bad,
        "failed": [f"run {number}" for number in bad],
    }


def _one(folder, number):
    found, log = folder / f"{number}.json", folder / f"{number}.log"
    argv = [sys.executable, "-m", "devnet_lib", "--no-build", "--report", str(found)]
    begun = time.monotonic()
    with open(log, "wb") as said:
        process = subprocess.Popen(argv, cwd=REPO / "scripts", stdout=said, stderr=said, **child_options())
        try:
            code, late = end_of(process, RUN_SECONDS_MAX)
        except BaseException:
            end(process)
            raise
    of = json.loads(found.read_text()) if found.exists() else {}
    return {
        "run": number + 1,
        "code": code,
        "late": late,
        "seconds": round(time.monotonic() - begun),
        "log": str(log),
        "paid": _paid(of),
        "honest_unpaid": of.get("honest_unpaid"),
        "honest_fined": of.get("honest_fined"),
        "tasks_unsettled": of.get("tasks_unsettled"),
    }


def _paid(of):
    """What each provider got for each task, in plancks."""
    tasks = [found for found in (of, of.get("generation")) if found and "providers" in found]
    return {
        f"task {task['task']}, provider-{place + 1}": provider["paid"]
        for task in tasks
        for place, provider in enumerate(task["providers"])
    }


def show(found, console):
    """Prints the report for people."""
    console.title("Who was paid what, in plancks")
    names = sorted({name for run in found["runs"] for name in run["paid"]})
    rows = [
        (run["run"], run["code"], run["seconds"], *(run["paid"].get(name, "-") for name in names))
        for run in found["runs"]
    ]
    report.table(("run", "exit code", "seconds", *names), rows, console)
