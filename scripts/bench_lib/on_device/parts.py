"""The parts of a run: whether the device is there, how fast it is, whether it is right, and tools that take long."""

import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from devnet_lib.processes import child_options, end_of

from ..errors import BenchError
from . import figures
from .programs import BENCH
from .trial import DEVICE

# A device whose driver takes longer to say what it is does not work.
OPEN_SECONDS_MAX = 60.0
STOP_SECONDS = 2.0
LINES_KEPT = 60


class NoDevice(BenchError):
    """There is nothing to run on: no other part can do anything."""


class Part(NamedTuple):
    """A part of a run."""

    # Of a context, and of what the report has of it: writes into that, and returns its state if it is not passed.
    run: Callable
    seconds_max: float
    # The same in a run of all parts, where that is less.
    share_seconds: float | None = None


def _device(context, found):
    argv = [context.programs.path(BENCH), "device", context.device]
    try:
        env = child_options(context.env)["env"]
        seconds = context.left(OPEN_SECONDS_MAX)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False, env=env)
    except subprocess.TimeoutExpired:
        raise NoDevice(f"{context.device}: it does not say what it is within {seconds:.0f} s") from None
    if done.returncode:
        raise NoDevice((done.stderr.strip() or f"{BENCH} ended with {done.returncode}").removeprefix(f"{BENCH}: "))
    found["opened"] = done.stdout.strip()
    found["driver"] = _driver()
    context.console.detail(f"{found['opened']} {found['driver'] or ''}")


def _driver():
    """What the driver says of its devices; nothing where it has no program for that."""
    argv = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,ecc.mode.current", "--format=csv"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _test(name, context, found, under=()):
    test = context.trial.tests.get(name)
    if test is None:
        # Played devices are tested elsewhere.
        return "left out"
    argv = [*under, context.programs.path(test.program), "--include-ignored", "--exact", test.name, "--nocapture"]
    found["test"] = test.name
    with tempfile.TemporaryFile("w+") as out:
        options = child_options(context.env)
        process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, **options)
        code, late = end_of(process, context.left(), STOP_SECONDS)
        out.seek(0)
        lines = out.read().splitlines()
    found["said"] = lines[-LINES_KEPT:]
    for line in lines:
        if line.strip() and not line.startswith(("running ", "test ")):
            context.console.detail(line)
    if late:
        raise BenchError("its time is over")
    if code or not any("1 passed" in line for line in lines):
        raise BenchError(_why(lines) or f"it ended with {code}")
    return "passed"


def _sanitized(tool, context, found):
    """The operations again, while NVIDIA's tool looks at each access; where the machine has it."""
    sanitizer = context.tools.which("compute-sanitizer")
    if sanitizer is None or not context.device.startswith("cuda:"):
        context.console.detail("left out: it takes a device, and compute-sanitizer")
        return "left out"
    return _test("operations", context, found, (sanitizer, "--tool", tool, "--error-exitcode", "1"))


def _why(lines):
    """What a test that fails says: the line behind that of the panic, too."""
    at = next((at for at, line in enumerate(lines) if "panicked at" in line), None)
    return at is not None and " ".join(lines[at : at + 2])


# First in a run of all parts: however long each of them takes, the others have their time.
FIGURES = {
    "device": Part(_device, OPEN_SECONDS_MAX, 30),
    "memory": Part(figures.memory, 60, 25),
    "decoding": Part(figures.decoding, 120, 70),
    "torch": Part(figures.torch, 120, 50),
    "llama.cpp": Part(figures.llama_cpp, 120, 50),
    "embedding": Part(figures.embedding, 60, 30),
    "serving": Part(figures.serving, 120, 65),
    "products": Part(figures.products, 60, 20),
}
# What these leave of their time, which is most, goes to the others, in this order.
PARTS = {
    **FIGURES,
    **{name: Part(partial(_test, name), test.seconds_max) for name, test in DEVICE.tests.items()},
    "profile": Part(figures.profile, 90),
    "racecheck": Part(partial(_sanitized, "racecheck"), 120),
    "memcheck": Part(partial(_sanitized, "memcheck"), 120),
}
# A run of all parts takes no longer, but for the end of what is late; one of some, or on a played device, may.
SECONDS_OF_ALL = sum(part.share_seconds for part in FIGURES.values())
SECONDS_OF_SOME = 540.0
