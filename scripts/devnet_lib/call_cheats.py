"""Somebody cheats over payment channels, and it is shown what comes of it.

One network has room for several kinds at once: each has a payer of its own, with a channel that pays whoever does it,
or the one honest provider.
"""

import json
import re
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from . import verdict, wait
from .chain import sure
from .cheats import Watched, due, names, tell, worker_named
from .devnet import GENERATOR, SPONSORS, Devnet
from .errors import DevnetError
from .folders import CHEAT
from .gateway import Gateway, sell
from .scale import ss58_decode
from .verdict import ANSI
from .watch import SlashWatch

# All of them, on one network.
ALL = "over-channels"
HONEST = "provider-1"
PROMPT, MAX_TOKENS = "Call me Ishmael. Some years ago", 96
# Answers cost a tenth of a SURE: so a dozen points fall on each, and none is missed (one in 10,000).
UNIT_PRICE, PLACES, CAP = "0.001 SURE", 4, "5 SURE"
# All that a payer has at stake is in its one channel: it asks nobody else.
DEPOSIT_SURE, KEY_CAP = 2, "1 SURE"
# Who replays a voucher has two channels of one payer to do so; it tries each at two others, and for another chain.
CHANNELS, REPLAYS = {"voucher-replay": 2}, 3
# Whose key it knows: what the same payer has signed on another chain can be made here.
PAYER_ABROAD = "//Two"
ASKS_MAX, PAUSE_SECONDS = 8, 4.0
OFFER_SECONDS, ANSWER_SECONDS, OVER_SECONDS = 240, 240, 1200
PROVIDER, VERIFIER, PAYER = "provider", "verifier", "payer"


@dataclass(frozen=True)
class CallCheat:
    """Something to do wrong."""

    kind: str
    role: str
    what: str
    # What the culprit is found to have done, one of these; nothing where it loses no stake.
    faults: tuple[str, ...] = ()
    # Whether a game about a receipt is played over it.
    disputed: bool = False
    # What its payer's gateway is told beside the rest.
    flags: tuple[str, ...] = ()
    # Whether its payer gets a whole answer.
    answered: bool = True
    # Whether what is batched is right, and may be paid before it is missed what was signed: half a minute is all that
    # pay waits here.
    batches_right: bool = False


CHEATS = {
    cheat.kind: cheat
    for cheat in (
        CallCheat(
            "wrong-token",
            PROVIDER,
            "sells answers whose last token is another one",
            ("WrongResult", "LostDispute"),
            disputed=True,
        ),
        CallCheat("false-dispute", VERIFIER, "disputes a receipt that is right", disputed=True),
        CallCheat(
            "omitted-receipt",
            PROVIDER,
            "signs receipts, and shows none of them to the chain",
            ("WithheldData",),
            # Its payer is in a hurry: by default it waits for two hours.
            flags=("--demand-after", "30"),
        ),
        CallCheat(
            "double-receipt",
            PROVIDER,
            "signs a receipt that contradicts what it has signed before",
            ("Equivocation",),
            answered=False,
        ),
        CallCheat(
            "says-other",
            PROVIDER,
            "signs what it says, and batches something else under the same number",
            ("WithheldData",),
            # Its payer asks for what it holds, counted or not.
            flags=("--demand-after", "30"),
            batches_right=True,
        ),
        CallCheat(
            "breaks-off",
            PROVIDER,
            "breaks each answer off before its end, and batches one that does not begin with what it has said",
            ("WithheldData",),
            # Its payer has no receipt, and demands one that goes on from what it has heard.
            flags=("--demand-after", "30"),
            answered=False,
            batches_right=True,
        ),
        CallCheat("voucher-replay", PROVIDER, "redeems vouchers of other channels, and of another chain"),
        CallCheat("early-close", PAYER, "closes its channel before anything is redeemed"),
        CallCheat("unpaid-last-chunk", PAYER, "signs no voucher after the first", answered=False),
    )
}
# What `surety-cheat` does. A channel is closed by whoever wants to.
PLAYED = tuple(kind for kind in CHEATS if kind != "early-close")


