"""`scripts/bench burst`: many small tasks posted at once to three idle providers. All have to settle."""

import random

from . import chaos
from .chaos import account

TASKS, QUICK_TASKS, MINUTES = 64, 16, 10.0


def run(options, console):
    """Posts all tasks at once. Returns the report."""
    tasks = options.tasks or (QUICK_TASKS if options.quick else TASKS)
    form = {"tasks": tasks, "minutes": options.minutes or MINUTES, "in_flight": tasks, "every": 0.0}
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(chaos.SEED_MAX)
    found = chaos.live(form, seed, (), {}, console)
    if found["settled"] != tasks:
        found["failed"].append("settled")
    return found


def show(found, console):
    """Prints the report for people."""
    console.title("What it came to")
    rows = [(name.replace("_", " "), found[name]) for name in ("tasks", "settled", *account.MUST_BE_ZERO, "seconds")]
    console.table([*rows, ("failed", found["failed_reasons"]), ("logs", found["logs"])])
