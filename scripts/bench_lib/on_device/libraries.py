"""Where torch and NVIDIA's libraries are on a machine with a device: pip puts the libraries where no loader looks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# The compiler at run time, and what llama.cpp links against. Programs may ask for names without a version, which
# pip's files have not.
NAMES = ("nvrtc", "cublas", "cublasLt", "cudart")
# Where a machine's image has its environments and its toolkit, besides PATH.
ENVIRONMENTS = ("opt/*/.venv/bin/python3", "opt/*/bin/python3")
TOOLKITS = ("usr/local/cuda*/lib64",)
# torch is looked for and not loaded: that takes seconds.
QUESTION = """
import importlib.util, json, sys
found = importlib.util.find_spec("torch")
print(json.dumps({"torch": bool(found and found.origin), "path": [path for path in sys.path if path]}))
"""
ANSWER_SECONDS_MAX = 10.0


class Found(NamedTuple):
    """What there is."""

    # The Python that has torch; else the one that runs this.
    python: str
    # One of links to libraries, and those where they lie; none where there are none.
    folders: tuple

    @property
    def env(self):
        """What programs are started with. Folders that the person has chosen come first."""
        chosen = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
        return {"LD_LIBRARY_PATH": os.pathsep.join([*chosen, *self.folders])} if self.folders else {}

    def which(self, program):
        """NVIDIA's program of that name, on PATH or beside Python; nothing where there is none."""
        return shutil.which(program) or shutil.which(program, path=str(Path(self.python).parent))

    def told(self):
        """For a report."""
        return {"python": self.python, "library_path": self.env.get("LD_LIBRARY_PATH")}


def found(links):
    """Looks around. Names without a version are linked in the folder `links`, which has to stay."""
    asked = {python: answer for python in _pythons() if (answer := _ask(python))}
    # Libraries of one Python fit each other, and torch's fit the driver.
    order = sorted(asked, key=lambda python: not asked[python]["torch"])
    python = next((python for python in order if asked[python]["torch"]), sys.executable)
    paths = [Path(path) for python in order for path in asked[python]["path"]]
    folders = [folder for path in paths for folder in sorted(path.glob("nvidia/*/lib"))] + _globs(TOOLKITS)
    used = {}
    for name in NAMES:
        files = (file for folder in folders for file in sorted(folder.glob(f"lib{name}.so*")))
        if file := next(files, None):
            (links / f"lib{name}.so").symlink_to(file)
            used[str(file.parent)] = None
    return Found(python, (str(links), *used) if used else ())


def _globs(patterns):
    return [path for pattern in patterns for path in sorted(Path("/").glob(pattern))]


def _pythons():
    """Each of them once, the one that runs this first. Links are not followed: an environment is one."""
    folders = [Path(path) for path in os.get_exec_path() if path]
    places = [Path(sys.executable), *(folder / "python3" for folder in folders), *_globs(ENVIRONMENTS)]
    return dict.fromkeys(str(place) for place in places if os.access(place, os.X_OK))


def _ask(python):
    """Whether it has torch, and where it looks for packages; nothing of one that does not work."""
    argv = [python, "-c", QUESTION]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=True)
        return json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
