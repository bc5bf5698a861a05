"""What a runtime says of its own types, and values read by that: the devnet's scripts know no shapes of records.

Reads metadata V14, as `state_getMetadata` gives it.
"""

import functools
from dataclasses import dataclass

from .scale import Reader, blake2_128_concat, ss58_encode, twox64_concat

MAGIC, VERSION = b"meta", 14
ACCOUNT, OPTION = ("sp_core", "crypto", "AccountId32"), ("Option",)
PRIMITIVE_BYTES = {3: 1, 4: 2, 5: 4, 6: 8, 7: 16, 8: 32, 9: 1, 10: 2, 11: 4, 12: 8, 13: 16, 14: 32}
SIGNED_FROM = 9
# How an extrinsic begins that an account has signed, in version 4, and the account; bytes of signatures by their kind:
# Ed25519, Sr25519, ECDSA.
SIGNED, BY_ID, SIGNATURE_BYTES = 0x84, 0, (64, 64, 65)
# Only what our own maps use, by the index of the hasher: the hash of an encoded key, and bytes before the key in it.
HASHERS = {2: (blake2_128_concat, 16), 5: (twox64_concat, 8), 6: (lambda key: key, 0)}


@dataclass(frozen=True)
class Item:
    """A storage item of a pallet."""

    # Empty for a single value.
    hashers: tuple
    key: int | None
    value: int
    # What stands for a value that is not there; nothing where that is `None`.
    default: bytes | None

    def hashed(self, *keys):
        """The part of the storage key that stands for encoded keys."""
        return b"".join(HASHERS[hasher][0](key) for hasher, key in zip(self.hashers, keys, strict=True))


class Metadata:
    """Types and pallets of one runtime."""

    def __init__(self, data):
        reader = Reader(data)
        if reader.take(4) != MAGIC or reader.u8() != VERSION:
            raise ValueError("metadata of another version")
        self.types = dict(reader.list(lambda: _portable(reader)))
        self.storage, self.calls, self.pallets, self.constants = {}, {}, {}, {}
        for name, prefix, items, calls, constants, index in reader.list(lambda: _pallet(reader)):
            self.pallets[name] = index
            self.calls[name], self.constants[name] = calls, constants
            self.storage[name] = (prefix, items)
        reader.compact(), reader.u8()
        # What a signed extrinsic carries beside its call, in order: name, type, and type of what is only signed.
        self.extensions = reader.list(lambda: (_text(reader), reader.compact(), reader.compact()))
        reader.compact()
        reader.done()

    def item(self, pallet, name):
        """A storage item, or nothing when this runtime has none of that name."""
        return self.storage.get(pallet, (None, {}))[1].get(name)

    def constant(self, pallet, name):
        """What a pallet is configured with."""
        return self.decode(*self.constants[pallet][name])

    def call_index(self, pallet, name):
        """The two bytes that a call begins with."""
        variants = self.types[self.calls[pallet]].variants
        return bytes([self.pallets[pallet], next(i for i, (of, _) in variants.items() if of == name)])

    def signed(self, extrinsic, pallet, name):
        """Who signed an extrinsic, as an address, and the fields of its call.

        Nothing where it is another call, or where nobody signed it.
        """
        reader = Reader(extrinsic)
        reader.compact()
        if reader.u8() != SIGNED or reader.u8() != BY_ID:
            return None
        signer = ss58_encode(reader.take(32))
        reader.take(SIGNATURE_BYTES[reader.u8()])
        for _, carried, _ in self.extensions:
            self.read(carried, reader)
        if reader.u8() != self.pallets[pallet]:
            return None
        call = self.read(self.calls[pallet], reader)
        reader.done()
        return (signer, call) if isinstance(call, dict) and call["name"] == name else None

    def takes_bytes(self, type_id):
        """Whether values of a type are anything at all."""
        found = self.types[type_id]
        if isinstance(found, Composite):
            return any(self.takes_bytes(of) for _, of in found.fields)
        return any(map(self.takes_bytes, found.of)) if isinstance(found, Tuple) else True

    def decode(self, type_id, data):
        """A whole value."""
        reader = Reader(data)
        value = self.read(type_id, reader)
        reader.done()
        return value

    def read(self, type_id, reader):
        """The next value.

        Accounts become addresses, other bytes of fixed length hexadecimal, sequences of bytes `bytes`, records
        dictionaries, enumerations without data their variant's name, and others a dictionary with that as `name`.
        """
        return self.types[type_id].read(self, reader)

    @functools.cache  # noqa: B019 There is one for each version of the runtime.
    def is_byte(self, type_id):
        """Whether a type is `u8`."""
        found = self.types[type_id]
        return isinstance(found, Primitive) and found.kind == 3


