"""One worker does something wrong, and it is shown what comes of it."""

import math
from dataclasses import dataclass
from fractions import Fraction

from . import verdict, wait
from .chain import QUINTILLION, sure
from .devnet import Devnet
from .errors import DevnetError
from .report import Tokens
from .watch import SlashWatch

# A dispute takes some thirty moves, each of them once the one before is final.
TASK_SECONDS = 1800
# Until slashes are carried out, in blocks of two seconds, with room.
SLASH_SECONDS = 600
# Of somebody whom no auditor may be drawn for.
TASKS_MAX = 3
# As many challenges of one task are played at once.
CHALLENGES_MAX = 16
PROVIDER, VERIFIER = ("provider",), ("verifier",)


@dataclass(frozen=True)
class Cheat:
    """Something to do wrong."""

    kind: str
    # Which kinds of workers do it: "provider" or "verifier".
    roles: tuple[str, ...]
    what: str
    # What each of them is found to have done, one of these. Nothing where only a bond is lost.
    faults: tuple[str, ...]
    # Whether it takes a dispute to find out.
    disputed: bool = False
    # Whether that comes to a cell: who shows nothing loses by time.
    judged: bool = True
    # The least number of disputes.
    disputes: int = 0
    # Whether it is done to a generation; else sentences are embedded.
    generates: bool = False
    # Whether it may pass unseen for once, if no auditor is drawn.
    drawn: bool = False
    # Whether whoever does it has ten times the stake and money of the others.
    rich: bool = False

    @property
    def workers(self):
        """Who does it."""
        return tuple(f"{role}-1" for role in self.roles)

    def network(self, run_dir, console, **options):
        """A network in which it is done."""
        cheats = dict.fromkeys(self.workers, self.kind)
        return Devnet(run_dir, console, cheats=cheats, rich=self.workers if self.rich else (), **options)


CHEATS = {
    cheat.kind: cheat
    for cheat in (
        Cheat(
            "altered-output",
            PROVIDER,
            "delivers vectors with one bit changed",
            ("WrongResult", "LostDispute"),
            True,
        ),
        Cheat(
            "altered-activation",
            PROVIDER,
            "changes one bit of one number in the middle of the model",
            ("WrongResult", "LostDispute"),
            True,
        ),
        Cheat(
            "altered-token",
            PROVIDER,
            "reads a token of the input as another one",
            ("WrongResult", "LostDispute"),
            True,
        ),
        Cheat(
            "model-swap",
            PROVIDER,
            "computes with weights of four bits",
            ("WrongResult", "LostDispute"),
            True,
        ),
        Cheat("copied-result", PROVIDER, "commits to what another one committed to", ("NoReveal",)),
        Cheat("commit-without-reveal", PROVIDER, "commits and keeps silent", ("NoReveal",)),
        Cheat("withheld-data", PROVIDER, "reveals and serves nothing", ("WithheldData",)),
        Cheat(
            "withheld-output",
            PROVIDER,
            "says something wrong, serves it to nobody, and shows it in no dispute",
            ("WrongResult", "LostDispute"),
            disputed=True,
            judged=False,
            generates=True,
        ),
        Cheat(
            "two-faced",
            PROVIDER,
            "serves auditors another output than it reveals",
            ("Equivocation",),
            generates=True,
            drawn=True,
        ),
        Cheat(
            "abort",
            PROVIDER + VERIFIER,
            "promises a result, or an audit, and opens nothing",
            ("NoReveal", "AuditNoShow"),
            rich=True,
        ),
        Cheat(
            "crowding",
            PROVIDER,
            "says something wrong, and has fresh keys take all places for challenges",
            ("WrongResult", "LostDispute"),
            disputed=True,
            disputes=CHALLENGES_MAX + 1,
            rich=True,
        ),
        Cheat("lazy", VERIFIER, "announces audits without computing anything", ("AuditNoShow",), drawn=True),
        Cheat("false-challenge", VERIFIER, "challenges a result that is right", (), True),
    )
}


