"""The kernels and how the crate has them compiled."""

import re
from pathlib import Path

CRATE = Path(__file__).resolve().parents[2] / "offchain-worker" / "cuda"
BACKEND = (CRATE / "src" / "backend.rs").read_text()
# As backend.rs has them.
SOURCE = "".join((CRATE / "src" / name).read_text() for name in re.findall(r'include_str!\("([^"]+)"\)', BACKEND))
OPTIONS = re.findall(r'"(--[^"]+)"', BACKEND.split("OPTIONS", 1)[1].split(";")[1])
NAMES = frozenset(re.findall(r"__global__\s+void (\w+)\(", SOURCE))
# What the crate asks for, and what it runs on.
TARGETS = ("75", "80", "86", "89", "90")
GROUPS = (64, 128)
