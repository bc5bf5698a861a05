#!/usr/bin/env python3
"""Writes the golden vectors beside this file. Independent of the Rust code: hashlib's BLAKE2b and the formulas."""

import json
import pathlib
import struct
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


def sampling_random(content, seed, position) -> int:
    preimage = content + seed.to_bytes(8, "little") + position.to_bytes(4, "little")
    return int.from_bytes(blake2_256(preimage)[:8], "little")


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
        "commitment": commitments(),
        "merkle_root": merkle_roots(),
        "proof": proofs(),
        "posting": postings(),
        "row_digest": rows(),
        "weight_row_leaf": weight_rows(),
        "sampling_random": sampling_randoms(),
        "exp_minus": exp_minus(),
    }
    for name, vectors in files.items():
        (HERE / f"{name}.json").write_text(json.dumps(list(vectors), indent=1) + "\n")


if __name__ == "__main__":
    main()