def network(kinds, run_dir, console, **options):
    """A network in which these are done."""
    by_role = {role: [kind for kind in kinds if CHEATS[kind].role == role] for role in (PROVIDER, VERIFIER)}
    cheats = {f"{PROVIDER}-{place + 2}": kind for place, kind in enumerate(by_role[PROVIDER])}
    cheats |= {f"{VERIFIER}-{place + 1}": kind for place, kind in enumerate(by_role[VERIFIER])}
    return Devnet(run_dir, console, providers=1 + len(by_role[PROVIDER]), cheats=cheats, **options)


@dataclass
class Play:
    """A kind that is played: who pays whom, and what came of it."""

    cheat: CallCheat
    payee: object
    gateway: Gateway
    # The account that pays.
    payer: str
    # Who does it; nothing where a payer does.
    culprit: object | None
    key: str = ""
    # Where answers are paid, and what the gateway has of each.
    channel: int = 0
    calls: list = field(default_factory=list)
    # The channel's money, when it was there last.
    purse: dict = field(default_factory=dict)

    @property
    def kind(self):
        """What is done."""
        return self.cheat.kind

    def owed(self):
        """What its receipts come to, in plancks: of an answer that broke off, what final batches have of it."""
        receipts = (receipt["receipt"] for call in self.calls for receipt in call["receipts"])
        return sum(int(receipt["price"]) for receipt in receipts) or self.purse.get("counted", 0)


