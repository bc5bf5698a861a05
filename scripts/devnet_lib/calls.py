"""An answer at once: a provider sells over payment channels, a gateway pays it, and OpenAI's own client streams a chat.

What was answered is a receipt, which the provider batches on the chain, verifiers audit, and the chain pays.
"""

import json

from . import openai_client, wait
from .audits import Audits
from .chain import sure
from .devnet import GENERATOR
from .folders import REPO
from .gateway import Gateway, sell
from .surety import attempt

CHAT = REPO / "scripts/devnet_lib/chat.py"
QUESTION, MAX_TOKENS = "Where is the white whale?", 48
# Whose money the gateway spends: nobody else's while the network runs.
PAYER = "//Two"
# A chat costs some 0.06 SURE: six points of verifiers fall on it in the mean, and none on one in some hundreds. Then it
# is asked again.
UNIT_PRICE, PLACES, CAP = "0.001 SURE", 4, "5 SURE"
ASKS_MAX = 4
# Whoever waits looks several times a second.
KEY_CAP, REQUESTS_A_MINUTE, DEPOSIT, BUDGET = "1 SURE", 1000, "1 SURE", "2 SURE"
OFFER_SECONDS, CHAT_SECONDS, BATCH_SECONDS, REDEEM_SECONDS = 300, 300, 300, 900


def run(devnet, console, tokens, log):
    """From an offer to a receipt that is audited and redeemed. Returns the report."""
    provider, gateway = devnet.providers[0], Gateway(devnet, "gateway", PAYER)
    console.step(f"{provider.name} sells {GENERATOR} over payment channels, at {UNIT_PRICE} a token")
    sell(devnet, provider, {GENERATOR: "generate"}, cap=CAP, price=UNIT_PRICE, places=PLACES)
    key = gateway.create_key(KEY_CAP, "--requests-per-minute", REQUESTS_A_MINUTE)["key"]
    gateway.start("--deposit", DEPOSIT, "--budget", BUDGET)
    check = devnet.supervisor.check
    wait.until("the model to be offered at once", lambda: gateway.offers(GENERATOR, key), OFFER_SECONDS, check)
    console.step(f"a gateway is up at {gateway.url}; OpenAI's own client asks it: {QUESTION!r}")
    # The first one waits until the channel is final.
    opened = _chat(gateway, key, tokens)
    console.step("the channel is open; the same question again:")
    asked, audited = [opened], {}
    while not audited and len(asked) <= ASKS_MAX:
        told = _chat(gateway, key, tokens)
        asked.append(told)
        console.step(
            "answered; its receipt goes to the chain in a batch, which verifiers audit, and is redeemed after that"
        )
        call, audited, proof, earlier = _followed(devnet, gateway, key, asked, log)
        if not audited:
            console.step("no verifier has drawn a point in it, which happens: the same question again")
    receipt = call["receipts"][0]

    def paid():
        channels = gateway.surety.run("channel", "list")
        return channels if _paid(channels, proof, earlier) >= int(receipt["price"]) else None

    # What was counted waits for whoever was told something else.
    channels = wait.until("the receipt to be paid", paid, REDEEM_SECONDS, check)
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
        "batch": proof["batch"],
        "audited": audited,
        "redeemed": _paid(channels, proof, earlier),
        "channels": channels,
    }


def _followed(devnet, gateway, key, asked, log):
    """The last call that was asked, once it is final; who has audited it; its proof; and what its channel has for
    receipts before it, in plancks.
    """
    provider, check, told = devnet.providers[0], devnet.supervisor.check, asked[-1]["receipt"]

    def proofs(receipt):
        return wait.until("a batch to have the receipt", lambda: gateway.proofs(receipt, key), BATCH_SECONDS, check)

    proof = proofs(told)[-1]
    # Nobody else asks this provider: what is in the batch was asked here, and not after this.
    found = [found for one in asked for found in proofs(one["receipt"])]
    placed = [_placed(one["says"]) for one in found if one["batch"] == proof["batch"]]
    channel, nonce, _ = _placed(proof["says"])
    priced = [_placed(one["says"]) for one in found]
    earlier = sum(price for of, number, price in priced if of == channel and number < nonce)
    audits = Audits(devnet, provider, proof["batch"])

    def final():
        audits.look()
        call = gateway.receipt(told, key)
        return call if call["verdict"] == "final" else None

    call = wait.until("the receipt to be final", final, REDEEM_SECONDS, check)
    log.catch_up(devnet.chain.finalized_number())
    return call, audits.of(placed, _placed(proof["says"]), log), proof, earlier


def _paid(channels, proof, earlier):
    """What was paid for a receipt over its channel, in plancks: it comes after the `earlier` ones of that channel."""
    paid = next((int(one["paid"]) for one in channels if one["channel"] == proof["says"]["channel"]), 0)
    return min(max(0, paid - earlier), int(proof["says"]["price"]))


def _placed(says):
    """A receipt's channel, number and price."""
    return says["channel"], says["nonce"], int(says["price"])


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


def show(found, console):
    """Prints it for people."""
    console.title("A chat over a payment channel")
    console.table(
        [
            ("first token after", f"{found['seconds_to_first_token']:.2f} s"),
            ("with opening the channel", f"{found['seconds_with_opening_the_channel']:.1f} s"),
            ("tokens", found["tokens"]),
            ("paid by receipt", f"{sure(int(found['price']))} for {found['units']} units"),
            ("audited by", ", ".join(f"{name} at {points} points" for name, points in found["audited"].items())),
            ("its verdict", found["verdict"]),
            ("redeemed by its provider", sure(found["redeemed"])),
        ]
    )
    console.text(f"\n  OpenAI's clients, with --keep: base_url {found['gateway']}, api_key {found['key']}")
