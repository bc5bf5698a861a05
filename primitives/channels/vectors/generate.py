#!/usr/bin/env python3
"""Writes the golden vectors beside this file. Independent of the Rust code: hashlib's BLAKE2b and the formulas.

Numbers of more than 32 bits are strings: JSON readers lose bits of them. Bytes are hex.
"""

import json
import pathlib
from hashlib import blake2b

HERE = pathlib.Path(__file__).parent
SEGMENT = 1024


def blake2_256(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def named(name: str) -> bytes:
    """A hash to put into a vector."""
    return blake2_256(name.encode())


def u32(number) -> bytes:
    return number.to_bytes(4, "little")


def u64(number) -> bytes:
    return number.to_bytes(8, "little")


def u128(number) -> bytes:
    return number.to_bytes(16, "little")


def text(domain: str) -> bytes:
    # SCALE of a byte string of less than 64 bytes: its length times 4, then the bytes.
    return bytes([len(domain) * 4]) + domain.encode()


GENERATE = 1  # The operation's place in its enum; `Embed` is 0.
ENDS = {"stop": 0, "length": 1, "cancelled": 2, "cut": 3}


# What is asked for, and what payers sign.


def request_bytes(model, operation, input_hash, input_bytes, units_max, unit_price) -> bytes:
    return model + bytes([operation]) + input_hash + u32(input_bytes) + u32(units_max) + u128(unit_price)


def requests():
    cases = [
        (named("model"), GENERATE, named("input"), 64, 10_000, 5),
        (named("encoder"), 0, named("lines"), 88, 3, 2**128 - 1),
    ]
    for case in cases:
        scale = request_bytes(*case)
        yield {
            "model": case[0].hex(),
            "operation": "generate" if case[1] else "embed",
            "input": case[2].hex(),
            "input_bytes": case[3],
            "units_max": case[4],
            "unit_price": str(case[5]),
            "scale": scale.hex(),
            "hash": blake2_256(text("surety-channel-request") + scale).hex(),
        }


def signed(domain, genesis, scale):
    message = blake2_256(text(domain) + genesis + scale)
    return {
        "genesis": genesis.hex(),
        "scale": scale.hex(),
        "message": message.hex(),
        "wallet_bytes": (b"<Bytes>" + message + b"</Bytes>").hex(),
    }


def vouchers():
    cases = [
        (0, named("payee"), 1_000, 0, named("request"), 1),
        (2**64 - 1, named("other payee"), 2**32 - 1, 2**32 - 1, named("other request"), 2**128 - 1),
        (7, named("payee"), 500_000, 12, named("request"), 1_250_000_000_000),
    ]
    for channel, payee, expiry, nonce, request, total in cases:
        scale = u64(channel) + payee + u32(expiry) + u32(nonce) + request + u128(total)
        yield {
            "channel": str(channel),
            "payee": payee.hex(),
            "expiry": expiry,
            "nonce": nonce,
            "request": request.hex(),
            "sum": str(total),
        } | signed("surety-channel-voucher", named("genesis"), scale)


def cancels():
    for channel, payee, nonce, request in ((0, named("payee"), 0, named("request")), (7, named("x"), 12, named("y"))):
        scale = u64(channel) + payee + u32(nonce) + request
        yield {
            "channel": str(channel),
            "payee": payee.hex(),
            "nonce": nonce,
            "request": request.hex(),
        } | signed("surety-channel-cancel", named("genesis"), scale)


# What payees sign.


def merkle_root(leaves) -> bytes:
    # RFC 6962, section 2.1.
    if not leaves:
        return blake2_256(b"")
    if len(leaves) == 1:
        return blake2_256(b"\0" + leaves[0])
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return blake2_256(b"\1" + merkle_root(leaves[:split]) + merkle_root(leaves[split:]))


def content_hash(content: bytes) -> bytes:
    return merkle_root([blake2_256(content[at : at + SEGMENT]) for at in range(0, len(content), SEGMENT)])


def said(tokens) -> bytes:
    """What a generation says so far: a word of 0, then its ids."""
    return b"".join(u32(word) for word in [0, *tokens])


def statements():
    tokens = [place * place % 30_000 for place in range(700)]
    trace = named("trace")
    for count, end in ((0, None), (1, None), (255, None), (256, None), (700, None), (700, "stop"), (16, "cut")):
        content = said(tokens[:count])
        units = 10 + count
        fields = (7, named("payee"), 3, named("request"), len(content), content_hash(content), units, 5 * units)
        channel, payee, nonce, request, length, output, units, price = fields
        scale = u64(channel) + payee + u32(nonce) + request + u32(length) + output + u32(units) + u128(price)
        scale += b"\0" if end is None else b"\1" + bytes([ENDS[end]]) + trace
        yield {
            "channel": str(channel),
            "payee": payee.hex(),
            "nonce": nonce,
            "request": request.hex(),
            # The ids that were said: place * place % 30,000 for so many places.
            "tokens": count,
            "bytes": length,
            "output": output.hex(),
            "units": units,
            "price": str(price),
            "end": end,
            "trace_root": None if end is None else trace.hex(),
        } | signed("surety-chunk-statement", named("genesis"), scale)


# Batches. A node is (hash, receipts, price).


def node_bytes(node) -> bytes:
    return node[0] + u32(node[1]) + u128(node[2])


def above(left, right):
    return (blake2_256(b"\1" + node_bytes(left) + node_bytes(right)), left[1] + right[1], left[2] + right[2])


def split_of(leaves):
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return split


def sum_root(leaves):
    if len(leaves) == 1:
        return leaves[0]
    split = split_of(leaves)
    return above(sum_root(leaves[:split]), sum_root(leaves[split:]))


def sum_path(leaves, place):
    if len(leaves) == 1:
        return []
    split = split_of(leaves)
    if place < split:
        return [*sum_path(leaves[:split], place), sum_root(leaves[split:])]
    return [*sum_path(leaves[split:], place - split), sum_root(leaves[:split])]


def scale_path(path) -> bytes:
    return bytes([len(path) * 4]) + b"".join(node_bytes(node) for node in path)


def receipt_leaf(channel, nonce):
    return named(f"receipt {channel} {nonce}") + named(f"salt {channel} {nonce}")


def batches():
    cases = [
        [(1, 0, [5])],
        [(1, 0, [5, 0, 7])],
        [(1, 4, [5, 0, 7]), (2**40, 0, [1]), (2**64 - 1, 2**32 - 2, [10**15, 2**90])],
        [(channel, channel, list(range(1, 2 + channel % 6))) for channel in range(13)],
    ]
    for channels in cases:
        leaves = [
            [(blake2_256(b"\0" + receipt_leaf(channel, first + at)), 1, price) for at, price in enumerate(prices)]
            for channel, first, prices in channels
        ]
        totals = [sum_root(of_one) for of_one in leaves]
        tops = [
            (blake2_256(b"\2" + u64(channel) + u32(first) + total[0]), total[1], total[2])
            for (channel, first, _), total in zip(channels, totals, strict=True)
        ]
        root, receipts, price = sum_root(tops)
        openings, start = [], 0
        for place, (channel, first, prices) in enumerate(channels):
            of = u32(place) + u64(channel) + u32(first) + node_bytes(totals[place]) + scale_path(sum_path(tops, place))
            for at, each in enumerate(prices):
                leaf = receipt_leaf(channel, first + at)
                scale = of + u32(at) + leaf + u128(each) + scale_path(sum_path(leaves[place], at))
                openings.append(
                    {"nonce": first + at, "channel": str(channel), "start": str(start), "scale": scale.hex()}
                )
                start += each
        yield {
            # First request and prices of each channel's receipts.
            "channels": [
                {"channel": str(channel), "first": first, "prices": [str(price) for price in prices]}
                for channel, first, prices in channels
            ],
            "root": (root + u32(len(channels)) + u32(receipts) + u128(price)).hex(),
            "openings": openings,
        }


def main():
    files = {
        "batch": batches(),
        "cancel": cancels(),
        "request": requests(),
        "statement": statements(),
        "voucher": vouchers(),
    }
    for name, vectors in files.items():
        (HERE / f"{name}.json").write_text(json.dumps(list(vectors), indent=1) + "\n")


if __name__ == "__main__":
    main()
