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


def sampling_random(content, seed, position) -> int:
    preimage = content + seed.to_bytes(8, "little") + position.to_bytes(4, "little")
    return int.from_bytes(blake2_256(preimage)[:8], "little")


def postings():
    # What a defender posts for the node over `count` leaves from `first` on: the leaves themselves where they are few.
    cases = ((2, 0, 2), (16, 0, 16), (19, 0, 19), (19, 16, 3), (300, 0, 300), (300, 256, 44), (300, 272, 16))
    for leaves, first, count in cases:
        below = [named(f"leaf {i}") for i in range(leaves)][first : first + count]
        width = 1
        while -(-count // width) > 16:
            width *= 16
        parts = [below[at : at + width] for at in range(0, count, width)]
        yield {
            "leaves": leaves,
            "first": first,
            "count": count,
            "hash": merkle_root(below).hex(),
            "children": [(part[0] if width == 1 else merkle_root(part)).hex() for part in parts],
        }


def sampling_randoms():
    for seed, position in ((0, 0), (1, 0), (0, 1), (2**64 - 1, 2**32 - 1)):
        content = named("request")
        yield {
            "input": content.hex(),
            "seed": str(seed),
            "position": position,
            "random": str(sampling_random(content, seed, position)),
        }


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
    files = {
        "posting": postings(),
        "sampling_random": sampling_randoms(),
        "exp_minus": exp_minus(),
    }
    for name, vectors in files.items():
        (HERE / f"{name}.json").write_text(json.dumps(list(vectors), indent=1) + "\n")


if __name__ == "__main__":
    main()
