"""What the devnet and the tests ask of the chain, read straight from a node: not through the programs under test."""

from .errors import RpcError
from .rpc import Rpc
from .scale import Reader, blake2_128_concat, ss58_decode, twox128

SURE = 10**12
STATES = ("Bidding", "Revealing", "Running", "Settled", "Failed", "Cancelled")
PHASES = ("Committing", "Auditing", "Revealing", "Challengeable")
FAILURES = ("NotEnoughBids", "NotEnoughResults", "NoAgreement", "InputWithheld")
SECURITY_LEVELS = ("Basic", "Standard", "High")
AUDIT_STATES = ("Sealed", "Confirmed", "Differs", "Disputed", "Over")
FAULTS = (
    "WrongResult",
    "LostDispute",
    "WithheldData",
    "NoReveal",
    "Undecided",
    "FalseAudit",
    "ConfirmedWrong",
    "AuditNoShow",
    "Dissent",
    "VoteNoShow",
    "Equivocation",
)
ROLES = ("Provider", "Verifier")
TRUST_LOCK_INDEX, COMMIT_INDEX = 54, 0


def sure(plancks):
    """Plancks as people read them."""
    whole, rest = divmod(plancks, SURE)
    return f"{whole:,}.{rest:012d}".rstrip("0").rstrip(".") + " SURE"


def storage_key(pallet, item, *hashed):
    return "0x" + (twox128(pallet) + twox128(item) + b"".join(hashed)).hex()


def _claim(r):
    return {"output": r.hash(), "trace_root": r.hash(), "units": r.u32()}


def _assignment(r):
    return {"provider": r.account(), "price": r.u128()}


def _state(r):
    name = STATES[r.u8()]
    state = {"name": name}
    if name in ("Bidding", "Revealing"):
        state["until"] = r.u32()
    elif name == "Running":
        state["assignments"] = r.list(lambda: _assignment(r))
        state["reserves"] = r.list(lambda: _assignment(r))
    elif name == "Settled":
        state.update(at=r.u32(), claim=_claim(r), payments=r.list(lambda: _assignment(r)))
        state.update(refund=r.u128(), fee=r.u128())
    elif name == "Failed":
        state.update(at=r.u32(), reason=FAILURES[r.u8()])
    else:
        state["at"] = r.u32()
    return state


def _security(r):
    return {"level": SECURITY_LEVELS[r.u8()], "value_at_risk": r.u128()}


def _spec(r):
    return {
        "model": r.hash(),
        "operation": r.u8(),
        "input": r.hash(),
        "input_bytes": r.u32(),
        "units_max": r.u32(),
        "redundancy": r.u32(),
        "sources": [part.decode() for part in r.list(r.bytes)],
        "security": _security(r),
    }


def _progress(r):
    kind = r.u8()
    if kind == 0:
        return {"name": "Working"}
    if kind == 1:
        return {"name": "Committed", "commitment": r.hash()}
    return {"name": "Revealed", "claim": _claim(r)}


def _verdict(r):
    if r.u8() == 0:
        verdict = {"name": "Agreed", "claim": _claim(r)}
        for group in ("majority", "minority", "absent"):
            verdict[group] = r.list(r.account)
        return verdict
    return {"name": "Failed", "reason": FAILURES[r.u8()]}


def _member(r):
    member = {"provider": r.account(), "price": r.u128(), "lock": r.u128(), "progress": _progress(r)}
    member["fault"] = r.option(lambda: FAULTS[r.u8()])
    member["input_demands"] = r.u32()
    return member


def _input_demand(r):
    demand = {"provider": r.account(), "by": r.account(), "segment": r.u32(), "price": r.u128()}
    demand["until"] = r.u32()
    return demand


def _audit(r):
    audit = {"verifier": r.account(), "provider": r.account(), "bond": r.u128(), "state": AUDIT_STATES[r.u8()]}
    if audit["state"] == "Sealed":
        audit["seal"] = r.hash()
    elif audit["state"] == "Disputed":
        audit["dispute"] = r.u32()
    return audit


def _open_dispute(r):
    return {"id": r.u32(), "due": r.u32(), "seats": r.option(lambda: (r.u8(), r.u8()))}


def _round(r):
    found = {"redundancy": r.u32(), "units_max": r.u32()}
    found["members"] = r.list(lambda: _member(r))
    found["dropped"] = r.list(r.account)
    found["phase"] = {"name": PHASES[r.u8()], "until": r.u32()}
    if found["phase"]["name"] == "Challengeable":
        found["phase"]["verdict"] = _verdict(r)
    found["draw"] = r.option(lambda: {"seed": r.hash(), "verifier_stake": r.u128(), "tranche": r.u8()})
    found["audits"] = r.list(lambda: _audit(r))
    found["disputes"] = r.list(lambda: _open_dispute(r))
    found.update(challenges=r.u32(), demands=r.u32(), announced=r.option(r.hash), security=_security(r))
    found["input_demand"] = r.option(lambda: _input_demand(r))
    return found


def _slash(r):
    slash = {"task": r.u64(), "offender": r.account(), "kind": FAULTS[r.u8()], "lock": r.u128()}
    slash.update(part=r.u64() / 10**18, finder=r.option(r.account), client=r.option(r.account))
    slash.update(proven_at=r.u32(), until=r.u32())
    return slash


