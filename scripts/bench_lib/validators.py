"""`scripts/bench validators`: validators' lives on one network, through the commands that people use.

A fourth one joins and makes blocks, one rotates its keys, one of four is down and then two, one leaves, and one runs
twice with the same keys. Sessions take five minutes, so that all of it takes a good half hour. Each part can be lived
alone: but for joining, on a network that has had four validators since its genesis.
"""

import collections
import datetime
import json
import shutil
import time
from fractions import Fraction

from devnet_lib import wait
from devnet_lib.chain import SURE
from devnet_lib.errors import DevnetError
from devnet_lib.folders import binaries, new_run_dir, remove_data, write_secret
from devnet_lib.ports import Ports
from devnet_lib.processes import Supervisor
from devnet_lib.processes import run as command
from devnet_lib.scale import ss58_decode
from devnet_lib.surety import Surety
from devnet_lib.validators import DEV_NAMES, Validators
from devnet_lib.watch import ChainLog

from . import machine

PARTS = ("joining", "outages", "leaving")
# Beside the devnet.
PORTS = Ports(500)
ALICE, BOB, CHARLIE, NEWCOMER, TWIN = range(5)
NAMES = [*(name.capitalize() for name in DEV_NAMES), "the newcomer"]
SESSION_SECONDS = 300
# Who is elected as a session begins works in the next one. With room.
TWO_SESSIONS_SECONDS = int(2.5 * SESSION_SECONDS)
# Until a slash is carried out, or a call of a program is final.
SOON_SECONDS = 180
BLOCKS = 10
BOND, DELEGATED = 20_000 * SURE, 100 * SURE
# One of four: (3 / 4)^2.
PART = Fraction(9, 16)
# Whose keys the fourth has where it is there from the beginning.
FOURTH = "//Dave"
COMMISSION_MILLIONTHS = 100_000
COMMAND_SECONDS = 60
# Files of a keystore begin with the type of the key: "gran".
VOTING_KEYS = b"gran".hex() + "*"
# The kind of offence, as BABE's pallet names it.
TWO_BLOCKS = "babe:equivocatio"
FINES = {"SlashDeferred": "offender", "Jailed": "stash", "Suspended": "stash"}


class Log(ChainLog):
    """What happened to validators."""

    PALLETS = ("TrustLock", "Validators", "Delegation", "Emission", "Offences")


