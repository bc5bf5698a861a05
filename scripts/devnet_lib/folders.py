"""Where things are kept."""

import os
import shutil
import time
from pathlib import Path

from .errors import DevnetError

REPO = Path(__file__).resolve().parents[2]
# `surety` with workers that do wrong, or die where they are told to.
CHEAT = "surety-cheat"


def cache_dir():
    """Where builds, models and chain specifications are kept from run to run."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "surety"


def built():
    """Where cargo leaves what it builds for release."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or cache_dir() / "target") / "release"


def binaries(*more):
    """Where the programs are, also `more` of them: SURETY_BIN_DIR, or where scripts/devnet builds them."""
    folder = Path(os.environ.get("SURETY_BIN_DIR") or built())
    for name in ("surety-node", "surety", *more):
        if not os.access(folder / name, os.X_OK):
            raise DevnetError(f"no {name} in {folder}: run scripts/devnet without --no-build, or set SURETY_BIN_DIR")
    return folder


def new_run_dir():
    """A fresh folder for one run."""
    base = Path(os.environ.get("TMPDIR") or "/tmp")
    for _ in range(100):
        path = base / time.strftime("surety-devnet-%Y%m%d-%H%M%S")
        try:
            path.mkdir()
            return path
        except FileExistsError:
            time.sleep(0.2)
    raise DevnetError(f"no room for a run's folder in {base}")


def remove_data(run_dir):
    """Leaves the logs and the output of a run, and drops its databases and keys."""
    for path in Path(run_dir).iterdir():
        if path.is_dir() and path.name != "logs":
            shutil.rmtree(path, ignore_errors=True)


def write_secret(path, text):
    """Writes a file that only its owner can read, from the first moment on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
    return path
