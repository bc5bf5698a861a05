"""What a run came to, by what the chain and the workers' logs say: `judge` is a function of that and asks nobody."""

import datetime
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from devnet_lib.verdict import ANSI, stash_of, task_of

# A result that was made so long before its window ended could be committed.
IN_TIME_BLOCKS = 10
# And for so long one node at least has to have answered, in seconds: as long as ten blocks take.
ANSWERED_SECONDS = 20
COMPUTED = re.compile(r"^(\S+)\s+INFO.*\bcomputed\b.*\btask=(\d+)\b.*\boutput=(0x[0-9a-f]+)")
FINES = ("FaultFound", "SlashDeferred")
# The pallets that check results.
CHECKING = ("Results", "Disputes", "TrustLock")
# What may not be anything else.
MUST_BE_ZERO = (
    "honest_slashes",
    "honest_clients_fined",
    "honest_right_in_time_unpaid",
    "money_lost",
    "tasks_not_ended",
)


@dataclass
class Task:
    """What is known of a task."""

    number: int
    client: str
    state: str = "open"
    reason: str | None = None
    output: str | None = None
    cap: int = 0
    spent: int = 0
    paid: dict = field(default_factory=dict)
    # Ends of the time for commitments, as they were set: [(time in ms, end by the clock)].
    commit_until: list = field(default_factory=list)
    # When others took the places of those who had committed nothing in time.
    replaced_ms: dict = field(default_factory=dict)
    reveal_from_ms: int | None = None
    ended_ms: int | None = None


def tasks_of(blocks):
    """All tasks that were posted in these blocks, by number."""
    tasks = {}
    for block in blocks:
        for pallet, name, fields in block.events:
            if pallet == "TaskAuction" and name == "TaskPosted":
                tasks[fields["task"]] = Task(fields["task"], fields["client"], cap=fields["cap"])
            elif (task := tasks.get(fields.get("task"))) is not None:
                _note(task, block, name, fields)
    return tasks


def _note(task, block, name, fields):
    if name == "TaskSettled":
        task.state, task.output, task.ended_ms = "settled", fields["claim"]["output"], block.time_ms
        task.paid = {payment["provider"]: payment["price"] for payment in fields["payments"]}
        task.spent = sum(task.paid.values()) + fields["fee"] + fields["refund"]
    elif name == "TaskFailed":
        task.state, task.reason, task.ended_ms = "failed", fields["reason"], block.time_ms
    elif name in ("TaskCancelled", "DrawAbandoned"):
        task.state, task.ended_ms = "cancelled", block.time_ms
    elif name == "RoundOpened" or name == "PhaseChanged" and fields["phase"] == "Committing":
        task.commit_until.append((block.time_ms, fields["until"]))
    elif name == "InputDemanded":
        task.commit_until.append((block.time_ms, fields["commit_until"]))
    elif name == "ProviderReplaced":
        task.replaced_ms[fields["dropped"]] = block.time_ms
    elif name == "PhaseChanged" and fields["phase"] == "Revealing":
        task.reveal_from_ms = block.time_ms


def computed_in(log):
    """What a provider's log says it computed: {task: (time in ms, hash of the output)}, the first time counts."""
    found = {}
    with open(log, errors="replace") as lines:
        for line in lines:
            said = COMPUTED.search(ANSI.sub("", line))
            if said:
                at = datetime.datetime.fromisoformat(said[1].replace("Z", "+00:00")).timestamp()
                found.setdefault(int(said[2]), (at * 1000, said[3]))
    return found


@dataclass
class Seen:
    """Everything a run is judged by. Money is in plancks."""

    blocks: list
    # {provider's name: what it computed}, {name: stash} of all honest workers, and clients' addresses
    computed: dict
    stashes: dict
    clients: set
    # For how many seconds a worker could ask some node: of its name and two times in seconds.
    answered: object
    # Money that is nowhere, by what it should be.
    money: dict = field(default_factory=dict)


