"""Runs the parts one after the other, each within its time, and writes down what there is after every step."""

import datetime
import json
import os
import shlex
import tempfile
import time
from pathlib import Path

from .. import machine
from ..errors import BenchError, ContestantFailed
from . import libraries, show
from .parts import PARTS, NoDevice
from .programs import Programs, check_commit, environment
from .trial import DEVICE, EMULATED

# How a part may end, and what becomes of those for which no time was left.
GOOD = ("passed", "left out")
LATE = ("not begun", "cut off")
# Less is not worth beginning a part.
SECONDS_MIN = 5.0


class Context:
    """What a part has to do with."""

    def __init__(self, options, console, links):
        self.console, self.path = console, options.report
        self.until = time.monotonic() + options.seconds
        self.part_until = self.until
        self.has_shares = options.is_whole
        self.programs = Programs(options.folder)
        if not options.any_commit:
            check_commit(self.programs.manifest, "scripts/on-device")
        self.tools = libraries.found(links)
        # Of all programs of ours.
        self.env = environment(self.programs.folder) | self.tools.env
        self.trial = EMULATED if options.emulated else DEVICE
        self.device = "emulated" if options.emulated else options.device
        self.threads = os.cpu_count() or 1
        self.report = {
            "date": datetime.datetime.now().isoformat(timespec="seconds"),
            "programs": self.programs.manifest,
            "found": self.tools.told(),
            "device": self.device,
            "machine": machine.describe(),
            "models": {"decoder": self.trial.decoder, "encoder": self.trial.encoder},
            "parts": {name: {"status": "not begun"} for name in options.only},
        }

    def left(self, at_most=float("inf")):
        """Seconds that a step of this part may take."""
        left = min(self.until, self.part_until) - time.monotonic()
        if left <= 0:
            raise ContestantFailed("its time is over")
        return min(left, at_most)

    def save(self):
        """Writes the report as it is, in one go: whoever ends us finds the last one whole."""
        self.report["headline"] = show.headline(self.report)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        written = self.path.with_name(self.path.name + ".part")
        written.write_text(json.dumps(self.report, indent=2) + "\n")
        written.replace(self.path)


def run(options, console):
    """Runs the parts. Returns the code to end with."""
    with tempfile.TemporaryDirectory(prefix="surety-libraries-") as links:
        return _run(Context(options, console, Path(links)), console)


def _run(context, console):
    begun = time.monotonic()
    for name, found in context.report["parts"].items():
        if context.until - time.monotonic() < SECONDS_MIN:
            console.step(f"{name}: no time is left for it")
            continue
        try:
            _part(context, name, found)
        except NoDevice:
            console.text(f"FAILED: {found['error']}")
            return 1
    context.report["seconds"] = round(time.monotonic() - begun, 1)
    context.save()
    show.show(context.report, console)
    console.text(f"\nwritten to {context.path}")
    states = {name: found["status"] for name, found in context.report["parts"].items()}
    late = [name for name, status in states.items() if status in LATE]
    failed = [name for name, status in states.items() if status not in (*GOOD, *LATE)]
    if late:
        console.text(f"No time was left for these: scripts/on-device run --only {shlex.quote(','.join(late))}")
    if not context.has_shares:
        failed += late
    if failed:
        console.text(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


def _part(context, name, found):
    part, begun = PARTS[name], time.monotonic()
    share = part.share_seconds if context.has_shares else None
    context.part_until = begun + (share or part.seconds_max)
    context.console.step(name)
    found["status"] = "cut off"
    context.save()
    try:
        found["status"] = part.run(context, found) or "passed"
    except NoDevice as error:
        found["status"], found["error"] = "failed", str(error)
        raise
    except Exception as error:  # A fault of ours in one part may not cost the others their time on a device.
        said = str(error) if isinstance(error, BenchError) else repr(error)
        # Nothing is said of what had no time.
        is_late = time.monotonic() >= context.until
        found["status"], found["error"] = "cut off" if is_late else "failed", said
        context.console.detail(f"{name}: {error}")
    finally:
        found["seconds"] = round(time.monotonic() - begun, 1)
        context.save()
