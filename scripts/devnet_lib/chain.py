"""What the devnet and the tests ask of the chain, read straight from a node: not through the programs under test.

Values are read by the runtime's own metadata (`metadata.py` says what they look like then), so that a record with
another field, or a runtime that is upgraded meanwhile, changes nothing here.
"""

from .errors import RpcError
from .metadata import HASHERS, Metadata
from .rpc import Rpc
from .scale import ss58_decode, twox128

SURE = 10**12
# One, as the runtime counts parts of it.
QUINTILLION = 10**18
KEYS_PAGE = 1000
# By genesis and version of the runtime: reading one takes half a second.
_METADATA = {}


def sure(plancks):
    """Plancks as people read them."""
    whole, rest = divmod(plancks, SURE)
    return f"{whole:,}.{rest:012d}".rstrip("0").rstrip(".") + " SURE"


def storage_key(pallet, item, *hashed):
    return "0x" + (twox128(pallet) + twox128(item) + b"".join(hashed)).hex()


class Chain:
    """A node, asked for blocks and state: by its last final block, unless another one is named.

    A block that is only the best may be replaced by a sibling. What is compared is read at one block.
    """

    def __init__(self, url):
        self.rpc, self.genesis = Rpc(url), None
        # The last block that somebody asked about, and its metadata.
        self._asked = (None, None)

    def header(self, block=None):
        return self.rpc.call("chain_getHeader", *([block] if block else []))

    def best_number(self):
        return int(self.header()["number"], 16)

    def best_hash(self):
        return self.rpc.call("chain_getBlockHash")

    def finalized_hash(self):
        return self.rpc.call("chain_getFinalizedHead")

    def finalized_number(self):
        return self.number_of(self.finalized_hash())

    def number_of(self, block):
        return int(self.header(block)["number"], 16)

    def block_hash(self, number):
        """The block at a height: for good where that is final."""
        found = self.rpc.call("chain_getBlockHash", number)
        if found is None:
            raise RpcError(f"the node at {self.rpc.url} has no block {number}")
        return found

    def storage(self, key, block=None):
        found = self.rpc.call("state_getStorage", key, block or self.finalized_hash())
        return bytes.fromhex(found[2:]) if found is not None else None

    def metadata(self, block):
        """What the runtime of a block says of its types."""
        if self._asked[0] != block:
            version = (self._genesis(), self.rpc.call("state_getRuntimeVersion", block)["specVersion"])
            if version not in _METADATA:
                _METADATA[version] = Metadata(bytes.fromhex(self.rpc.call("state_getMetadata", block)[2:]))
            self._asked = (block, _METADATA[version])
        return self._asked[1]

    def _genesis(self):
        if self.genesis is None:
            self.genesis = self.block_hash(0)
        return self.genesis

    def value(self, pallet, item, *keys, block=None):
        """A storage item, or that of the encoded keys: its default where it is not set, or nothing."""
        block = block or self.finalized_hash()
        metadata = self.metadata(block)
        found = metadata.item(pallet, item)
        if found is None:
            raise RpcError(f"the runtime at {self.rpc.url} keeps no {pallet}.{item}")
        data = self.storage(storage_key(pallet, item, found.hashed(*keys)), block)
        data = found.default if data is None else data
        return metadata.decode(found.value, data) if data is not None else None

    def entries(self, pallet, item, block=None):
        """All of a map with one key, as {key: value}."""
        block = block or self.finalized_hash()
        metadata, prefix, found = self.metadata(block), storage_key(pallet, item), {}
        what = metadata.item(pallet, item)
        key_at = 32 + HASHERS[what.hashers[0]][1]
        last = None
        while True:
            keys = self.rpc.call("state_getKeysPaged", prefix, KEYS_PAGE, last, block)
            if not keys:
                return found
            for key, value in self.rpc.call("state_queryStorageAt", keys, block)[0]["changes"]:
                name = metadata.decode(what.key, bytes.fromhex(key[2:])[key_at:])
                found[name] = metadata.decode(what.value, bytes.fromhex(value[2:]))
            last = keys[-1]

    def events(self, block):
        """What happened in a block, as (pallet, name, fields)."""
        records = (record["event"] for record in self.value("System", "Events", block=block))
        return [(of["name"], *_event(of.get("value"))) for of in records]

    def timestamp_ms(self, number):
        """When a block was made, by its author's clock."""
        return self.value("Timestamp", "Now", block=self.block_hash(number))

    def finality_clock(self, block):
        """How far finality had come, by the runtime's own reckoning after a block."""
        return self.value("FinalityClock", "Finalized", block=block)

    def clock(self, block=None):
        """The time that windows of tasks are counted in, after a block: it stands still while finality does."""
        return self.value("FinalityClock", "Elapsed", block=block)

    def account(self, address, block=None):
        """Nonce and money of an account, in plancks."""
        found = self.value("System", "Account", ss58_decode(address), block=block)
        return {"nonce": found["nonce"], "free": found["data"]["free"], "held": found["data"]["reserved"]}

    def next_nonce(self, address):
        """How many extrinsics an account has sent, those included that wait in the pool."""
        return self.rpc.call("system_accountNextIndex", address)

    def next_task(self, block=None):
        """The number the next task will get."""
        return self.value("TaskAuction", "NextTaskId", block=block)

    def task(self, task, block=None):
        """A task with its round and escrow, or nothing."""
        block, key = block or self.finalized_hash(), task.to_bytes(8, "little")
        view = self.value("TaskAuction", "Tasks", key, block=block)
        if view is None:
            return None
        escrow = self.value("Billing", "Escrows", key, block=block)
        view["round"] = self.value("Results", "Rounds", key, block=block)
        view["escrow"] = escrow["held"] if escrow else 0
        return view

    def provider_record(self, stash):
        """What the finalised chain keeps of a provider; nothing when it does not know it."""
        return self.value("ProviderRegistry", "Providers", ss58_decode(stash))

    def stake(self, stash, block=None):
        """What a stash has bonded, in plancks; nothing when it has none."""
        return self.value("Staking", "Ledgers", ss58_decode(stash), block=block)

    def slashes(self):
        """Slashes that wait to be carried out, by their numbers. Their `part` is in parts of `QUINTILLION`."""
        return self.entries("TrustLock", "Slashes")

    def next_dispute(self, block=None):
        """The number the next dispute will get."""
        return self.value("Disputes", "NextDisputeId", block=block)

    def commits(self, task, agent, first, last):
        """Commitments that `agent` signed for `task` in blocks first..=last, failed extrinsics included.

        Beyond the last final block it looks at those of the best chain, as far as that goes then.
        """
        metadata, found = self.metadata(self.finalized_hash()), []
        for number in range(first, last + 1):
            name = self.rpc.call("chain_getBlockHash", number)
            if name is None:
                break
            block = self.rpc.call("chain_getBlock", name)
            for extrinsic in block["block"]["extrinsics"]:
                signer, call = metadata.signed(bytes.fromhex(extrinsic[2:]), "Results", "commit") or (None, None)
                if signer == agent and call["task"] == task:
                    found.append(call["commitment"])
        return found

    def finality_lag(self):
        """Blocks between the best and the last finalised one."""
        try:
            return self.best_number() - self.finalized_number()
        except RpcError:
            return None


def _event(found):
    """Name and fields of a pallet's event."""
    if not isinstance(found, dict):
        return found, {}
    return found["name"], {name: value for name, value in found.items() if name != "name"}