class Life:
    """A network of three validators, a fourth that joins, and what was seen of them."""

    def __init__(self, folder, console):
        self.folder, self.console = folder, console
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.supervisor, self.bin = Supervisor(self.logs), binaries()
        self.net = Validators(self.supervisor, self.bin / "surety-node", PORTS, folder / "validators", count=5)
        # What was seen and what was not, and when, in seconds since the beginning.
        self.seen, self.failed, self.began = {}, [], time.monotonic()
        # What was reported, by its kind.
        self.offences = {}
        self.log, self.leaving, self.operators, self.addresses, self.delegator = None, None, {}, {}, None

    def check(self, what, is_so):
        """Takes down whether something is as it must be."""
        self.seen[what] = {"as_it_must_be": bool(is_so), "seconds": round(time.monotonic() - self.began)}
        if not is_so:
            self.failed.append(what)
        self.console.step(f"{what}: {'so it is' if is_so else 'NOT SO'}")

    @property
    def chain(self):
        """Alice's view: she is never down."""
        return self.net.all[ALICE].chain

    def until(self, what, probe, seconds=SOON_SECONDS):
        """Waits, with an eye on all processes."""
        return wait.until(what, probe, seconds, self.supervisor.check)

    def surety(self, name, uri=None, node=ALICE):
        """The command with a home and a key of its own, at one node."""
        home = self.folder / name
        home.mkdir()
        if uri:
            write_secret(home / "account.key", uri)
        return Surety(self.supervisor, self.bin / "surety", home, f"ws://127.0.0.1:{PORTS.rpc(node)}")

    def of(self, pallet, item, who):
        """What the final state has of an operator."""
        return self.chain.value(pallet, item, ss58_decode(self.addresses[who]))

    def works(self, who):
        """Whether an operator is in the set."""
        return self.addresses[who] in self.chain.value("Session", "Validators")

    def session(self):
        return self.chain.value("Session", "CurrentIndex")

    def happened(self, name, who=None, key="operator"):
        """Events of a name, of an operator or of anybody."""
        self.log.catch_up(self.chain.finalized_number())
        events = [of for _, _, event, of in self.log.events() if event == name]
        return [of for of in events if who is None or of[key] == self.addresses[who]]

    def goes_on(self, blocks=BLOCKS):
        """Whether finality does."""
        return self.net.wait_for_finality(self.chain.finalized_number() + blocks)

    def stop(self):
        """Ends all that was started."""
        if self.log:
            self.log.__exit__()
        if self.leaving:
            self.leaving.stop()
        self.supervisor.stop()

    # Steps, in the order in which they are taken.

    def up(self):
        """Three validators, and a node that will be the fourth."""
        self._start()
        self.operators[NEWCOMER] = self.surety("newcomer", node=NEWCOMER)

    def up_with_four(self):
        """Four validators."""
        self.net.change = self._with_fourth
        self._start(write_secret(self.folder / "fourth.key", FOURTH))
        fourth = self.operators[NEWCOMER] = self.surety("newcomer", FOURTH, NEWCOMER)
        self.addresses[NEWCOMER] = fourth.run("account", "show")["address"]
        operator = ("--operator", self.addresses[NEWCOMER])
        self.delegator.run("stake", "delegate", *operator, "--amount", f"{DELEGATED // SURE} SURE")

    def _with_fourth(self, patch):
        keys = {}
        for name, scheme in (("babe", "sr25519"), ("grandpa", "ed25519"), ("authority_discovery", "sr25519")):
            argv = [self.bin / "surety-node", "key", "inspect", "--scheme", scheme, "--output-type", "json", FOURTH]
            keys[name] = json.loads(command(argv, COMMAND_SECONDS).stdout)["ss58PublicKey"]
        account = keys["babe"]
        patch["session"]["keys"].append([account, account, keys])
        patch["delegation"]["pools"].append([account, BOND, COMMISSION_MILLIONTHS])
        patch["validators"]["candidates"].append(account)

    def _start(self, fourth_key=None):
        self.net.prepare()
        if fourth_key:
            self.net.insert_keys(NEWCOMER, fourth_key)
        for index in (ALICE, BOB, CHARLIE, NEWCOMER):
            self.net.start(index)
        for index in (ALICE, BOB, CHARLIE, NEWCOMER):
            self.net.wait_for_answer(self.net.all[index])
        self.net.wait_for_finality(2)
        self.log = Log([self.net.all[index].chain for index in (ALICE, BOB)])
        self.log.__enter__()
        for index in (ALICE, BOB, CHARLIE):
            self.operators[index] = self.surety(DEV_NAMES[index], f"//{NAMES[index]}", index)
            self.addresses[index] = self.operators[index].run("account", "show")["address"]
        self.delegator = self.surety("delegator", "//Eve")

    def join(self):
        """The fourth joins by the commands alone."""
        node, newcomer = self.net.all[NEWCOMER], self.operators[NEWCOMER]
        args = ("validator", "init", "--chain", self.net.spec, "--base-path", node.base_path)
        ready = newcomer.run(*args)
        self.addresses[NEWCOMER] = ready["operator"]
        again = newcomer.run(*args)
        self.check("init keeps the keys that the node has", again["session_keys"] == ready["session_keys"])
        # Its bond, and some for deposit and fees.
        giver = self.surety("giver", "//Dave")
        giver.run("account", "fund", "--to", ready["operator"], "--amount", f"{BOND // SURE + 100} SURE")
        joined = newcomer.run("validator", "join", "--bond", f"{BOND // SURE} SURE", "--commission", "5")
        rotated = self.operators[BOB].run("validator", "rotate")
        operator = ("--operator", ready["operator"])
        self.delegator.run("stake", "delegate", *operator, "--amount", f"{DELEGATED // SURE} SURE")
        self.until("the newcomer to be in the set", lambda: self.works(NEWCOMER), TWO_SESSIONS_SECONDS)
        self.check("the newcomer works from the session on that join names", self.session() == joined["works_from"])
        made = lambda who: self.of("Validators", "Authored", who)  # noqa: E731
        self.until("the newcomer to make a block", lambda: made(NEWCOMER), TWO_SESSIONS_SECONDS)
        status = newcomer.run("validator", "status")
        self.check("its status says that it works, with keys", status["works_now"] and status["node_has_keys"])
        self.check("it is the first, with its delegator", (status["rank"], status["delegators"]) == (1, 1))
        self.until("Bob's new keys to sign", lambda: self.session() >= rotated["works_from"], TWO_SESSIONS_SECONDS)
        self.check("Bob makes blocks with new keys", self.until("a block of Bob's", lambda: made(BOB), SESSION_SECONDS))

    def rewards(self):
        """Whoever made its blocks is paid."""
        alice = self.operators[ALICE]
        unclaimed = lambda: int(alice.run("validator", "status")["unclaimed"])  # noqa: E731
        before = self.until("Alice to have earned something", unclaimed, SESSION_SECONDS)
        alice.run("stake", "claim")
        paid = sum(of["amount"] for of in self.happened("Claimed", ALICE))
        self.check("Alice is paid what she has earned", paid >= before)

    def outages(self):
        """One of four is down, then two."""
        self.net.kill(CHARLIE)
        self.check("with one of four down finality goes on", self.goes_on())
        self.net.kill(BOB)
        # Votes that were on their way may still finalise what existed by now.
        existed = self.chain.best_number()
        self.until("blocks without finality", lambda: self.chain.best_number() >= existed + BLOCKS)
        self.check("with two of four down it halts", self.chain.finalized_number() <= existed)
        for index in (BOB, CHARLIE):
            self.net.start(index)
            self.net.wait_for_answer(self.net.all[index])
        self.check("with both back it goes on", self.net.wait_for_finality(existed + BLOCKS + 1))
        self.goes_on()
        self.check("nobody was fined for being down", not self.fines())

    def equivocate(self):
        """The newcomer's keys run on two nodes."""
        self.leaving = self.operators[CHARLIE].start("charlie-leaves", "validator", "leave", "--json")
        # It ends by itself.
        self.supervisor.forget(self.leaving)
        first, second = (self.net.all[index].base_path for index in (NEWCOMER, TWIN))
        # It makes blocks and casts no votes: two votes of a round would be reported as well, and hide that two blocks
        # are not.
        for keystore in first.glob("chains/*/keystore"):
            shutil.copytree(keystore, second / keystore.relative_to(first), ignore=shutil.ignore_patterns(VOTING_KEYS))
        self.net.start(TWIN)
        convicted = lambda: self.happened("Equivocated", NEWCOMER)  # noqa: E731
        self.until("somebody to report that the newcomer signs twice", convicted, TWO_SESSIONS_SECONDS)
        self.net.kill(TWIN)
        kinds = [bytes.fromhex(of["kind"][2:]).decode() for of in self.happened("Offence")]
        self.offences = dict(collections.Counter(kinds))
        self.check("its two blocks of a slot were reported", TWO_BLOCKS in self.offences)

        def told():
            """Its own node may hear of it a little later."""
            status = self.operators[NEWCOMER].run("validator", "status")
            return status if status["slashes"] else None

        status = self.until("its status to tell of a slash", told)
        self.check("its status says the part that it loses", {of["part"] for of in status["slashes"]} == {"56.25 %"})
        self.check("and that it is in jail", any("two of a kind" in problem for problem in status["problems"]))

    def slashed(self):
        """The slash is carried out, by idle blocks, and its delegator has its part."""
        offender = self.addresses[NEWCOMER]
        waits = lambda: any(of["offender"] == offender for of in self.chain.slashes().values())  # noqa: E731
        self.until("its slash to be carried out", lambda: not waits())
        lost = [of["amount"] for of in self.happened("Slashed", NEWCOMER)]
        self.check("its pool lost 9/16, exactly", lost == [PART * (BOND + DELEGATED)])
        left = self.of("Delegation", "Pools", NEWCOMER)["fund"]["amount"]
        self.check("what is left is in its pool", left == BOND + DELEGATED - sum(lost))
        operator = ("--operator", offender)
        (share,) = self.delegator.run("stake", "show")["delegations"]
        self.check("its delegator lost the same part", int(share["lost"]) == PART * DELEGATED)
        self.delegator.run("stake", "settle", *operator)
        self.delegator.run("stake", "undelegate", *operator)
        shown = self.delegator.run("stake", "show")
        leaving = [int(chunk["worth"]) for chunk in shown["leaving"]]
        self.check("what is left it can take out", leaving == [(1 - PART) * DELEGATED] and not shown["delegations"])

    def out(self):
        """Who left and who was convicted are in no set any more; the others go on."""
        self.until("the newcomer to be out", lambda: not self.works(NEWCOMER), TWO_SESSIONS_SECONDS)
        self.check("who signed twice is out of the set", True)
        self.check("who left is told so in the end", self.leaving.wait(TWO_SESSIONS_SECONDS))
        self.check("leaving was done", self.leaving.returncode() == 0)
        self.check("who left is out of the set", not self.works(CHARLIE))
        chunks = self.of("Delegation", "Stakes", CHARLIE)["leaving"]
        self.check("its bond is on its way out, all of it", [chunk["held"] for chunk in chunks] == [BOND])
        self.net.kill(CHARLIE)
        self.net.kill(NEWCOMER)
        self.check("the two that are left go on without either node", self.goes_on())
        self.check("nobody else was fined", not self.fines())
        chilled = {of["operator"]: of["reason"] for of in self.happened("Chilled")}
        wanted = {self.addresses[CHARLIE]: "Asked", self.addresses[NEWCOMER]: "Convicted"}
        self.check("nobody else was chilled", chilled == wanted)

    def fines(self):
        """Of whom the chain says something bad who did nothing wrong."""
        guilty = self.addresses.get(NEWCOMER)
        return [of for name, key in FINES.items() for of in self.happened(name) if of[key] != guilty]

    def live(self, part):
        """All of it, or a part. What keeps it from going on is taken down as well."""
        lives = {
            None: (self.up, self.join, self.rewards, self.outages, self.equivocate, self.slashed, self.out),
            "joining": (self.up, self.join, self.rewards),
            "outages": (self.up_with_four, self.outages),
            "leaving": (self.up_with_four, self.equivocate, self.slashed, self.out),
        }
        try:
            for step in lives[part]:
                self.console.title(step.__doc__.rstrip("."))
                step()
        except DevnetError as error:
            self.console.text(str(error))
            self.failed.append(f"it went no further than that: {error}")


def run(options, console):
    """Lives it. Returns the report."""
    folder = new_run_dir()
    life = Life(folder, console)
    try:
        life.live(options.only)
    finally:
        life.stop()
        remove_data(folder)
    return {
        "date": datetime.date.today().isoformat(),
        "commit": machine.commit(),
        "machine": machine.describe(),
        "part": options.only,
        "seen": life.seen,
        "offences": life.offences,
        "logs": str(life.logs),
        "failed": life.failed,
    }


def show(found, console):
    """Prints the report for people."""
    console.title("What was seen")
    rows = [(what, "as it must be" if of["as_it_must_be"] else "NOT SO") for what, of in found["seen"].items()]
    console.table([*rows, ("logs", found["logs"])])
