"""What the compiler writes (PTX). It says of each instruction how it rounds."""

import re

from .errors import Failure
from .kernels import NAMES, TARGETS

# Operations that round, and how they have to.
ROUNDING = re.compile(r"^(add|sub|mul|div|sqrt)\.(.*\.)?f32$")
# Fused, approximate or of another precision. Integers may be multiplied and added at once.
FORBIDDEN = re.compile(
    r"^(fma\.|mad\.(.*\.)?f|ex2|lg2|sin|cos|tanh|rcp|rsqrt|(atom|red)\.(.*\.)?b?f\d|"
    r".*\.(ftz|approx|full|sat|satfinite|f16|bf16|tf32|f32x2|f64)\b)"
)
# If these are missing, it was not the kernels that were read.
EXPECTED = ("add.rn.f32", "sub.rn.f32", "mul.rn.f32", "div.rn.f32", "sqrt.rn.f32", "dp4a.s32.s32", "cvt.rn.f32.s32")
# Integers on tensor cores, which wrap.
TENSOR = {
    "75": "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
    **{target: "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" for target in TARGETS if target >= "80"},
}


def instructions(ptx):
    """The operations of a program: the first word of a line after a predicate, if it is no directive."""
    for line in ptx.splitlines():
        found = re.match(r"^\s*(?:@!?%\w+\s+)?([a-z][a-z0-9_.:]*)\s[^:]*;", line)
        if found:
            yield found.group(1)


def faults(ptx):
    """Instructions that could give other bits than the definition."""
    for instruction in instructions(ptx):
        rounds = ROUNDING.match(instruction)
        if FORBIDDEN.match(instruction) or (rounds and ".rn." not in instruction):
            yield instruction


def check(ptx, target):
    """Returns how many instructions were looked at."""
    bad = sorted(set(faults(ptx)))
    if bad:
        raise Failure(f"PTX: {', '.join(bad)}")
    if ".extern .func" in ptx:
        raise Failure("PTX: it calls a function that nobody gives it")
    entries = set(re.findall(r"\.entry (\w+)\(", ptx))
    found = list(instructions(ptx))
    missing = (NAMES - entries) | ({*EXPECTED, TENSOR[target]} - set(found))
    if missing:
        raise Failure(f"PTX: not found: {', '.join(sorted(missing))}")
    return len(found)
