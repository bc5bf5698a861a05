"""Builds what is brought to the machine with the device."""

import datetime
import json
import os
import shutil
import subprocess
from pathlib import Path

from devnet_lib.folders import REPO

from .. import machine
from ..errors import BenchError
from ..install import LLAMA_CPP_PYTHON
from . import llama
from .programs import BENCH, FEATURES, LLAMA, MANIFEST, TESTS, environment

# Any test on an emulated device: it leaves the program that plays one.
EMULATED = "steps_that_come_again_are_given_as_graphs_and_give_the_same_bits"
README = """Programs that prove and measure the exact engine on an NVIDIA device: `scripts/on-device build` has made
them, and `scripts/on-device run` runs them. They need Linux on x86-64 with the GNU C library of Debian 12 or later,
a driver that offers CUDA 12.0 or later, and libnvrtc: in the Python that has torch, in a toolkit, or where the loader
finds it. A build makes this folder anew: nothing else may be kept here.
"""


def build(folder, console, with_llama):
    """Builds into the folder."""
    # Another may be checked out while it takes its time.
    what = {"commit": machine.commit(), "built": datetime.datetime.now().isoformat(timespec="seconds")}
    console.step("tests")
    names = [argument for _, test in TESTS.values() for argument in ("--test", test)]
    made = _cargo("test", "--no-run", *names)
    console.step("bench_exact")
    made.update(_cargo("build", "--example", BENCH))
    wanted = {name: (package, test) for name, (package, test) in TESTS.items()} | {BENCH: ("surety-engine", BENCH)}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, key in wanted.items():
        if key not in made:
            raise BenchError(f"cargo has made no {' '.join(key)}")
        subprocess.run(["strip", "--strip-all", "-o", folder / name, made[key]], check=True)
    if with_llama:
        shutil.copy(llama.program(console), folder / LLAMA)
        what[LLAMA] = f"llama-cpp-python {LLAMA_CPP_PYTHON}"
    console.step("the program that plays a device")
    env = os.environ | environment(folder)
    Path(env["SURETY_EMULATORS"]).mkdir()
    argv = [folder / "replays", "--exact", EMULATED]
    if subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, check=False).returncode:
        raise BenchError("the tests on an emulated device do not pass: cargo test -p surety-cuda")
    (folder / MANIFEST).write_text(json.dumps(what, indent=2) + "\n")
    (folder / "README").write_text(README)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    total = sum(path.stat().st_size for path in files)
    console.table([(str(path.relative_to(folder)), f"{path.stat().st_size / 2**20:.1f} MiB") for path in files])
    console.step(f"{folder}: {total / 2**20:.1f} MiB")


def _cargo(command, *arguments):
    """Programs by package and name."""
    # The workspace's choice of features, so that no dependency is compiled a second time.
    argv = ["cargo", command, "--locked", "--release", "--workspace", "--features", FEATURES, *arguments]
    done = subprocess.run(
        [*argv, "--message-format=json-render-diagnostics"], cwd=REPO, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise BenchError(f"`{' '.join(argv)}` failed")
    found = {}
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable"):
            package = _package(message["manifest_path"])
            found[package, message["target"]["name"]] = message["executable"]
    return found


def _package(manifest):
    """The package of a Cargo.toml."""
    lines = Path(manifest).read_text().splitlines()
    return next(line.split('"')[1] for line in lines if line.startswith("name = "))