class Stage:
    """All kinds of a network, and what happens on it."""

    def __init__(self, devnet, kinds, console):
        self.devnet, self.console, self.chain = devnet, console, devnet.chain
        workers = {kind: worker_named(devnet, name) for name, kind in devnet.cheats.items()}
        honest = worker_named(devnet, HONEST)
        self.plays = []
        # The owners of these accounts have no use for them any more.
        accounts = [uri for uri in SPONSORS if uri != PAYER_ABROAD]
        for place, kind in enumerate(kinds):
            cheat, culprit = CHEATS[kind], workers.get(kind)
            account = PAYER_ABROAD if kind == "voucher-replay" else accounts[place]
            gateway = Gateway(devnet, f"payer-of-{kind}", account, place)
            if cheat.role == PAYER and kind in PLAYED:
                gateway.surety = gateway.surety.played_by(devnet.bin / CHEAT)
            payer = gateway.surety.run("account", "show")["address"]
            payee = culprit if cheat.role == PROVIDER else honest
            self.plays.append(Play(cheat, payee, gateway, payer, culprit))

    def of(self, kind):
        """One of them, if it is played."""
        return next((play for play in self.plays if play.kind == kind), None)

    def channels(self, play):
        """What a payer has, by the finalised chain: {number: channel}."""
        found = self.chain.entries("Channels", "Channels")
        return {number: one for number, one in found.items() if one["payer"] == play.payer}

    def look(self, play):
        """Its channel's money."""
        channel = self.channels(play).get(play.channel)
        play.purse = channel["purse"] if channel else play.purse
        return play.purse

    def prepare(self):
        """Offers, channels and gateways."""
        devnet, offer = self.devnet, {"cap": CAP, "price": UNIT_PRICE, "places": PLACES}
        self.console.step(f"every provider sells {GENERATOR} over payment channels, at {UNIT_PRICE} a token")
        with ThreadPoolExecutor(len(self.plays) + len(devnet.providers)) as pool:
            sold = [pool.submit(sell, devnet, one, {GENERATOR: "generate"}, **offer) for one in devnet.providers]
            # Channels of one payer have numbers one after the other.
            for several in (False, True):
                plays = [play for play in self.plays if (play.kind in CHANNELS) == several]
                for done in [pool.submit(self.open_channels, play) for play in plays]:
                    done.result()
            for done in sold:
                done.result()
        self.console.step(f"{len(self.plays)} payers have their channels, and gateways to ask over them")
        with ThreadPoolExecutor(len(self.plays)) as pool:
            made = pool.map(lambda play: play.gateway.create_key(KEY_CAP), self.plays)
            for play, key in zip(self.plays, made, strict=True):
                play.key = key["key"]
        for play in self.plays:
            cheats = ("--cheat", play.kind) if play.cheat.role == PAYER and play.kind in PLAYED else ()
            # All of it is in channels already: nobody else is asked.
            budget = f"{DEPOSIT_SURE * CHANNELS.get(play.kind, 1)} SURE"
            deposit = f"{DEPOSIT_SURE} SURE"
            play.gateway.begin("--deposit", deposit, "--budget", budget, *play.cheat.flags, *cheats)
        for play in self.plays:
            play.gateway.wait_until_up()
            offered = lambda play=play: play.gateway.offers(GENERATOR, play.key)  # noqa: E731
            wait.until("answers at once to be offered", offered, OFFER_SECONDS, devnet.supervisor.check)

    def open_channels(self, play):
        """Before its gateway runs: it has the same key."""
        stands = lambda: self.chain.value("Channels", "Standings", ss58_decode(play.payee.stash))  # noqa: E731
        wait.until("its provider to stand behind an offer", stands, OFFER_SECONDS, self.devnet.supervisor.check)
        for _ in range(CHANNELS.get(play.kind, 1)):
            play.gateway.surety.run("channel", "open", play.payee.stash, "--deposit", f"{DEPOSIT_SURE} SURE")

    def ask(self, play):
        """Has the gateway ask until there is an answer to its full length, where there is to be one."""
        seed, limit = 0, wait.Limit(OFFER_SECONDS)
        # Refusals cost nothing: they are no more than early.
        while len(play.calls) < ASKS_MAX and not limit.is_over():
            seed += 1
            # No two ask the same.
            tokens = MAX_TOKENS + self.plays.index(play)
            name, said = complete(play.gateway, play.key, seed, tokens)
            if name:
                play.calls.append(play.gateway.receipt(name, play.key))
            if not play.cheat.answered or said.get("finish_reason") == "length":
                return
            why = said.get("error", "the answer was a short one")
            self.console.detail(f"{play.kind}: {why}; asked again")
            # A channel is good once the gateway has seen its block.
            time.sleep(PAUSE_SECONDS)
        raise DevnetError(f"no answer to {play.kind}'s payer: {said}")

    def asked(self, play):
        """The same, and which channel it went over."""
        self.ask(play)
        found = self.channels(play)
        play.channel = min(found, default=0)
        self.console.step(f"{play.kind}: {play.gateway.name} has asked {play.payee.name}")

    def play(self, log):
        """Everybody asks; who lies in a dispute is the first, since it disputes what it sees first."""
        first = self.of("false-dispute")
        if first:
            self.asked(first)
            disputed = lambda: self.happened(log, "Disputed", provider=first.payee.stash)  # noqa: E731
            self.until("the receipt to be disputed", disputed)
        others = [play for play in self.plays if play is not first]
        with ThreadPoolExecutor(len(others) or 1) as pool:
            for done in [pool.submit(self.asked, play) for play in others]:
                done.result()
        closing = self.of("early-close")
        if closing:
            self.devnet.supervisor.forget(closing.gateway.process)
            closing.gateway.process.stop()
            closing.gateway.surety.run("channel", "close", closing.channel)
            self.console.step(f"early-close: channel {closing.channel} is closed by its payer")

    def until(self, what, probe):
        """Waits for what takes a dispute."""
        return wait.until(what, probe, OVER_SECONDS, self.devnet.supervisor.check)

    @staticmethod
    def happened(log, name, **fields):
        """Events of channels with these fields."""
        found = [of for _, pallet, said, of in log.events() if (pallet, said) == ("Channels", name)]
        return [of for of in found if all(of.get(key) == value for key, value in fields.items())]

    def beginnings(self, log, play):
        """What a payer has demanded of its payee: what was signed of answers that have no end."""
        demanded = self.happened(log, "Demanded", provider=play.payee.stash, demander=play.payer)
        wanted = [of["wanted"] for of in demanded if of["wanted"]["name"] == "Receipt"]
        return [of["says"]["value"] for of in wanted if of["says"]["name"] == "GoesOn"]

    def wait_for(self, play, log, slashes):
        """Until nothing more comes of it."""
        self.until(f"the end of {play.kind}", lambda: self.is_over(play, log, slashes))
        self.console.step(f"{play.kind}: over")

    def is_over(self, play, log, slashes):
        """Whether it is."""
        if play.cheat.faults:
            # Of an answer that broke off nothing is left but the deposit: the gateway closes the channel by itself.
            is_back = play.kind != "breaks-off" or self.look(play).get("returned", 0) > 0
            return is_back and slashes.is_carried_out(play.culprit.stash)
        if play.kind == "voucher-replay":
            return len(tried(play)) >= REPLAYS
        # Whoever is honest is paid in the end.
        paid = self.look(play).get("paid", 0)
        return 0 < play.owed() <= paid


