"""Weights of our calls, from the benchmarks' files."""

import re

from devnet_lib.folders import REPO

# frame_support's ParityDbWeight, which the runtime uses, in picoseconds.
READ, WRITE = 8_000_000, 50_000_000

_FUNCTION = re.compile(r"\tfn (\w+)\((.*?)\) -> Weight \{(.*?)\n\t\}", re.DOTALL)
_BASE = re.compile(r"Weight::from_parts\(([\d_]+), 0\)(\.saturating_mul)?")
_ACCESSES = re.compile(r"\.(reads|writes)\((\d+)(?:_u64)?\)")
_PER = re.compile(r"\.(reads|writes)\(\((\d+)_u64\)\.saturating_mul")


def calls():
    """By pallet and function: microseconds with reads and writes, and what each more of its components adds."""
    found = {}
    for path in sorted((REPO / "runtime" / "src" / "weights").glob("surety_pallet_*.rs")):
        pallet = path.stem.removeprefix("surety_pallet_")
        found[pallet] = {name: _weight(body) for name, _, body in _FUNCTION.findall(path.read_text(encoding="utf-8"))}
    return found


def _weight(body):
    times = [(int(value.replace("_", "")), bool(per)) for value, per in _BASE.findall(body)]
    cost = {"reads": READ, "writes": WRITE}
    fixed = sum(value for value, per in times if not per)
    fixed += sum(cost[kind] * int(count) for kind, count in _ACCESSES.findall(body))
    each = sum(value for value, per in times if per)
    each += sum(cost[kind] * int(count) for kind, count in _PER.findall(body))
    return {"microseconds": fixed / 1e6, "microseconds_each": each / 1e6}