class Watched:
    """Everybody's money before and after."""

    def __init__(self, devnet):
        self.devnet, self.before = devnet, verdict.Before(devnet)
        self.stakes, self.agents = self.before.stakes, self.read_agents(self.before.begin)
        self.dispute = devnet.chain.next_dispute(self.before.begin)

    def read_agents(self, block):
        """What each agent has beside its stash in a block, bonds that are held included, in plancks."""
        accounts = {worker.agent: self.devnet.chain.account(worker.agent, block) for worker in self.devnet.workers()}
        return {agent: account["free"] + account["held"] for agent, account in accounts.items()}

    def spent(self, agent):
        """What an agent has lost by the end, in plancks: bonds and fees, less what it was paid."""
        return self.agents[agent] - self.read_agents(self.before.end)[agent]

    def lost(self):
        """What each stash has lost by the end, in plancks."""
        now = self.before.read_stakes(self.before.end)
        return {stash: before - now[stash] for stash, before in self.stakes.items()}

    def events(self, name):
        """Fields of the events of a name, up to the end."""
        return [fields for _, _, said, fields in self.before.events() if said == name]

    def carried_out(self, slashes):
        """Those of slashes that were, by the end."""
        done = {of["slash"] for of in self.events("SlashCarriedOut")}
        return {number: slash for number, slash in slashes.items() if number in done}

    def forfeited(self, agent):
        """What somebody lost of bonds by the end, in plancks, whatever it was paid beside that."""
        lost = [of for of in self.events("BondForfeited") if of["challenger"] == agent]
        return sum(of["awarded"] + of["burned"] for of in lost)

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
    culprits = [worker_named(devnet, name) for name in cheat.workers]
    who = ", ".join(f"{culprit.name} ({culprit.stash})" for culprit in culprits)
    console.step(f"{who} {cheat.what}; everybody else is honest")
    with SlashWatch(watched.before.log, console) as slashes:
        for _ in range(TASKS_MAX if cheat.drawn else 1):
            console.step("posting a task; everything that auditors and disputes do is shown as it happens:")
            result = post(devnet, cheat, out)
            console.step(f"task {result['task']} is {result['state']}")
            watched.before.log.catch_up(devnet.chain.finalized_number())
            slashes.look()
            if slashes.seen:
                break
        if cheat.faults:
            over = slashes.are_carried_out
            wait.until("every slash to be carried out", over, SLASH_SECONDS, devnet.supervisor.check)
    disputes = watched.disputes()
    for story in disputes:
        tell(story, console)
    return report(devnet, cheat, culprits, result, watched, slashes.seen, disputes)


def post(devnet, cheat, out):
    """A task from post to paid."""
    if cheat.generates:
        return devnet.generate(on_event=Tokens(devnet.console), timeout=TASK_SECONDS)
    return devnet.submit(out, timeout=TASK_SECONDS)


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


def tell(story, console):
    """A dispute step by step."""
    console.title(f"Dispute {story['dispute']}: {story['state']}")
    for step in story["steps"]:
        console.detail(f"block {step['block']}: {step['text']}")


def lost_by(culprits, watched, slashes):
    """What each of those who did it has lost, and should have. Amounts are in plancks."""
    lost, rows = watched.lost(), []
    for culprit in culprits:
        own = {number: slash for number, slash in slashes.items() if slash["offender"] == culprit.stash}
        rows.append(
            {
                "worker": culprit.name,
                "stash": culprit.stash,
                "faults": sorted({slash["kind"] for slash in own.values()}),
                "lost": lost[culprit.stash],
                "due": due(watched.carried_out(own), watched.stakes[culprit.stash]),
                "agent": culprit.agent,
                "agent_spent": watched.spent(culprit.agent),
                "bond_forfeited": watched.forfeited(culprit.agent),
            }
        )
    return rows


