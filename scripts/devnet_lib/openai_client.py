"""OpenAI's official client, unchanged, in a folder of its own."""

import subprocess
import sys

from .errors import DevnetError
from .folders import cache_dir

VERSION = "3.51.0"
INSTALL_SECONDS_MAX = 600


def folder():
    """Its virtual environment, made where there is none with this version."""
    venv = cache_dir() / "openai"
    done = venv / ".installed"
    if not (done.is_file() and done.read_text() == VERSION):
        pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for argv in ([sys.executable, "-m", "venv", "--clear", venv], [*pip, f"openai=={VERSION}"]):
            ended = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False)
            if ended.returncode:
                raise DevnetError(f"the client of OpenAI's could not be installed: {ended.stderr[-1000:]}")
        done.write_text(VERSION)
    return venv


def packages():
    """Where its modules are."""
    return next(folder().glob("lib/python*/site-packages"))


def python():
    """The Python that has it."""
    return folder() / "bin" / "python"
