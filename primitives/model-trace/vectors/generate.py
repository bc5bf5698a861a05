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


def sampling_random(content, seed, position) -> int:
    preimage = content + seed.to_bytes(8, "little") + position.to_bytes(4, "little")
    return int.from_bytes(blake2_256(preimage)[:8], "little")


def sampling_randoms():
    for seed, position in ((0, 0), (1, 0), (0, 1), (2**64 - 1, 2**32 - 1)):
        content = named("request")
        yield {
            "input": content.hex(),
            "seed": str(seed),
            "position": position,
            "random": str(sampling_random(content, seed, position)),
        }


def main():
    (HERE / "sampling_random.json").write_text(json.dumps(list(sampling_randoms()), indent=1) + "\n")


if __name__ == "__main__":
    main()
