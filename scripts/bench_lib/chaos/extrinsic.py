"""Signed extrinsics of accounts of the bench's own, made without the programs under test."""

from devnet_lib.scale import blake2_256

from ..errors import BenchError
from .ed25519 import Key

SIGNED_V4 = b"\x84"
ID, ED25519, IMMORTAL, NO_METADATA_HASH = b"\0", b"\0", b"\0", b"\0"
# Longer than this and its hash is signed instead.
PAYLOAD_MAX = 256


def compact(number):
    """A number as SCALE's compact form."""
    if number < 1 << 6:
        return bytes([number << 2])
    if number < 1 << 14:
        return (number << 2 | 1).to_bytes(2, "little")
    if number < 1 << 30:
        return (number << 2 | 2).to_bytes(4, "little")
    size = (number.bit_length() + 7) // 8
    return bytes([(size - 4) << 2 | 3]) + number.to_bytes(size, "little")


class Signer:
    """An account that signs calls for one chain."""

    def __init__(self, name):
        self.key = Key(blake2_256(b"surety bench " + name.encode()))
        self.account = self.key.public

    def sign(self, runtime, call, nonce, tip=0):
        """The extrinsic, in hexadecimal."""
        carried, signed = runtime.extensions(nonce, tip)
        payload = call + carried + signed
        signature = self.key.sign(payload if len(payload) <= PAYLOAD_MAX else blake2_256(payload))
        body = SIGNED_V4 + ID + self.account + ED25519 + signature + carried + call
        return "0x" + (compact(len(body)) + body).hex()


class Runtime:
    """What a call has to know of the runtime that is to take it."""

    def __init__(self, chain):
        head = chain.finalized_hash()
        version = chain.rpc.call("state_getRuntimeVersion", head)
        self.metadata = chain.metadata(head)
        self.spec, self.transaction = version["specVersion"], version["transactionVersion"]
        self.genesis = bytes.fromhex(chain.block_hash(0)[2:])

    def extensions(self, nonce, tip):
        """What is carried beside the call, and what is only signed, in the runtime's order."""
        u32 = lambda number: number.to_bytes(4, "little")  # noqa: E731
        known = {
            "CheckSpecVersion": (b"", u32(self.spec)),
            "CheckTxVersion": (b"", u32(self.transaction)),
            "CheckGenesis": (b"", self.genesis),
            "CheckMortality": (IMMORTAL, self.genesis),
            "CheckNonce": (compact(nonce), b""),
            "ChargeTransactionPayment": (compact(tip), b""),
            "CheckMetadataHash": (NO_METADATA_HASH, b"\0"),
        }
        carried, signed = b"", b""
        for name, of, only_signed in self.metadata.extensions:
            if name not in known and (self.metadata.takes_bytes(of) or self.metadata.takes_bytes(only_signed)):
                raise BenchError(f"calls have to carry {name} now: add it to {__file__}")
            more, more_signed = known.get(name, (b"", b""))
            carried, signed = carried + more, signed + more_signed
        return carried, signed

    def transfer(self, to, amount):
        """A payment to an account."""
        return self.metadata.call_index("Balances", "transfer_keep_alive") + ID + to + compact(amount)

    def upgrade(self, wasm):
        """Another runtime, as root. Whatever it weighs."""
        code = self.metadata.call_index("System", "set_code") + compact(len(wasm)) + wasm
        return self.metadata.call_index("Sudo", "sudo_unchecked_weight") + code + compact(0) + compact(0)
