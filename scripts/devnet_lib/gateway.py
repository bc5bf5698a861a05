"""A gateway for OpenAI's clients, and what providers sell to it over payment channels."""

import json
import urllib.error
import urllib.request

from . import wait
from .errors import DevnetError, RpcError
from .folders import write_secret

UP_SECONDS = 300
READ_SECONDS = 60
# Why a receipt has no proof, as long as it may get one: it is in no final batch, or its provider has no time.
NOT_YET = ("nothing_signed", "not_batched", "not_shown")


def sell(net, provider, offered, *, cap, price, places):
    """A provider's stash stands behind what it sells: by model, what is done with it."""
    home = provider.surety.home
    stash = net.surety(home, home / "stash.key")
    stash.run("provider", "stand", "--cap", cap)
    for model, operation in offered.items():
        args = ("--model", model, "--operation", operation, "--price", price, "--places", places)
        stash.run("provider", "offer", *args)


class Gateway:
    """`surety gateway up` with a home and an account of its own. Those of one network differ by their `place`."""

    def __init__(self, net, name, uri, place=0):
        self.net, self.name = net, name
        home = net.run_dir / name
        home.mkdir()
        self.surety = net.surety(home, write_secret(home / "account.key", uri))
        self.http = f"127.0.0.1:{net.ports.gateway(place)}"
        self.listen = f"127.0.0.1:{net.ports.client() + 1 + place}"
        self.process, self.starts = None, 0

    @property
    def url(self):
        """Where clients find it."""
        return f"http://{self.http}/v1"

    def create_key(self, cap, *terms):
        """A new API key, as the command tells it."""
        return self.surety.run("gateway", "keys", "create", "--cap", cap, *terms)

    def start(self, *flags):
        """Starts it, for the first time or again, and waits until it is up."""
        self.begin(*flags)
        self.wait_until_up()

    def begin(self, *flags):
        """Starts it, for the first time or again."""
        self.starts += 1
        args = ("gateway", "up", "--http", self.http, "--listen", self.listen, *flags)
        self.process = self.surety.start(f"{self.name}-{self.starts}", *args)

    def wait_until_up(self):
        """Waits until it is."""
        is_up = lambda: "the gateway is up" in self.process.log.read_text(errors="replace")  # noqa: E731
        wait.until("the gateway", is_up, UP_SECONDS, self.net.supervisor.check)

    def read(self, path, key):
        """What it has at a path, as text.

        A refusal raises `urllib.error.HTTPError`, and no answer at all what a node's does.
        """
        request = urllib.request.Request(f"http://{self.http}{path}", headers={"Authorization": f"Bearer {key}"})
        # A proxy of this machine knows nothing of it.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=READ_SECONDS) as response:
                return response.read().decode()
        except urllib.error.HTTPError:
            raise
        except OSError as error:
            raise RpcError(f"{self.http}{path}: {error}") from error

    def stream(self, key, question):
        """Asks for a chat, and gives its parts as they come."""
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/chat/completions", json.dumps(question).encode(), headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=READ_SECONDS) as response:
            for line in response:
                said = line.decode().strip().removeprefix("data: ")
                if said.startswith("{"):
                    yield json.loads(said)

    def offers(self, model, key):
        """Whether it has a provider for a model."""
        models = json.loads(self.read("/v1/models", key))["data"]
        return any(one["id"] == model and one["surety"]["unit_price_max"] for one in models)

    def proven(self, name, key):
        """What shows that an answer's receipts are on the chain; nothing while no final batch has any."""
        try:
            return json.loads(self.read(f"/v1/receipts/{name}/proof", key))
        except urllib.error.HTTPError as refused:
            with refused:
                said = refused.read().decode(errors="replace")
                if not any(f'"{code}"' in said for code in NOT_YET):
                    raise DevnetError(f"no proof of {name}, with {refused.code}: {said}") from refused
                return None

    def proofs(self, name, key):
        """The proofs of an answer's receipts that a final batch has: the last one's comes last. Nothing while that has
        none.
        """
        found = (self.proven(name, key) or {"proofs": []})["proofs"]
        return [one["proof"] for one in found if one["proof"]] if found and found[-1]["proof"] else []

    def receipt(self, name, key):
        """What stands behind an answer."""
        return json.loads(self.read(f"/v1/receipts/{name}", key))
