#!/usr/bin/env python3
"""Writes the golden vectors beside this file. Independent of the Rust code: hashlib's BLAKE2b and the formulas."""

import json
import pathlib
import struct
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


def inclusion_proof(leaves, index):
    # RFC 6962, section 2.1.1.
    if len(leaves) == 1:
        return []
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    if index < split:
        return [*inclusion_proof(leaves[:split], index), merkle_root(leaves[split:])]
    return [*inclusion_proof(leaves[split:], index - split), merkle_root(leaves[:split])]


def scale_proof(siblings) -> bytes:
    # A vector of at most 63 fixed arrays: its length times 4, then the arrays.
    return bytes([len(siblings) * 4]) + b"".join(siblings)


def row_digest(row: bytes) -> bytes:
    return merkle_root([blake2_256(row[at : at + 1024]) for at in range(0, len(row), 1024)])


def weight_row_leaf(name, row, q, scales, bias) -> bytes:
    name = name.encode()
    reals = scales if bias is None else [*scales, bias]
    numbers = struct.pack(f"<I{len(q)}b{len(reals)}f", row, *q, *reals)
    return blake2_256(struct.pack("<I", len(name)) + name + numbers)


def row_bytes(seed: int, length: int) -> bytes:
    """Bytes that both sides can make: too long to be written down."""
    return bytes((i * i + seed * i + i // 251) % 256 for i in range(length))


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


def proofs():
    for count, index in ((1, 0), (2, 1), (3, 2), (5, 0), (5, 4), (13, 6), (17, 16)):
        leaves = [named(f"leaf {i}") for i in range(count)]
        siblings = inclusion_proof(leaves, index)
        yield {
            "leaves": count,
            "index": index,
            "leaf": leaves[index].hex(),
            "root": merkle_root(leaves).hex(),
            "scale": scale_proof(siblings).hex(),
        }


def rows():
    for seed, length, count in ((1, 1, 1), (2, 1024, 1), (3, 1025, 2), (4, 1536, 16), (5, 10240, 5), (6, 3000, 3)):
        each = [row_bytes(seed + number, length) for number in range(count)]
        digests = [row_digest(row) for row in each]
        yield {
            "seed": seed,
            "length": length,
            "rows": count,
            "first": digests[0].hex(),
            "digest": merkle_root(digests).hex(),
        }


def weight_rows():
    cases = [
        ("head", 0, [1, -2, 127], [0.5], None),
        ("encoder.layer.0.attention.self.query", 383, list(range(-127, 128)), [0.25, 1.5], -0.75),
        ("norm.weight", 0, [], [1.0, -2.0, 3.5], None),
        ("zähler", 2**32 - 1, [-128], [0.0], 0.0),
    ]
    for name, row, q, scales, bias in cases:
        yield {
            "name": name,
            "row": row,
            "q": q,
            "scales": scales,
            "bias": bias,
            "leaf": weight_row_leaf(name, row, q, scales, bias).hex(),
        }


def main():
    files = {
        "commitment": commitments(),
        "merkle_root": merkle_roots(),
        "proof": proofs(),
        "row_digest": rows(),
        "weight_row_leaf": weight_rows(),
    }
    for name, vectors in files.items():
        (HERE / f"{name}.json").write_text(json.dumps(list(vectors), indent=1) + "\n")


if __name__ == "__main__":
    main()
