"""Every way to cheat, each on a network of its own, several of them side by side: they mostly wait for their blocks."""

import json
import os
import sys
import time

from . import call_cheats, report
from .chain import sure
from .errors import DevnetError
from .processes import Supervisor

# Ports from one network to the next, and from the first to that of payment channels, which has more of them. No kind of
# ports of one network may be another kind's of another: those of providers and of the client are 100 apart.
PORTS_APART, CHANNELS_APART = 12, 300
# What a network computes keeps about half a core busy.
AT_ONCE = (os.cpu_count() or 1) + 1
KIND_SECONDS = 2400


class Life:
    """A network in which somebody cheats."""

    def __init__(self, supervisor, folder, kind, offset):
        self.kind, self.found = kind, folder / f"{kind}.json"
        argv = [sys.executable, "-m", "devnet_lib", "--cheat", kind, "--no-build"]
        argv += ["--port-offset", offset, "--report", self.found]
        self.process, self.late = supervisor.start(kind, argv), False

    def seconds(self):
        """For how long it has run."""
        return time.monotonic() - self.process.started

    def is_over(self):
        """Whether it has ended; it is made to when it takes too long."""
        if self.process.returncode() is None and self.seconds() > KIND_SECONDS:
            self.late = True
            self.process.stop()
        return self.process.returncode() is not None

    def result(self):
        """What it came to."""
        found = json.loads(self.found.read_text()) if self.found.exists() else {}
        return {
            "cheat": self.kind,
            "code": self.process.returncode(),
            "late": self.late,
            "seconds": round(self.seconds()),
            "log": str(self.process.log),
            "report": found,
        }


def run(kinds, run_dir, console, offset):
    """Has all kinds lived through. Returns what each came to."""
    supervisor = Supervisor(run_dir / "logs")
    supervisor.log_dir.mkdir()
    console.step(f"{len(kinds)} networks, at most {AT_ONCE} at a time (logs in {supervisor.log_dir})")
    waiting, running, results = list(enumerate(kinds)), [], []
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                place, kind = waiting.pop(0)
                apart = CHANNELS_APART if kind == call_cheats.ALL else place * PORTS_APART
                running.append(Life(supervisor, run_dir, kind, offset + apart))
                console.step(f"{kind} begins")
            for life in [life for life in running if life.is_over()]:
                running.remove(life)
                results.append(life.result())
                console.step(f"{life.kind} has ended with {life.process.returncode()} after {life.seconds():.0f} s")
            time.sleep(1.0)
    finally:
        # Each stops its own network.
        supervisor.stop()
    return results


def outcomes(result):
    """Lines of the table."""
    found = result["report"]
    if result["late"]:
        return [(result["cheat"], f"FAILED: took more than {KIND_SECONDS} s, see {result['log']}")]
    if not found:
        return [(result["cheat"], f"FAILED: see {result['log']}")]
    if "cheats" in found:
        return [(one["cheat"], outcome(one, result, f"paid {sure(one['paid'])}")) for one in found["cheats"]]
    return [(result["cheat"], outcome(found, result, f"task {found['state']}", failed=result["code"]))]


def outcome(found, result, state, failed=0):
    """What came of one kind."""
    cell = found["disputed_cell"]
    spent = f"no stake lost, its agent spent {sure(max(0, found['culprit_agent_spent']))}"
    said = [
        "FAILED: " + "; ".join(found["problems"]) if found["problems"] or failed else "ok",
        ", ".join(found["faults"]) or spent,
        state,
        f"culprit lost {sure(found['culprit_lost'])} of stake, others {sure(found['others_lost'])}",
        f"{result['seconds']} s",
    ]
    return ", ".join(said + ([cell["name"]] if cell else []))


def show(results, console, path=None):
    """Prints what came of all; raises when something is not as it must be."""
    console.title("What came of every cheat")
    console.table(sorted(line for result in results for line in outcomes(result)))
    if path:
        report.write(results, path)
    failed = [result["cheat"] for result in results if result["code"] or result["late"]]
    if failed:
        raise DevnetError("not as it must be: " + ", ".join(failed))
