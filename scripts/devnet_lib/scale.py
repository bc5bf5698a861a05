"""As much of SCALE, storage keys and SS58 as reading a few values takes."""

import hashlib

_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _rotl(value, bits):
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _short_xxh64(data, seed):
    """The xxHash of 64 bits (doc/xxhash_spec.md of its repository), for less than 32 bytes."""
    if len(data) >= 32:
        raise ValueError("only for short names")
    acc, at = (seed + _P5 + len(data)) & _MASK, 0
    while at + 8 <= len(data):
        lane = _rotl(int.from_bytes(data[at : at + 8], "little") * _P2 & _MASK, 31) * _P1 & _MASK
        acc = (_rotl(acc ^ lane, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        acc = (_rotl(acc ^ int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        acc = _rotl(acc ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    acc = (acc ^ acc >> 33) * _P2 & _MASK
    acc = (acc ^ acc >> 29) * _P3 & _MASK
    return acc ^ acc >> 32


def twox128(text):
    """Hash of a pallet's or a storage item's name."""
    data = text.encode()
    return b"".join(_short_xxh64(data, seed).to_bytes(8, "little") for seed in (0, 1))


def blake2_256(data):
    """The chain's hash."""
    return hashlib.blake2b(data, digest_size=32).digest()


def content_hash(blob):
    """The name of an input or output: the Merkle root over its segments of 1 KiB."""
    level = [blake2_256(b"\0" + blake2_256(blob[at : at + 1024])) for at in range(0, len(blob), 1024)]
    while len(level) > 1:
        pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
        level = [blake2_256(b"\1" + b"".join(pair)) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0] if level else blake2_256(b"")


def blake2_128_concat(data):
    """The hasher of most storage maps."""
    return hashlib.blake2b(data, digest_size=16).digest() + data


def twox64_concat(data):
    """The hasher of storage maps whose keys nobody can choose; of short keys."""
    return _short_xxh64(data, 0).to_bytes(8, "little") + data


def ss58_encode(account, prefix=42):
    """An account id as an address."""
    data = bytes([prefix]) + account
    data += hashlib.blake2b(b"SS58PRE" + data).digest()[:2]
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text


def ss58_decode(address):
    """The account id of an address."""
    number = 0
    for char in address:
        number = number * 58 + _BASE58.index(char)
    data = number.to_bytes(35, "big")
    if hashlib.blake2b(b"SS58PRE" + data[:33]).digest()[:2] != data[33:]:
        raise ValueError(f"not an address: {address}")
    return data[1:33]


class Reader:
    """Reads SCALE values one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        part = self.data[self.at : self.at + count]
        if len(part) != count:
            raise ValueError("the value ends too early")
        self.at += count
        return part

    def uint(self, size):
        return int.from_bytes(self.take(size), "little")

    def u8(self):
        return self.uint(1)

    def u32(self):
        return self.uint(4)

    def compact(self):
        first = self.u8()
        mode = first & 3
        if mode == 0:
            return first >> 2
        if mode == 1:
            return (first | self.uint(1) << 8) >> 2
        if mode == 2:
            return (first | self.uint(3) << 8) >> 2
        return self.uint((first >> 2) + 4)

    def list(self, item):
        return [item() for _ in range(self.compact())]

    def bytes(self):
        return self.take(self.compact())

    def option(self, item):
        return item() if self.u8() else None

    def done(self):
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes are left over")
