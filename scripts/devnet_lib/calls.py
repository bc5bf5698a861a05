"""An answer at once: a provider sells over payment channels, a gateway pays it, and OpenAI's own client streams a chat.

What was answered is a receipt, which the provider batches on the chain, verifiers audit, and the chain pays.
"""

import json
import subprocess
import urllib.request

from . import openai_client, wait
from .devnet import GENERATOR
from .errors import CommandFailed
from .folders import REPO, write_secret
from .processes import child_options

CHAT = REPO / "scripts/devnet_lib/chat.py"
QUESTION, MAX_TOKENS = "Where is the white whale?", 48
# Whose money the gateway spends: nobody else's while the network runs.
PAYER = "//Two"
UNIT_PRICE, PLACES, CAP = "0.0001 SURE", 4, "5 SURE"
KEY_CAP, DEPOSIT, BUDGET = "1 SURE", "1 SURE", "2 SURE"
START_SECONDS, OFFER_SECONDS, CHAT_SECONDS, REDEEM_SECONDS = 90, 180, 120, 600


class Calls:
    """A provider that sells a model over channels, and a gateway in front of it."""

    def __init__(self, devnet):
        self.devnet, self.provider = devnet, devnet.providers[0]
        self.home = devnet.run_dir / "gateway"
        self.home.mkdir()
        self.surety = devnet.surety(self.home, write_secret(self.home / "account.key", PAYER))
        self.http = f"127.0.0.1:{devnet.ports.data(90)}"

    def offer(self):
        """The provider's stash stands behind what it sells."""
        home = self.provider.surety.home
        stash = self.devnet.surety(home, home / "stash.key")
        stash.run("provider", "stand", "--cap", CAP)
        stash.run("provider", "offer", "--model", GENERATOR, "--price", UNIT_PRICE, "--places", PLACES)

    def start(self):
        """Starts the gateway, and waits until it has found the offer."""
        self.key = self.surety.run("gateway", "keys", "create", "--cap", KEY_CAP)["key"]
        listen = f"127.0.0.1:{self.devnet.ports.client() + 1}"
        args = ("--http", self.http, "--listen", listen, "--deposit", DEPOSIT, "--budget", BUDGET)
        self.process = self.surety.start("gateway", "gateway", "up", *args)
        check = self.devnet.supervisor.check
        said = lambda: "the gateway is up" in self.process.log.read_text(errors="replace")  # noqa: E731
        wait.until("the gateway", said, START_SECONDS, check)
        wait.until("the model to be offered at once", self.is_offered, OFFER_SECONDS, check)

    def is_offered(self):
        """Whether the gateway has a provider for the model."""
        models = self.get("/v1/models")["data"]
        return any(model["id"] == GENERATOR and model["surety"]["unit_price_max"] for model in models)

    def get(self, path):
        """What the gateway has at a path."""
        request = urllib.request.Request(f"http://{self.http}{path}", headers={"Authorization": f"Bearer {self.key}"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as response:
            return json.load(response)

    def chat(self, on_event):
        """Streams a chat with OpenAI's client. Returns its last word."""
        argv = [openai_client.python(), CHAT, GENERATOR, QUESTION, str(MAX_TOKENS)]
        env = {"SURETY_GATEWAY": f"http://{self.http}/v1", "SURETY_API_KEY": self.key}
        said = []
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **child_options(env)}
        with subprocess.Popen(argv, **options) as client, self.devnet.supervisor.watched(client):
            for line in client.stdout:
                said.append(json.loads(line))
                on_event(said[-1])
            errors = client.stderr.read()
            code = client.wait(timeout=CHAT_SECONDS)
        if code:
            raise CommandFailed([str(part) for part in argv], code, "", errors)
        return said[-1]

    def receipt(self, name):
        """What stands behind an answer, as the gateway knows it."""
        return self.get(f"/v1/receipts/{name}")

    def channels(self):
        """The gateway's channels, as the chain has them."""
        return self.surety.run("channel", "list")

    def is_redeemed(self):
        """The channels, once the provider has what it is owed."""
        channels = self.channels()
        return channels if any(int(channel["paid"]) for channel in channels) else None


def run(devnet, console, tokens):
    """From an offer to a redeemed receipt. Returns the report."""
    calls = Calls(devnet)
    console.step(f"{calls.provider.name} sells {GENERATOR} over payment channels, at {UNIT_PRICE} a token")
    calls.offer()
    calls.start()
    console.step(f"a gateway is up at http://{calls.http}/v1; OpenAI's own client asks it: {QUESTION!r}")
    # The first one waits until the channel is final.
    opened = calls.chat(tokens)
    console.step("the channel is open; the same question again:")
    told = calls.chat(tokens)
    call = calls.receipt(told["receipt"])
    console.step("answered; its receipt goes to the chain in a batch, verifiers audit it, and the provider redeems it")
    channels = wait.until("the receipt to be redeemed", calls.is_redeemed, REDEEM_SECONDS, devnet.supervisor.check)
    receipt = calls.receipt(told["receipt"])["receipts"][0]
    return {
        "question": QUESTION,
        "tokens": told["tokens"],
        "seconds_to_first_token": told["seconds"]["to_first_token"],
        "seconds_with_opening_the_channel": opened["seconds"]["to_first_token"],
        "units": receipt["receipt"]["units"],
        "price": receipt["receipt"]["price"],
        "spent": call["spent"],
        "verdict": receipt["verdict"],
        "channels": channels,
    }


def show(found, console):
    """Prints it for people."""
    console.title("A chat over a payment channel")
    console.table(
        [
            ("first token after", f"{found['seconds_to_first_token']:.2f} s"),
            ("with opening the channel", f"{found['seconds_with_opening_the_channel']:.1f} s"),
            ("tokens", found["tokens"]),
            ("paid by receipt", f"{int(found['price']) / 1e12:.6f} SURE for {found['units']} units"),
            ("its verdict", found["verdict"]),
        ]
    )
