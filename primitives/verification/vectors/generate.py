#!/usr/bin/env python3
"""Writes the golden vectors beside this file. Independent of the Rust code: hashlib's BLAKE2b and the formulas."""

import json
import pathlib
from decimal import Decimal, localcontext
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


def exp_minus():
    """exp(-x) for x in units of 10^-18, in the same units, with digits enough to see half a unit's error."""
    one = 10**18
    cases = [0, 1, 2, one // 1000, one // 10, one // 5, one // 2, one, 2 * one, 3 * one, 10 * one, 41 * one]
    # Around n ln 2, where the reduction goes over to the next n.
    cases += [693147180559945309 * n + step for n in (1, 2, 7, 31, 60) for step in (-1, 0, 1, 2)]
    cases += [45 * one - 1, 45 * one, 46 * one, 2**128 - 1]
    # Scattered over the range by a hash.
    cases += [int.from_bytes(named(f"exponent {i}")[:16], "little") % (46 * one) for i in range(200)]
    cases += [int.from_bytes(named(f"small exponent {i}")[:16], "little") % (4 * one) for i in range(200)]
    with localcontext() as context:
        context.prec = 60
        for x in cases:
            # Beyond what decimals can hold is beyond what is asked for.
            exact = (-Decimal(x) / one).exp() * one if x < 1000 * one else Decimal(0)
            yield {"x": str(x), "exp_minus": f"{exact:.6f}"}


def main():
    written = (("commitment", commitments()), ("merkle_root", merkle_roots()), ("exp_minus", exp_minus()))
    for name, vectors in written:
        (HERE / f"{name}.json").write_text(json.dumps(list(vectors), indent=1) + "\n")


if __name__ == "__main__":
    main()
