"""Whether a run was as it must be: every task settled, everybody honest paid for what it did, and nobody honest fined;
and a chat's receipt audited, final and redeemed.

`gather` asks the chain and the logs; `judge` decides by that alone.
"""

import functools
import re
from pathlib import Path

from .watch import ChainLog

# Lines of a worker's log that may say why something went wrong.
TELLING = re.compile(r"\b(WARN|ERROR)\b|panicked")
LINES_MAX = 5
ANSI = re.compile(r"\x1b\[[0-9;]*m")
# What the chain says to a worker's harm, by the field that names its stash.
FAULTS = {"FaultFound": "offender", "SlashDeferred": "offender", "Jailed": "stash", "BidForfeited": "provider"}
SUSPENSION = "Suspended"
# Openings of seals: over a whole result, and over the items of one verifier.
AUDITS = ("AuditRevealed", "ItemsRevealed")


class Before:
    """What everybody has before the tasks of a run are posted; it watches the chain from then on."""

    def __init__(self, devnet):
        self.devnet, self.chain = devnet, devnet.chain
        self.log = ChainLog([validator.chain for validator in devnet.validators.all])
        # All of it in one block, which the log begins after.
        self.begin = self.chain.block_hash(self.log.begun)
        self.task = self.chain.next_task(self.begin)
        self.stakes, self.purses = self.read_stakes(self.begin), devnet.purses(self.begin)

    def __enter__(self):
        self.log.__enter__()
        return self

    def __exit__(self, *_):
        self.log.__exit__()

    @functools.cached_property
    def end(self):
        """The block by which all is judged: the last final one when somebody asks first. The log ends with it."""
        return self.log.end_at_final(self.chain)

    def events(self):
        """What happened by the end, as (block, pallet, name, fields)."""
        last = self.chain.number_of(self.end)
        return [event for event in self.log.events() if event[0].number <= last]

    def read_stakes(self, block):
        """What each stash has bonded in a block, in plancks."""
        stakes = {worker.stash: self.chain.stake(worker.stash, block) for worker in self.devnet.workers()}
        return {stash: stake["bonded"] if stake else 0 for stash, stake in stakes.items()}

    def gather(self):
        """Everything `judge` needs. Amounts are in plancks."""
        stakes, purses, events = self.read_stakes(self.end), self.devnet.purses(self.end), self._told()
        # A receipt that is disputed has a number among those of tasks.
        numbers = range(self.task, self.chain.next_task(self.end))
        views = {number: self.chain.task(number, self.end) for number in numbers}
        tasks = [_task(number, view) for number, view in views.items() if view]
        workers = []
        for worker in self.devnet.workers():
            stash = worker.stash
            workers.append(
                {
                    "worker": worker.name,
                    "role": worker.role,
                    "stash": stash,
                    "earned": purses[stash] - self.purses[stash],
                    "stake_lost": self.stakes[stash] - stakes[stash],
                    "told": [event for event in events if event["stash"] == stash],
                    "audited": [event for event in events if event.get("verifier") == stash],
                    "log": str(worker.process.log),
                }
            )
        return {"tasks": tasks, "workers": workers}

    def _told(self):
        """What was said of single stashes since: faults, slashes, suspensions, audits."""
        found = []
        for block, _, name, fields in self.events():
            event = {"event": name, "block": block.number, "stash": None, "task": task_of(fields)}
            if name in FAULTS or SUSPENSION in name:
                found.append(event | {"stash": stash_of(name, fields), "kind": fields.get("kind")})
            elif name in AUDITS:
                found.append(event | {"verifier": fields["verifier"], "agrees": fields["agrees"]})
        return found


def task_of(fields):
    """The task that an event is about, or that a slash is for; nothing of what has none."""
    cause = fields.get("cause") or {}
    return cause["value"] if cause.get("name") == "Task" else fields.get("task")


def stash_of(name, fields):
    """Whom an event is about."""
    return fields.get(FAULTS.get(name)) or next(
        (fields[key] for key in ("stash", "provider", "offender", "verifier") if key in fields), None
    )


def _task(number, view):
    state = view["state"]
    return {
        "task": number,
        "state": state["name"],
        "reason": state.get("reason"),
        "redundancy": view["spec"]["redundancy"],
        "paid": {payment["provider"]: payment["price"] for payment in state.get("payments", [])},
    }


