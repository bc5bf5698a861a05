"""The property tests of the workspace: which there are, and what a run of one with many cases says."""

import json
import os
import re
import signal
import subprocess
import time
from typing import NamedTuple

from devnet_lib.folders import REPO
from devnet_lib.processes import child_options

from .errors import BenchError

# How both kinds begin: the macro, and a runner that a test drives itself.
_MACRO = re.compile(r"^( *)proptest! \{$(.*?)^\1\}$", re.MULTILINE | re.DOTALL)
_TEST = re.compile(r"#\[test\]\s+(?:///[^\n]*\s+)*fn (\w+)")
_RUNNER = "TestRunner::new("
# Where the workspace's packages are.
_FOLDERS = ("primitives", "pallets", "runtime", "node", "offchain-worker", "tools")

# What a failure says is its end: the case that failed, as small as it could be made.
TAIL_LINES = 40


class Property(NamedTuple):
    """A property test in its program."""

    package: str
    # Path of the test within its program.
    name: str
    program: str
    folder: str


class Outcome(NamedTuple):
    """How a run of a property ended."""

    seconds: float
    # Nothing was wrong, as far as it came.
    held: bool
    # It came to its end.
    ended: bool
    said: str


def find():
    """Every property test, and the program it is in. Builds the programs where they are not built."""
    named = {(source, name) for source, names in _in_sources().items() for name in names}
    argv = ["cargo", "nextest", "list", "--locked", "--release", "--workspace", "--message-format", "json"]
    listed = subprocess.run(argv, cwd=REPO, stdout=subprocess.PIPE, text=True, check=False)
    if listed.returncode:
        raise BenchError("the tests do not build: see above")
    found = []
    for suite in json.loads(listed.stdout)["rust-suites"].values():
        folder = suite["cwd"]
        package = suite["package-name"]
        for path in suite["testcases"]:
            if (os.path.relpath(folder, REPO), path.rsplit("::", 1)[-1]) in named:
                found.append(Property(package, path, suite["binary-path"], folder))
    missing = named - {(os.path.relpath(one.folder, REPO), one.name.rsplit("::", 1)[-1]) for one in found}
    if missing:
        raise BenchError(f"in the sources, but in no program: {sorted(missing)}")
    return sorted(found)


def _in_sources():
    """By the folder of a package: names of its property tests."""
    found = {}
    for path in (path for folder in _FOLDERS for path in (REPO / folder).rglob("*.rs")):
        text = path.read_text(encoding="utf-8")
        parts = [part for _, part in _MACRO.findall(text)]
        if _RUNNER in text:
            parts.append(text)
        names = {name for part in parts for name in _TEST.findall(part)}
        if names:
            package = next(folder for folder in path.parents if (folder / "Cargo.toml").is_file())
            found.setdefault(str(package.relative_to(REPO)), set()).update(names)
    return found


def run(one, cases, seconds_max):
    """Runs a property at so many cases, from a random seed."""
    # With so many cases more are rejected, too. The seed of one that fails is written beside the sources, where the
    # next run of the test finds it.
    env = {
        "PROPTEST_CASES": str(cases),
        "PROPTEST_MAX_GLOBAL_REJECTS": str(max(1024, 4 * cases)),
        "CARGO_MANIFEST_DIR": one.folder,
    }
    argv = [one.program, "--exact", one.name, "--nocapture"]
    begun = time.monotonic()
    options = child_options(env) | {"cwd": one.folder}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options
    ) as running:
        try:
            said, _ = running.communicate(timeout=seconds_max)
            ended = True
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            said, _ = running.communicate()
            ended = False
    tail = "\n".join(said.splitlines()[-TAIL_LINES:])
    return Outcome(time.monotonic() - begun, not ended or running.returncode == 0, ended, tail)