def judge(seen):
    """The counts of a run, and the cases behind them."""
    tasks = {number: task for number, task in tasks_of(seen.blocks).items() if task.client in seen.clients}
    slashes = _slashes(seen)
    unpaid = [case for name in sorted(seen.computed) for case in _unpaid(seen, name, tasks)]
    fined = [task.number for task in tasks.values() if task.reason == "InputWithheld"]
    unbalanced = [task.number for task in tasks.values() if task.state == "settled" and task.spent != task.cap]
    states = Counter(task.state for task in tasks.values())
    events = Counter(name for block in seen.blocks for pallet, name, _ in block.events if pallet in CHECKING)
    return {
        "tasks": len(tasks),
        "settled": states["settled"],
        "honest_slashes": len(slashes),
        "honest_clients_fined": len(fined),
        "honest_right_in_time_unpaid": len(unpaid),
        "money_lost": sum(map(abs, seen.money.values())) + sum(abs(tasks[n].cap - tasks[n].spent) for n in unbalanced),
        "tasks_not_ended": states["open"],
        "failed_reasons": dict(Counter(task.reason for task in tasks.values() if task.state == "failed")),
        "cancelled": states["cancelled"],
        "suspensions": sum(count for name, count in events.items() if "Suspended" in name),
        "jailings": events["Jailed"],
        "bids_forfeited": sum(name == "BidForfeited" for block in seen.blocks for _, name, _ in block.events),
        "results_computed": sum(len(of) for of in seen.computed.values()),
        "cases": {
            "slashes": slashes,
            "unpaid": unpaid,
            "clients_fined": fined,
            "not_ended": [task.number for task in tasks.values() if task.state == "open"],
            "money": {**seen.money, "unbalanced_tasks": unbalanced},
        },
        "events": dict(sorted(events.items())),
    }


def _slashes(seen):
    """Faults found and slashes begun of anybody who is honest, each once."""
    names = {stash: name for name, stash in seen.stashes.items()}
    found = {}
    for block in seen.blocks:
        for pallet, name, fields in block.events:
            stash = stash_of(name, fields) if pallet in CHECKING and name in FINES else None
            if stash in names:
                case = (task_of(fields), stash, fields["kind"])
                found.setdefault(
                    case, {"task": case[0], "worker": names[stash], "kind": case[2], "block": block.number}
                )
    return list(found.values())


def _unpaid(seen, name, tasks):
    """Results of a provider that were right, and made in time to be committed, and not paid."""
    stash = seen.stashes[name]
    for number, (at_ms, output) in sorted(seen.computed[name].items()):
        task = tasks.get(number)
        if task is None or task.state not in ("settled", "failed") or stash in task.paid:
            continue
        until = _until(task, at_ms)
        if until is None or output != _right(task, seen.computed) or at_ms > task.replaced_ms.get(stash, at_ms):
            continue
        spare = until - _clock_at(seen.blocks, at_ms)
        end_ms = _time_of(seen.blocks, until)
        answered = seen.answered(name, at_ms / 1000, end_ms / 1000)
        if task.reveal_from_ms is not None and task.reveal_from_ms < task.ended_ms:
            answered = min(answered, seen.answered(name, task.reveal_from_ms / 1000, task.ended_ms / 1000))
        if spare >= IN_TIME_BLOCKS and answered >= ANSWERED_SECONDS:
            yield {
                "task": number,
                "worker": name,
                "state": task.state,
                "reason": task.reason,
                "blocks_to_spare": spare,
                "seconds_answered": answered,
            }


def _until(task, at_ms):
    """When the time for commitments ended, as it stood when something was computed."""
    known = [until for since_ms, until in task.commit_until if since_ms <= at_ms]
    return known[-1] if known else next((until for _, until in task.commit_until), None)


def _right(task, computed):
    """The right output: what was settled, else what most honest providers computed."""
    if task.output:
        return task.output
    votes = Counter(of[task.number][1] for of in computed.values() if task.number in of)
    return votes.most_common(1)[0][0]


def _clock_at(blocks, at_ms):
    """The clock at a time, by the blocks that were final in the end."""
    return max((block.clock for block in blocks if block.time_ms <= at_ms), default=0)


def _time_of(blocks, clock):
    """When the clock passed a time."""
    passed = (block.time_ms for block in blocks if block.clock > clock)
    return next(passed, blocks[-1].time_ms if blocks else 0)


def money(chain, clients):
    """Where money is missing when everything has ended: by what should be zero, in plancks."""
    head = chain.finalized_hash()
    totals, escrows = chain.value("Billing", "Totals", block=head), chain.entries("Billing", "Escrows", head)
    gone = sum(totals[name] for name in ("paid", "fees", "burned", "refunded"))
    accounts = chain.entries("System", "Account", head)
    own = sum(of["data"]["free"] + of["data"]["reserved"] for of in accounts.values())
    return {
        "escrow_not_accounted_for": totals["opened"] - gone - sum(of["held"] + of["lock"] for of in escrows.values()),
        "escrow_left": sum(of["held"] + of["lock"] for of in escrows.values()),
        "held_of_clients": sum(accounts[client]["data"]["reserved"] for client in clients if client in accounts),
        "issuance_not_on_accounts": chain.value("Balances", "TotalIssuance", block=head) - own,
    }


def logs_of(net):
    """What each provider computed, by its log."""
    return {provider.name: computed_in(Path(net.logs) / f"{provider.name}.log") for provider in net.providers}
