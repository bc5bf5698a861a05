"""Runs the parts one after the other, each within its time, and writes down what there is after every step."""

import datetime
import json
import os
import time

from .. import machine
from ..errors import BenchError, ContestantFailed
from . import show
from .parts import PARTS, NoDevice
from .programs import Programs
from .trial import DEVICE, EMULATED

# How a part may end.
GOOD = ("passed", "left out")
# Less is not worth beginning a part.
SECONDS_MIN = 5.0


class Context:
    """What a part has to do with."""

    def __init__(self, options, console):
        self.console, self.path = console, options.report
        self.programs = Programs(options.folder)
        self.trial = EMULATED if options.emulated else DEVICE
        self.device = "emulated" if options.emulated else options.device
        self.threads = os.cpu_count() or 1
        self.until = time.monotonic() + options.seconds
        self.part_until = self.until
        self.report = {
            "date": datetime.datetime.now().isoformat(timespec="seconds"),
            "programs": self.programs.manifest,
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
    context = Context(options, console)
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
    failed = [name for name, found in context.report["parts"].items() if found["status"] not in GOOD]
    if failed:
        console.text(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


def _part(context, name, found):
    part, begun = PARTS[name], time.monotonic()
    context.part_until = begun + part.seconds_max
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
        found["status"], found["error"] = "failed", said
        context.console.detail(f"{name}: {error}")
    finally:
        found["seconds"] = round(time.monotonic() - begun, 1)
        context.save()
