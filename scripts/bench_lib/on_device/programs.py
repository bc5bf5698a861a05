"""The folder of programs that is brought to the machine with the device."""

import json
import os

from devnet_lib.folders import REPO

from .. import machine
from ..errors import BenchError

FOLDER = REPO / "target" / "on-device"
BENCH = "bench_exact"
# Only there when it was asked for.
LLAMA = "llama-cuda"
# Of which package a test is, and what its program is called here.
TESTS = {
    "kernels": ("surety-cuda", "device"),
    "replays": ("surety-cuda", "replays"),
    "models": ("surety-engine", "on_device"),
}
FEATURES = "surety-engine/cuda,surety-cuda/cuda"
MANIFEST = "manifest.json"
# Programs that play a device. Their names tell how they were built.
EMULATORS = "emulators"


def environment(folder):
    """What the programs that play a device are found by."""
    return {"SURETY_EMULATORS": str(folder.resolve() / EMULATORS), "CXX": "c++"}


def check_commit(manifest, command):
    """Refuses programs of another commit than the checkout's, where it is one: figures would be of other sources."""
    built, here = manifest.get("commit") or "", _checked_out() or ""
    built, here = (name.removesuffix("-dirty") for name in (built, here))
    # One may be longer.
    if not built.startswith(here) and not here.startswith(built):
        raise BenchError(
            f"the programs are of {built}, and {here} is checked out: run {command} build, where cargo is, or allow it"
            " with --any-commit"
        )


def _checked_out():
    # Where files were brought there may be another repository around them, or no git.
    if not (REPO / ".git").exists():
        return None
    try:
        return machine.commit()
    except OSError:
        return None


class Programs:
    """What `scripts/on-device build` has made."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        try:
            self.manifest = json.loads((folder / MANIFEST).read_text())
        except (OSError, ValueError):
            raise BenchError(f"there is no {folder / MANIFEST}: run scripts/on-device build, where cargo is") from None
        # They may have come here without their modes.
        carried = [self.folder / name for name in (BENCH, LLAMA, *TESTS)]
        for path in (*carried, *(self.folder / EMULATORS).glob("*")):
            if path.is_file() and not os.access(path, os.X_OK):
                path.chmod(0o755)

    def path(self, name):
        """A program."""
        path = self.folder / name
        if not path.is_file():
            raise BenchError(f"there is no {path}: run scripts/on-device build, where cargo is")
        return path
