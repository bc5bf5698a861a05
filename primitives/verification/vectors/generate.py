#!/usr/bin/env python3
"""Writes the golden vectors beside this file. Independent of the Rust code: hashlib's BLAKE2b and the formulas."""

import json
import pathlib
from hashlib import blake2b

HERE = pathlib.Path(__file__).parent


def blake2_256(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def named(name: str) -> bytes:
    """A hash to put into a vector."""
    return blake2_256(name.encode())


def commitment(task, provider, output, trace_root, units, salt) -> bytes:
    # SCALE: fixed-width integers are little endian, 32-byte arrays are themselves, tuples are concatenated.
    return blake2_256(task.to_bytes(8, "little") + provider + output + trace_root + units.to_bytes(4, "little") + salt)


def merkle_root(leaves) -> bytes:
    # RFC 6962, section 2.1, recursively: split at the largest power of two below the number of leaves.
    if not leaves:
        return blake2_256(b"")
    if len(leaves) == 1:
        return blake2_256(b"\0" + leaves[0])
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return blake2_256(b"\1" + merkle_root(leaves[:split]) + merkle_root(leaves[split:]))


def commitments():
    zero = bytes(32)
    cases = [
        (0, zero, zero, zero, 0, zero),
        (1, named("provider"), named("output"), named("trace"), 24, named("salt")),
        (2**64 - 1, bytes([255]) * 32, named("other output"), named("trace"), 2**32 - 1, named("other salt")),
    ]
    for task, provider, output, trace_root, units, salt in cases:
        yield {
            "task": str(task),  # A string: JSON readers lose bits of 64-bit numbers.
            "provider": provider.hex(),
            "output": output.hex(),
            "trace_root": trace_root.hex(),
            "units": units,
            "salt": salt.hex(),
            "commitment": commitment(task, provider, output, trace_root, units, salt).hex(),
        }


def merkle_roots():
    for count in (0, 1, 2, 3, 4, 5, 7, 8, 13):
        leaves = [named(f"leaf {i}") for i in range(count)]
        yield {"leaves": [leaf.hex() for leaf in leaves], "root": merkle_root(leaves).hex()}


def main():
    for name, vectors in (("commitment", commitments()), ("merkle_root", merkle_roots())):
        (HERE / f"{name}.json").write_text(json.dumps(list(vectors), indent=1) + "\n")


if __name__ == "__main__":
    main()