def report(devnet, cheat, culprits, result, watched, slashes, disputes):
    """What it came to. Amounts are in plancks."""
    lost = watched.lost()
    view = devnet.chain.task(result["task"], watched.before.end)
    paid = {payment["provider"]: payment["price"] for payment in view["state"].get("payments", [])}
    cells = [story["cell"] for story in disputes if story["cell"]]
    of_culprits, guilty = lost_by(culprits, watched, slashes), [culprit.stash for culprit in culprits]
    found = {
        "cheat": cheat.kind,
        "culprit": guilty[0],
        "culprits": of_culprits,
        "names": names(devnet),
        "task": result["task"],
        "state": view["state"]["name"],
        "client_served": result["output_hash"] is not None,
        "client_refund": view["state"].get("refund"),
        "escrow_left": view["escrow"],
        "paid": paid,
        "lost": lost,
        "culprit_lost": sum(row["lost"] for row in of_culprits),
        "culprit_due": sum(row["due"] for row in of_culprits),
        "culprit_agent_spent": sum(row["agent_spent"] for row in of_culprits),
        "bond_forfeited": sum(row["bond_forfeited"] for row in of_culprits),
        "others_lost": sum(amount for stash, amount in lost.items() if stash not in guilty),
        "faults": sorted({slash["kind"] for slash in slashes.values()}),
        "slashes": slashes,
        "disputes": disputes,
        "disputed_cell": cells[0] if cells else None,
    }
    gathered = watched.before.gather()
    found |= verdict.judge(gathered, guilty, verdict.log_says)
    found["problems"] = problems(cheat, found) + disputes_missed(cheat, found) + verdict.problems(found)
    # Were the culprit honest, that would have to be seen.
    if cheat.faults and verdict.judge(gathered)["as_it_must_be"]:
        found["problems"].append("nothing shows that somebody lost")
    return found


def problems(cheat, found):
    """What is not as it must be."""
    wrong, guilty = [], [row["stash"] for row in found["culprits"]]
    if found["others_lost"]:
        wrong.append("somebody honest lost stake")
    for row in found["culprits"]:
        if cheat.faults and not row["lost"]:
            wrong.append(f"{row['worker']} lost nothing")
        if row["lost"] != row["due"]:
            wrong.append(f"{row['worker']} lost {sure(row['lost'])} instead of {sure(row['due'])}")
        if cheat.faults and not set(row["faults"]) & set(cheat.faults):
            wrong.append(f"the fault found of {row['worker']} is {row['faults']}")
    if any(slash["offender"] not in guilty for slash in found["slashes"].values()):
        wrong.append("somebody else was slashed")
    if found["escrow_left"]:
        wrong.append("money is left in escrow")
    if not found["client_served"] and found["state"] == "Settled":
        wrong.append("the client was not served")
    return wrong


def disputes_missed(cheat, found):
    """What disputes have not shown."""
    wrong, stories = [], found["disputes"]
    if cheat.disputed and len(stories) < max(1, cheat.disputes):
        wrong.append(f"there were {len(stories)} disputes")
    if cheat.disputed and cheat.judged and not found["disputed_cell"]:
        wrong.append("no dispute came to a cell")
    return wrong


def show(found, console):
    """Prints a report for people; raises when something is not as it must be."""
    console.title(f"What came of it: {found['cheat']}")
    rows = [("task", f"{found['task']}, {found['state']}")]
    rows += [("culprit", f"{row['worker']}, {row['stash']}") for row in found["culprits"]]
    rows.append(("faults found", ", ".join(found["faults"]) or "none: the bond is lost"))
    if found["disputed_cell"]:
        rows.append(("disputed cell", found["disputed_cell"]["name"]))
    rows += [(f"stake lost by {found['names'][stash]}", sure(amount)) for stash, amount in found["lost"].items()]
    rows.append(("spent by the culprit's agent", sure(max(0, found["culprit_agent_spent"]))))
    rows.append(("refund to the client", sure(found["client_refund"] or 0)))
    console.table(rows)
    if found["problems"]:
        raise DevnetError("; ".join(found["problems"]))
