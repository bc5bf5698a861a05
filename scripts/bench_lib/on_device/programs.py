"""The folder of programs that is brought to the machine with the device."""

import json
import os

from devnet_lib.folders import REPO

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


def environment(folder):
    """What the programs that play a device are found by."""
    # Their names tell how they were built.
    return {"SURETY_EMULATORS": str(folder.resolve() / "emulators"), "CXX": "c++"}


class Programs:
    """What `scripts/on-device build` has made."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        try:
            self.manifest = json.loads((folder / MANIFEST).read_text())
        except (OSError, ValueError):
            raise BenchError(f"there is no {folder / MANIFEST}: run scripts/on-device build, where cargo is") from None

    def path(self, name):
        """A program, which may have come here without its mode."""
        path = self.folder / name
        if not path.is_file():
            raise BenchError(f"there is no {path}: run scripts/on-device build, where cargo is")
        if not os.access(path, os.X_OK):
            path.chmod(0o755)
        return path