def _stake(r):
    stake = {"role": ROLES[r.u8()], "bonded": r.u128(), "locked": r.u128()}
    stake["unlocking"] = r.list(lambda: {"amount": r.u128(), "available_at": r.u32()})
    stake["agent"] = r.option(r.account)
    return stake


def _task_view(r):
    view = {"client": r.account(), "spec": _spec(r), "cap": r.u128(), "posted_at": r.u32()}
    view["state"] = _state(r)
    view["round"] = r.option(lambda: _round(r))
    view["escrow"] = r.u128()
    return view


class Chain:
    """A node, asked for blocks and state."""

    def __init__(self, url):
        self.rpc = Rpc(url)

    def header(self, block=None):
        return self.rpc.call("chain_getHeader", *([block] if block else []))

    def best_number(self):
        return int(self.header()["number"], 16)

    def finalised_hash(self):
        return self.rpc.call("chain_getFinalizedHead")

    def finalised_number(self):
        return int(self.header(self.finalised_hash())["number"], 16)

    def block_hash(self, number):
        return self.rpc.call("chain_getBlockHash", number)

    def peers(self):
        return self.rpc.call("system_health")["peers"]

    def storage(self, key, block=None):
        found = self.rpc.call("state_getStorage", key, block or self.finalised_hash())
        return bytes.fromhex(found[2:]) if found is not None else None

    def pallet_state(self, pallet, item=None):
        """Everything a pallet keeps, as {key: value}: to see that something changed nothing."""
        prefix = "0x" + (twox128(pallet) + (twox128(item) if item else b"")).hex()
        block = self.finalised_hash()
        keys = self.rpc.call("state_getKeysPaged", prefix, 1000, None, block)
        return {key: self.rpc.call("state_getStorage", key, block) for key in keys}

    def timestamp_ms(self, number):
        """When a block was made, by its author's clock."""
        value = self.storage(storage_key("Timestamp", "Now"), self.block_hash(number))
        return int.from_bytes(value or b"", "little")

    def finality_clock(self, number):
        """How far finality had come, by the runtime's own reckoning after that block."""
        value = self.storage(storage_key("FinalityClock", "Finalised"), self.block_hash(number))
        return int.from_bytes(value or b"", "little")

    def account(self, address, block=None):
        """Nonce and money of an account, in plancks."""
        value = self.storage(storage_key("System", "Account", blake2_128_concat(ss58_decode(address))), block)
        if value is None:
            return {"nonce": 0, "free": 0, "held": 0}
        reader = Reader(value)
        nonce = reader.u32()
        reader.take(12)  # consumers, providers, sufficients
        return {"nonce": nonce, "free": reader.u128(), "held": reader.u128()}

    def next_nonce(self, address):
        """How many extrinsics an account has sent, those included that wait in the pool."""
        return self.rpc.call("system_accountNextIndex", address)

    def next_task(self):
        """The number the next task will get."""
        value = self.storage(storage_key("TaskAuction", "NextTaskId"))
        return int.from_bytes(value or b"", "little")

    def task(self, task, block=None):
        """A task with its round and escrow, or nothing."""
        argument = "0x" + task.to_bytes(8, "little").hex()
        answer = self.rpc.call("state_call", "TaskApi_task", argument, block or self.finalised_hash())
        reader = Reader(bytes.fromhex(answer[2:]))
        view = reader.option(lambda: _task_view(reader))
        reader.done()
        return view

    def provider_record(self, stash):
        """What the finalised chain keeps of a provider, undecoded; nothing when it does not know it."""
        account = ss58_decode(stash)
        for key, value in self.pallet_state("ProviderRegistry", "Providers").items():
            if bytes.fromhex(key[2:]).endswith(account):
                return value
        return None

    def stake(self, stash):
        """What a stash has bonded, in plancks; nothing when it has none."""
        value = self.storage(storage_key("Staking", "Ledgers", blake2_128_concat(ss58_decode(stash))))
        return _stake(Reader(value)) if value is not None else None

    def slashes(self):
        """Slashes that wait to be carried out, by their numbers."""
        found = {}
        for key, value in self.pallet_state("TrustLock", "Slashes").items():
            number = int.from_bytes(bytes.fromhex(key[2:])[-4:], "little")
            found[number] = _slash(Reader(bytes.fromhex(value[2:])))
        return found

    def next_dispute(self):
        """The number the next dispute will get."""
        value = self.storage(storage_key("TrustLock", "NextDisputeId"))
        return int.from_bytes(value or b"", "little")

    def next_slash(self):
        """The number the next slash will get."""
        value = self.storage(storage_key("TrustLock", "NextSlashId"))
        return int.from_bytes(value or b"", "little")

    def commits(self, task, agent, first, last):
        """Commitments that `agent` signed for `task` in blocks first..=last, failed extrinsics included."""
        call = bytes([TRUST_LOCK_INDEX, COMMIT_INDEX]) + task.to_bytes(8, "little")
        signer, found = ss58_decode(agent), []
        for number in range(first, last + 1):
            block = self.rpc.call("chain_getBlock", self.block_hash(number))
            for extrinsic in block["block"]["extrinsics"]:
                data = bytes.fromhex(extrinsic[2:])
                at = data.find(call)
                if at >= 0 and signer in data:
                    found.append(data[at + len(call) : at + len(call) + 32].hex())
        return found

    def finality_lag(self):
        """Blocks between the best and the last finalised one."""
        try:
            return self.best_number() - self.finalised_number()
        except RpcError:
            return None
