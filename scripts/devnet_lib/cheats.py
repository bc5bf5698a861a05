"""One worker does something wrong, and it is shown what comes of it."""

import math
from dataclasses import dataclass
from fractions import Fraction

from . import verdict, wait
from .chain import QUINTILLION, sure
from .errors import DevnetError

# A dispute takes some thirty moves, each of them once the one before is final.
TASK_SECONDS = 1800
# Until slashes are carried out, in blocks of two seconds, with room.
SLASH_SECONDS = 600


@dataclass(frozen=True)
class Cheat:
    """Something to do wrong."""

    kind: str
    # Which kind of worker does it: "provider" or "verifier".
    role: str
    what: str
    # What it is found to have done. Nothing where only a bond is lost.
    faults: tuple[str, ...]
    # Whether it takes a dispute to find out.
    disputed: bool = False

    @property
    def worker(self):
        """Who does it."""
        return f"{self.role}-1"


CHEATS = {
    cheat.kind: cheat
    for cheat in (
        Cheat(
            "altered-output",
            "provider",
            "delivers vectors with one bit changed",
            ("WrongResult", "LostDispute"),
            True,
        ),
        Cheat(
            "altered-activation",
            "provider",
            "changes one bit of one number in the middle of the model",
            ("WrongResult", "LostDispute"),
            True,
        ),
        Cheat(
            "altered-token",
            "provider",
            "reads a token of the input as another one",
            ("WrongResult", "LostDispute"),
            True,
        ),
        Cheat(
            "model-swap",
            "provider",
            "computes with weights of four bits",
            ("WrongResult", "LostDispute"),
            True,
        ),
        Cheat("copied-result", "provider", "commits to what another one committed to", ("NoReveal",)),
        Cheat("commit-without-reveal", "provider", "commits and keeps silent", ("NoReveal",)),
        Cheat("withheld-data", "provider", "reveals and serves nothing", ("WithheldData",)),
        Cheat("lazy", "verifier", "announces audits without computing anything", ("AuditNoShow",)),
        Cheat("false-challenge", "verifier", "challenges a result that is right", (), True),
    )
}


class Watched:
    """Everybody's money before and after."""

    def __init__(self, devnet):
        self.devnet, self.before = devnet, verdict.Before(devnet)
        self.stakes, self.agents = self.before.stakes, self.read_agents()
        self.dispute, self.slash = devnet.chain.next_dispute(), devnet.chain.next_slash()

    def read_agents(self):
        """What each agent has beside its stash, bonds that are held included, in plancks."""
        accounts = {worker.agent: self.devnet.chain.account(worker.agent) for worker in self.devnet.workers()}
        return {agent: account["free"] + account["held"] for agent, account in accounts.items()}

    def spent(self, agent):
        """What an agent has lost since, in plancks: bonds and fees."""
        return self.agents[agent] - self.read_agents()[agent]

    def lost(self):
        """What each stash has lost since, in plancks."""
        now = self.before.read_stakes()
        return {stash: before - now[stash] for stash, before in self.stakes.items()}

    def disputes(self):
        """The story of each dispute since, from the chain."""
        numbers = range(self.dispute, self.devnet.chain.next_dispute())
        return [self.devnet.client.run("dispute", "show", number) for number in numbers]


def run(devnet, cheat, out):
    """Has a task computed while somebody cheats. Returns the report."""
    watched = Watched(devnet)
    with watched.before:
        return lived_through(devnet, cheat, out, watched)


def lived_through(devnet, cheat, out, watched):
    """The same, watched."""
    console = devnet.console
    culprit = worker_named(devnet, cheat.worker)
    console.step(f"{cheat.worker} ({culprit.stash}) {cheat.what}; everybody else is honest")
    console.step("posting a task; everything that auditors and disputes do is shown as it happens:")
    result = devnet.submit(out, timeout=TASK_SECONDS)
    console.step(f"task {result['task']} is {result['state']}")
    slashes = wait_for_slashes(devnet, watched, cheat)
    disputes = watched.disputes()
    for story in disputes:
        tell(story, console)
    return report(devnet, cheat, culprit, result, watched, slashes, disputes)


def names(devnet):
    """What each stash is called."""
    return {worker.stash: worker.name for worker in devnet.workers()}


def due(slashes, stake):
    """What slashes come to for a stash with this stake, by the rule of the chain: the lock, and a part of the rest."""
    left = stake
    for _, slash in sorted(slashes.items()):
        lock = min(slash["lock"], left)
        left -= lock + math.ceil(Fraction(slash["part"], QUINTILLION) * (left - lock))
    return stake - left