def complete(gateway, key, seed, max_tokens):
    """Asks for a continuation. Returns its receipt's name, and what was said: a choice, or why there is none."""
    asked = {"model": GENERATOR, "prompt": PROMPT, "max_tokens": max_tokens, "seed": seed}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{gateway.url}/completions", json.dumps(asked).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=ANSWER_SECONDS) as response:
            return response.headers["x-surety-receipt"], json.load(response)["choices"][0]
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.headers["x-surety-receipt"], {"error": refused.read().decode(errors="replace")}
    except OSError as error:
        return None, {"error": str(error)}


def log_of(worker):
    """What a worker has said, without colours."""
    return ANSI.sub("", worker.process.log.read_text(errors="replace"))


def tried(play):
    """What the log of whoever replays vouchers says of each: whether the chain has taken it."""
    return re.findall(r"a voucher (of another \w+) (was refused|was taken|never got)", log_of(play.culprit))


class Slashes(SlashWatch):
    """Of several culprits."""

    def of(self, stash):
        """Its slashes, by their numbers."""
        return {number: slash for number, slash in self.seen.items() if slash["offender"] == stash}

    def is_carried_out(self, stash):
        """Whether there was one, and none waits."""
        self.look()
        return bool(self.of(stash)) and not self.waiting.intersection(self.of(stash))


def run(devnet, kinds, console):
    """Plays these kinds on a network that is up. Returns the report."""
    watched, stage = Watched(devnet), Stage(devnet, kinds, console)
    for play in stage.plays:
        who = play.culprit.name if play.culprit else play.gateway.name
        console.step(f"{who} {play.cheat.what}; its answers are sold by {play.payee.name}")
    with watched.before, Slashes(watched.before.log, console) as slashes:
        stage.prepare()
        stage.play(watched.before.log)
        for play in stage.plays:
            stage.wait_for(play, watched.before.log, slashes)
    stories = watched.disputes()
    for story in stories:
        tell(story, console)
    return report(stage, watched, slashes, stories)


def report(stage, watched, slashes, stories):
    """What came of all. Amounts are in plancks."""
    devnet, lost = stage.devnet, watched.lost()
    slashes.look()
    culprits = {play.culprit.stash for play in stage.plays if play.culprit}
    judged = verdict.judge(watched.before.gather(), culprits, verdict.log_says)
    honest_lost = sum(amount for stash, amount in lost.items() if stash not in culprits)
    rows = [row(stage, play, watched, (lost, slashes), stories) for play in stage.plays]
    fined = [f"{of['worker']} is honest and was fined" for of in judged["honest_fined"]]
    if honest_lost:
        fined.append("somebody honest lost stake")
    for found in rows:
        found["others_lost"], found["problems"] = honest_lost, found["problems"] + fined
    return {"cheat": ALL, "names": names(devnet), "lost": lost, "disputes": stories, "cheats": rows, **judged}


