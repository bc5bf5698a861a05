"""An answer at once: a provider sells over payment channels, a gateway pays it, and OpenAI's own client streams a chat.

What was answered is a receipt, which the provider batches on the chain, verifiers draw on, and the chain pays.
"""

import json

from . import openai_client, wait
from .chain import sure
from .devnet import GENERATOR
from .errors import DevnetError
from .folders import REPO
from .gateway import Gateway, sell
from .surety import attempt

CHAT = REPO / "scripts/devnet_lib/chat.py"
QUESTION, MAX_TOKENS = "Where is the white whale?", 48
# Whose money the gateway spends: nobody else's while the network runs.
PAYER = "//Two"
UNIT_PRICE, PLACES, CAP = "0.0001 SURE", 4, "5 SURE"
KEY_CAP, DEPOSIT, BUDGET = "1 SURE", "1 SURE", "2 SURE"
OFFER_SECONDS, CHAT_SECONDS, REDEEM_SECONDS = 180, 120, 600


def run(devnet, console, tokens):
    """From an offer to a redeemed receipt. Returns the report."""
    provider, gateway = devnet.providers[0], Gateway(devnet, "gateway", PAYER)
    console.step(f"{provider.name} sells {GENERATOR} over payment channels, at {UNIT_PRICE} a token")
    sell(devnet, provider, {GENERATOR: "generate"}, cap=CAP, price=UNIT_PRICE, places=PLACES)
    key = gateway.create_key(KEY_CAP)["key"]
    gateway.start("--deposit", DEPOSIT, "--budget", BUDGET)
    check = devnet.supervisor.check
    wait.until("the model to be offered at once", lambda: gateway.offers(GENERATOR, key), OFFER_SECONDS, check)
    console.step(f"a gateway is up at {gateway.url}; OpenAI's own client asks it: {QUESTION!r}")
    # The first one waits until the channel is final.
    opened = _chat(gateway, key, tokens)
    console.step("the channel is open; the same question again:")
    told = _chat(gateway, key, tokens)
    console.step(
        "answered; its receipt goes to the chain in a batch, on which verifiers draw, and is redeemed after that"
    )
    call = wait.until("the receipt to be final", lambda: _final(gateway, key, told), REDEEM_SECONDS, check)
    channels = gateway.surety.run("channel", "list")
    if not any(int(channel["paid"]) for channel in channels):
        raise DevnetError(f"the receipt is final, and its provider has redeemed nothing: {channels}")
    receipt = call["receipts"][0]
    return {
        "gateway": gateway.url,
        "key": key,
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


def _chat(gateway, key, on_event):
    """Streams a chat with OpenAI's client. Returns its last word."""
    outcome = attempt(
        gateway.net.supervisor,
        [openai_client.python(), CHAT, GENERATOR, QUESTION, MAX_TOKENS],
        on_output=lambda line: on_event(json.loads(line)),
        timeout=CHAT_SECONDS,
        env={"SURETY_GATEWAY": gateway.url, "SURETY_API_KEY": key},
    )
    return outcome.events()[-1]


def _final(gateway, key, told):
    """The call, once its provider is paid and nobody can dispute it any more."""
    call = gateway.receipt(told["receipt"], key)
    return call if call["verdict"] == "final" else None


def show(found, console):
    """Prints it for people."""
    console.title("A chat over a payment channel")
    console.table(
        [
            ("first token after", f"{found['seconds_to_first_token']:.2f} s"),
            ("with opening the channel", f"{found['seconds_with_opening_the_channel']:.1f} s"),
            ("tokens", found["tokens"]),
            ("paid by receipt", f"{sure(int(found['price']))} for {found['units']} units"),
            ("its verdict", found["verdict"]),
        ]
    )
    console.text(f"\n  OpenAI's clients, with --keep: base_url {found['gateway']}, api_key {found['key']}")