def worker_named(devnet, name):
    """A worker by its name."""
    return next(worker for worker in devnet.workers() if worker.name == name)


def wait_for_slashes(devnet, watched, cheat):
    """Waits until every slash was carried out, and returns what they were."""
    seen = {}

    def over():
        waiting = devnet.chain.slashes()
        for number, slash in waiting.items():
            if number not in seen and number >= watched.slash:
                devnet.console.step(f"slash {number} of {slash['offender']} for {slash['kind']} waits for a veto")
                seen[number] = slash
        enough = len(seen) >= 1 or not cheat.faults
        return enough and not [number for number in waiting if number >= watched.slash]

    wait.until("every slash to be carried out", over, SLASH_SECONDS, devnet.supervisor.check)
    return seen


def tell(story, console):
    """A dispute step by step."""
    console.title(f"Dispute {story['dispute']}: {story['state']}")
    for step in story["steps"]:
        console.detail(f"block {step['block']}: {step['text']}")


def report(devnet, cheat, culprit, result, watched, slashes, disputes):
    """What it came to. Amounts are in plancks."""
    lost = watched.lost()
    view = devnet.chain.task(result["task"])
    paid = {payment["provider"]: payment["price"] for payment in view["state"].get("payments", [])}
    cells = [story["cell"] for story in disputes if story["cell"]]
    found = {
        "cheat": cheat.kind,
        "culprit": culprit.stash,
        "culprit_agent": culprit.agent,
        "names": names(devnet),
        "task": result["task"],
        "state": view["state"]["name"],
        "client_served": result["output_hash"] is not None,
        "client_refund": view["state"].get("refund"),
        "escrow_left": view["escrow"],
        "paid": paid,
        "lost": lost,
        "culprit_lost": lost[culprit.stash],
        "culprit_due": due(slashes, watched.stakes[culprit.stash]),
        "culprit_agent_spent": watched.spent(culprit.agent),
        "others_lost": sum(amount for stash, amount in lost.items() if stash != culprit.stash),
        "faults": sorted({slash["kind"] for slash in slashes.values()}),
        "slashes": slashes,
        "disputes": disputes,
        "disputed_cell": cells[0] if cells else None,
    }
    gathered = watched.before.gather()
    found |= verdict.judge(gathered, culprit.stash, verdict.log_says)
    found["problems"] = problems(cheat, culprit, found) + verdict.problems(found)
    # Were the culprit honest, that would have to be seen.
    if cheat.faults and verdict.judge(gathered)["as_it_must_be"]:
        found["problems"].append("nothing shows that somebody lost")
    return found


def problems(cheat, culprit, found):
    """What is not as it must be."""
    wrong = []
    if found["others_lost"]:
        wrong.append("somebody honest lost stake")
    if cheat.faults and not found["culprit_lost"]:
        wrong.append("the culprit lost nothing")
    if found["culprit_lost"] != found["culprit_due"]:
        wrong.append(f"the culprit lost {sure(found['culprit_lost'])} instead of {sure(found['culprit_due'])}")
    if cheat.faults and not set(found["faults"]) & set(cheat.faults):
        wrong.append(f"the fault found is {found['faults']}")
    if any(slash["offender"] != culprit.stash for slash in found["slashes"].values()):
        wrong.append("somebody else was slashed")
    if cheat.disputed and not found["disputes"]:
        wrong.append("there was no dispute")
    if cheat.disputed and not found["disputed_cell"]:
        wrong.append("no dispute came to a cell")
    if found["escrow_left"]:
        wrong.append("money is left in escrow")
    if not found["client_served"] and found["state"] == "Settled":
        wrong.append("the client was not served")
    return wrong


def show(found, console):
    """Prints a report for people; raises when something is not as it must be."""
    console.title(f"What came of it: {found['cheat']}")
    rows = [("task", f"{found['task']}, {found['state']}")]
    rows.append(("culprit", f"{found['names'][found['culprit']]}, {found['culprit']}"))
    rows.append(("faults found", ", ".join(found["faults"]) or "none: the bond is lost"))
    if found["disputed_cell"]:
        rows.append(("disputed cell", found["disputed_cell"]["name"]))
    rows += [(f"stake lost by {found['names'][stash]}", sure(amount)) for stash, amount in found["lost"].items()]
    rows.append(("spent by the culprit's agent", sure(max(0, found["culprit_agent_spent"]))))
    rows.append(("refund to the client", sure(found["client_refund"] or 0)))
    console.table(rows)
    if found["problems"]:
        raise DevnetError("; ".join(found["problems"]))