def row(stage, play, watched, lost_and_slashes, stories):
    """What came of one."""
    (lost, slashes), purse = lost_and_slashes, stage.look(play)
    stash = play.culprit.stash if play.culprit else None
    own = slashes.of(stash) if stash else {}
    agent = play.culprit.agent if play.culprit else None
    found = {
        "cheat": play.kind,
        "culprit": stash or play.payer,
        "payee": play.payee.name,
        "faults": sorted({slash["kind"] for slash in own.values()}),
        "culprit_lost": lost[stash] if stash else 0,
        "culprit_due": due(watched.carried_out(own), watched.stakes[stash]) if stash else 0,
        "culprit_taken": sum(of["taken"] for of in watched.events("SlashCarriedOut") if of["offender"] == stash),
        "culprit_agent_spent": watched.spent(agent) if agent else 0,
        "bond_forfeited": watched.forfeited(agent),
        "receipts": play.owed(),
        "deposit": purse.get("deposit", 0),
        "paid": purse.get("paid", 0),
        # What went back to the payer once the culprit was convicted, and what the beginnings cost that were demanded.
        "returned": purse.get("returned", 0),
        "heard": [of["price"] for of in stage.beginnings(watched.before.log, play)],
        "end_kept_back": bool(play.culprit) and "the end of an answer is kept back" in log_of(play.culprit),
        "tried": [" ".join(one) for one in tried(play)] if play.kind == "voucher-replay" else [],
        "kept_back": "a voucher is kept back" in play.gateway.process.log.read_text(errors="replace"),
        "disputed_cell": next((of["cell"] for of in stories if of["cell"] and is_about(of, play)), None),
    }
    is_alone = len({slash["offender"] for slash in slashes.seen.values()}) < 2
    return found | {"problems": problems(play, found, is_alone)}


def is_about(story, play):
    """Whether a dispute is about a receipt of whom a kind is about."""
    return play.cheat.disputed and play.payee.stash in json.dumps(story)


def problems(play, found, is_alone):
    """What is not as it must be."""
    wrong, cheat = [], play.cheat
    if cheat.faults and not found["culprit_lost"]:
        wrong.append("the culprit lost nothing")
    # Who is convicted beside others loses more: how much is the chain's to compute.
    lost, least = found["culprit_lost"], found["culprit_due"]
    if lost != found["culprit_taken"] or lost < least or (is_alone and lost != least):
        wrong.append(f"the culprit lost {sure(lost)} instead of {sure(least)}")
    if cheat.faults and not set(found["faults"]) & set(cheat.faults):
        wrong.append(f"the fault found is {found['faults']}")
    if not cheat.faults and found["faults"]:
        wrong.append(f"a fault was found: {found['faults']}")
    if cheat.disputed and not found["disputed_cell"]:
        wrong.append("no dispute came to a cell")
    if cheat.faults and found["paid"] and not cheat.batches_right:
        wrong.append("whoever was convicted was paid")
    if play.payee.name == HONEST and found["paid"] < found["receipts"]:
        wrong.append("the honest provider was not paid for all")
    # What its agent has spent says nothing: it may have been paid for finding somebody else's lie meanwhile.
    if play.kind == "false-dispute" and not found["bond_forfeited"]:
        wrong.append("who disputed what is right lost no bond")
    if play.kind == "unpaid-last-chunk" and not found["kept_back"]:
        wrong.append("no voucher was kept back")
    if play.kind == "breaks-off" and not (found["end_kept_back"] and found["heard"]):
        wrong.append("no answer was broken off, or what was heard of it was not demanded")
    if play.kind == "voucher-replay" and [one for one in found["tried"] if "refused" not in one]:
        wrong.append(f"a voucher was not refused: {found['tried']}")
    return wrong


def show(found, console):
    """Prints a report for people; raises when something is not as it must be."""
    for one in found["cheats"]:
        console.title(f"What came of it: {one['cheat']}")
        rows = [("culprit", one["culprit"]), ("faults found", ", ".join(one["faults"]) or "none")]
        if one["disputed_cell"]:
            rows.append(("disputed cell", one["disputed_cell"]["name"]))
        rows += [("tried", what) for what in one["tried"]]
        rows += [
            ("stake lost by the culprit", sure(one["culprit_lost"])),
            ("stake lost by all others", sure(one["others_lost"])),
            ("spent by the culprit's agent", sure(max(0, one["culprit_agent_spent"]))),
            ("of that, bonds", sure(one["bond_forfeited"])),
            ("receipts signed by the provider", sure(one["receipts"])),
            ("paid for them", sure(one["paid"])),
        ]
        if one["returned"]:
            rows.append(("deposit that its payer has back", sure(one["returned"])))
        console.table(rows)
    wrong = [f"{one['cheat']}: {'; '.join(one['problems'])}" for one in found["cheats"] if one["problems"]]
    if wrong:
        raise DevnetError("\n".join(wrong))