@dataclass(frozen=True)
class Composite:
    path: tuple
    fields: tuple

    def read(self, metadata, reader):
        if self.path == ACCOUNT:
            return ss58_encode(reader.take(32))
        return _fields(metadata, reader, self.fields)


@dataclass(frozen=True)
class Variant:
    path: tuple
    # {index: (name, fields)}
    variants: dict

    def read(self, metadata, reader):
        name, fields = self.variants[reader.u8()]
        if self.path == OPTION:
            return _fields(metadata, reader, fields) if fields else None
        if not any(of for _, of in self.variants.values()):
            return name
        if not fields:
            return {"name": name}
        value = _fields(metadata, reader, fields)
        named = fields[0][0] is not None
        return {**(value if named else {"value": value}), "name": name}


@dataclass(frozen=True)
class Sequence:
    of: int

    def read(self, metadata, reader):
        count = reader.compact()
        if metadata.is_byte(self.of):
            return reader.take(count)
        return [metadata.read(self.of, reader) for _ in range(count)]


@dataclass(frozen=True)
class Array:
    length: int
    of: int

    def read(self, metadata, reader):
        if metadata.is_byte(self.of):
            return "0x" + reader.take(self.length).hex()
        return [metadata.read(self.of, reader) for _ in range(self.length)]


@dataclass(frozen=True)
class Tuple:
    of: tuple

    def read(self, metadata, reader):
        return tuple(metadata.read(of, reader) for of in self.of)


@dataclass(frozen=True)
class Primitive:
    kind: int

    def read(self, _metadata, reader):
        if self.kind == 0:
            return bool(reader.u8())
        if self.kind == 2:
            return reader.bytes().decode()
        return int.from_bytes(reader.take(PRIMITIVE_BYTES[self.kind]), "little", signed=self.kind >= SIGNED_FROM)


@dataclass(frozen=True)
class Compact:
    of: int

    def read(self, _metadata, reader):
        return reader.compact()


@dataclass(frozen=True)
class Bits:
    def read(self, _metadata, reader):
        return reader.take((reader.compact() + 7) // 8)


def _fields(metadata, reader, fields):
    """Named ones as a dictionary, a single one without a name as what it is."""
    if fields and fields[0][0] is not None:
        return {name: metadata.read(of, reader) for name, of in fields}
    values = [metadata.read(of, reader) for _, of in fields]
    return values[0] if len(values) == 1 else values


def _text(r):
    return r.bytes().decode()


def _texts(r):
    return tuple(r.list(lambda: _text(r)))


def _field(r):
    name, of = r.option(lambda: _text(r)), r.compact()
    r.option(lambda: _text(r))
    _texts(r)
    return name, of


def _variant(r):
    name, fields, index = _text(r), tuple(r.list(lambda: _field(r))), r.u8()
    _texts(r)
    return index, (name, fields)


def _portable(r):
    number, path = r.compact(), _texts(r)
    r.list(lambda: (_text(r), r.option(r.compact)))
    kind = r.u8()
    if kind == 0:
        found = Composite(path, tuple(r.list(lambda: _field(r))))
    elif kind == 1:
        found = Variant(path, dict(r.list(lambda: _variant(r))))
    elif kind == 2:
        found = Sequence(r.compact())
    elif kind == 3:
        found = Array(r.u32(), r.compact())
    elif kind == 4:
        found = Tuple(tuple(r.list(r.compact)))
    elif kind == 5:
        found = Primitive(r.u8())
    elif kind == 6:
        found = Compact(r.compact())
    else:
        r.compact(), r.compact()
        found = Bits()
    _texts(r)
    return number, found


def _item(r):
    name, has_default, kind = _text(r), r.u8(), r.u8()
    hashers, key = ((), None) if kind == 0 else (tuple(r.list(r.u8)), r.compact())
    value, default = r.compact(), r.bytes()
    _texts(r)
    return name, Item(hashers, key, value, default if has_default else None)


def _constant(r):
    name, of, value = _text(r), r.compact(), r.bytes()
    _texts(r)
    return name, (of, value)


def _pallet(r):
    name = _text(r)
    prefix, items = r.option(lambda: (_text(r), dict(r.list(lambda: _item(r))))) or (name, {})
    calls = r.option(r.compact)
    r.option(r.compact)  # events
    constants = dict(r.list(lambda: _constant(r)))
    r.option(r.compact)  # errors
    return name, prefix, items, calls, constants, r.u8()
