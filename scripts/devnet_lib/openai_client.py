"""OpenAI's official client, unchanged, in a folder of its own."""

import fcntl
import sys

from .folders import cache_dir
from .processes import run

VERSION = "3.51.0"
INSTALL_SECONDS_MAX = 600


def folder():
    """Its virtual environment, made where there is none with this version."""
    home = cache_dir()
    home.mkdir(parents=True, exist_ok=True)
    venv = home / "openai"
    done = venv / ".installed"
    # Two at once would write the same files.
    with open(home / "openai.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (done.is_file() and done.read_text() == VERSION):
            run([sys.executable, "-m", "venv", "--clear", venv], INSTALL_SECONDS_MAX)
            pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            run([*pip, f"openai=={VERSION}"], INSTALL_SECONDS_MAX)
            done.write_text(VERSION)
    return venv


def packages():
    """Where its modules are."""
    return next(folder().glob("lib/python*/site-packages"))


def python():
    """The Python that has it."""
    return folder() / "bin" / "python"
