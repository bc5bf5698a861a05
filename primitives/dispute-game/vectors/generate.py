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


def main():
    (HERE / "posting.json").write_text(json.dumps(list(postings()), indent=1) + "\n")


if __name__ == "__main__":
    main()