def judge(gathered, culprits=(), says=None, chat=None):
    """What is not as it must be, as lists that are empty when everything is.

    `culprits` are the stashes of the only ones that may lose; `says` tells, of a worker and a task, what its log has
    on it; `chat` is the report of an answer at once, where there was one.
    """
    says = says or (lambda _worker, _task: [])
    honest = [worker for worker in gathered["workers"] if worker["stash"] not in culprits]
    found = {
        "tasks_unsettled": [
            {key: task[key] for key in ("task", "state", "reason")}
            for task in gathered["tasks"]
            if task["state"] != "Settled"
        ],
        "honest_unpaid": _unpaid(gathered["tasks"], gathered["workers"], honest, says),
        "honest_fined": _fined(honest, says),
        "chat_wanting": _wanting(chat) if chat else [],
    }
    return found | {"as_it_must_be": bool(gathered["tasks"]) and not any(found.values())}


def _unpaid(tasks, everybody, honest, says):
    """Honest providers that a task needed and did not pay, and verifiers whose audits brought nothing."""
    providers = sum(worker["role"] == "provider" for worker in everybody)
    unpaid = []
    for worker in honest:
        if worker["role"] == "provider":
            # With fewer places than providers it is a draw who works.
            all_needed = [task for task in tasks if task["redundancy"] >= providers]
            missed = [task["task"] for task in all_needed if not task["paid"].get(worker["stash"])]
        else:
            settled = {task["task"] for task in tasks if task["state"] == "Settled"}
            audited = [audit["task"] for audit in worker["audited"] if audit["agrees"] and audit["task"] in settled]
            missed = audited[:1] if audited and worker["earned"] <= 0 else []
        unpaid += [
            {"worker": worker["worker"], "stash": worker["stash"], "task": task, "says": says(worker, task)}
            for task in missed
        ]
    return unpaid


def _fined(honest, says):
    """Honest workers that lost stake, or are about to, or get no work for a while."""
    fined = []
    for worker in honest:
        if not worker["stake_lost"] > 0 and not worker["told"]:
            continue
        tasks = [event["task"] for event in worker["told"] if event["task"] is not None]
        fined.append(
            {
                "worker": worker["worker"],
                "stash": worker["stash"],
                "stake_lost": worker["stake_lost"],
                "told": worker["told"],
                "says": says(worker, tasks[0] if tasks else None),
            }
        )
    return fined


def _wanting(chat):
    """What a chat's receipt has to be, and is not."""
    is_paid = int(chat["redeemed"]) >= int(chat["price"])
    found = {"audited": any(chat["audited"].values()), "final": chat["verdict"] == "final", "redeemed": is_paid}
    return [what for what, is_so in found.items() if not is_so]


def log_says(worker, task):
    """Lines of a worker's log that may say why a task went wrong for it: those on the task before others."""
    try:
        lines = ANSI.sub("", Path(worker["log"]).read_text(errors="replace")).splitlines()
    except OSError as error:
        return [str(error)]
    telling = [line.strip() for line in lines if TELLING.search(line)]
    on_task = [line for line in telling if re.search(rf"\btask={task}\b", line)]
    return (on_task or telling)[-LINES_MAX:]


def problems(judged):
    """What is not as it must be, in words."""
    said = []
    for task in judged["tasks_unsettled"]:
        said.append(f"task {task['task']} is {task['state']}" + (f": {task['reason']}" if task["reason"] else ""))
    for of in judged["honest_unpaid"]:
        said.append(f"{of['worker']} is honest and was not paid for task {of['task']}" + _because(of))
    for of in judged["honest_fined"]:
        told = ", ".join(f"{event['event']} {event.get('kind') or ''}".strip() for event in of["told"])
        said.append(f"{of['worker']} is honest and was fined: {told or 'stake is gone'}" + _because(of))
    said += [f"the chat's receipt is not {what}" for what in judged["chat_wanting"]]
    if not judged["as_it_must_be"] and not said:
        said.append("there was no task")
    return said


def _because(of):
    lines = of["says"] or ["nothing that would explain it"]
    return "; its log says:" + "".join(f"\n    {line}" for line in lines)
