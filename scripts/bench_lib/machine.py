"""What was measured, and on what."""

import os
import platform
import subprocess
import time
from pathlib import Path

from devnet_lib.folders import REPO

# What decides how fast int8 products can be.
TELLING_FLAGS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8", "asimd", "asimddp", "i8mm")


def describe():
    """The processor and the system."""
    fields = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "cpu": fields.get("model name") or platform.processor() or platform.machine(),
        "cpu_family_model_stepping": [fields.get(key) for key in ("cpu family", "model", "stepping")],
        "flags": [flag for flag in TELLING_FLAGS if flag in flags],
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory.split()[1]) / 2**20, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def commit():
    """The commit that is measured, with a mark when files differ from it."""
    argv = ["git", "-C", str(REPO), "describe", "--always", "--dirty"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip() or None


def busy_share(seconds=2.0):
    """How much of all cores somebody uses while we wait: 0 to 1."""

    def jiffies():
        values = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(values), values[3] + values[4]

    total, idle = jiffies()
    time.sleep(seconds)
    total_after, idle_after = jiffies()
    return 1 - (idle_after - idle) / max(1, total_after - total)
