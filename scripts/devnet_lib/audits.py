"""Whether a receipt of an answer at once was audited, by the chain alone: a point that a verifier drew is in it, and
the verifier has opened what it had sealed of it.
"""

from hashlib import blake2b

from .errors import DevnetError
from .scale import ss58_decode

OPENED = "Opened"


def drawn(output, count, price):
    """Where a verifier's points are on the line of a batch's price (`surety_audit_economics::drawn_points`).

    `output` is what its proof came to, hexadecimal, and `count` how many points that gave.
    """
    seed = b"receipts point" + bytes.fromhex(output.removeprefix("0x"))
    hashes = (blake2b(seed + number.to_bytes(4, "little"), digest_size=32).digest() for number in range(count))
    return sorted(int.from_bytes(found[:16], "little") * price >> 128 for found in hashes)


def within(receipts, wanted):
    """The part of a batch's price that is a receipt's: all `receipts` of the batch are (channel, nonce, price)."""
    first = sum(price for *place, price in receipts if place < list(wanted[:2]))
    return range(first, first + wanted[2])


class Audits:
    """The audits of one batch of a provider's, taken down while the chain has them."""

    def __init__(self, devnet, provider, batch):
        self.chain, self.verifiers = devnet.chain, devnet.verifiers
        self.provider, self.batch = provider.stash, batch
        # Of each verifier that has opened, by its name: what its proof came to.
        self.opened = {}
        self.price = None
        # The block that was looked at last.
        self.seen = None

    def look(self):
        """Takes down what there is by the last final block."""
        block = self.chain.finalized_hash()
        if block == self.seen:
            return
        self.seen = block
        stash, number = ss58_decode(self.provider), self.batch.to_bytes(4, "little")
        batch = self.chain.value("Channels", "Batches", stash, number, block=block)
        if batch:
            self.price = batch["window"]["root"]["sums"]["price"]
        for verifier in self.verifiers:
            of = ss58_decode(verifier.stash)
            found = self.chain.value("Channels", "PointsAudits", stash + number, of, block=block)
            if found and found["state"]["name"] == OPENED:
                self.opened[verifier.name] = found["output"]

    def of(self, receipts, wanted, log):
        """How many points of each verifier that has opened are in a receipt; none of those that have none there.

        `receipts` are those that the batch has, as far as they are known here: all of them.
        """
        if sum(price for *_, price in receipts) != self.price:
            raise DevnetError(f"batch {self.batch} has others' receipts, too: {receipts} are not {self.price} plancks")
        stashes = {verifier.stash: verifier.name for verifier in self.verifiers}
        announced = {
            stashes.get(of["verifier"]): of["points"]
            for _, pallet, name, of in log.events()
            if (pallet, name) == ("Channels", "PointsAnnounced")
            and (of["provider"], of["batch"]) == (self.provider, self.batch)
        }
        found = {}
        for name, output in self.opened.items():
            part = within(receipts, wanted)
            points = sum(point in part for point in drawn(output, announced.get(name, 0), self.price))
            if points:
                found[name] = points
        return found
