"""Text generated on the chain: streamed while it is made, the same from all providers, and reproducible by its seed.

Several tasks live at once, each with a client of its own: a life takes longer than its computation.
"""

import functools
import json
import signal
import unittest

import support
from devnet_lib.devnet import GENERATOR, PROMPT
from devnet_lib.models import GENERATOR_CONTEXT
from devnet_lib.scale import content_hash

MAX_TOKENS = 48
USAGE = 2


class Client:
    """Somebody who has text generated, and what came of it."""

    def __init__(self, net, index, uri, **options):
        self.net, self.first_token_block = net, None
        self.surety = support.client(f"generation-client-{index}", uri)
        self.out = self.surety.home / "generation.bin"
        args = net.generation_args(**{"prompt": PROMPT, "max_tokens": MAX_TOKENS, **options})
        self.args = [*support.at_port(args, 4 + index), "--out", self.out, "--follow"]

    def asking(self, messages):
        """The same client with a conversation in place of its prompt."""
        path = self.surety.home / "messages.json"
        path.write_text(json.dumps(messages))
        place = self.args.index("--raw")
        self.args[place : place + 3] = ["--messages", path]
        return self

    def live(self):
        """A whole life. Remembers where the chain was at the first token."""
        self.outcome = self.surety.attempt(*self.args, on_output=self.see)
        return self

    def see(self, line):
        if self.first_token_block is None and '"token"' in line:
            self.first_token_block = self.net.chain.best_number()

    @property
    def report(self):
        return self.outcome.events()[-1]["report"]

    def streamed(self):
        """The text as its tokens came."""
        tokens = [event for event in self.outcome.events() if event["event"] == "token"]
        return "".join(token["text"] for token in tokens)

    def view(self):
        return self.net.chain.task(self.report["task"])


CRASHING = 2

CONVERSATION = [
    {"role": "system", "content": "Answer as a sailor."},
    {"role": "user", "content": "Where is the whale?"},
]
# The same as ChatML, by hand.
SPELLED = (
    "<|im_start|>system\nAnswer as a sailor.<|im_end|>\n"
    "<|im_start|>user\nWhere is the whale?<|im_end|>\n"
    "<|im_start|>assistant\n"
)


@functools.cache
def begin_chat():
    """Posts a conversation, and what its template has to make of it as a prompt. Both report in the future."""
    net = support.devnet()
    asked = Client(net, 9, "//Alice", seed=7).asking(CONVERSATION)
    spelled = Client(net, 10, "//Eve", seed=7, prompt=SPELLED)
    return [support.waiting().submit(client.live) for client in (asked, spelled)]


@functools.cache
def begin():
    """Posts the tasks. The spare provider of one is killed while it generates. Clients report in the future."""
    net = support.devnet()
    wanted = [("//Alice", {"seed": 7}), ("//Eve", {"seed": 7}), ("//Charlie", {"seed": 8})]
    # More words than the model has positions; no tokenizer makes fewer tokens of them.
    wanted.append(("//Charlie//stash", {"prompt": " ".join(["whale"] * GENERATOR_CONTEXT)}))
    clients = [Client(net, index, uri, **options) for index, (uri, options) in enumerate(wanted)]
    clients = [support.waiting().submit(client.live) for client in clients]
    begin_chat()
    spare = support.start_spare(CRASHING, GENERATOR, "--crash-at", "mid-generation")
    net.supervisor.forget(spare.process)
    args = [*net.generation_args(**support.SPARE_TASK), "--follow"]
    return clients, support.Life("generation-crash", "//One", 9, args), spare


@functools.cache
def go_on():
    """Starts the spare provider again once it was killed. Returns its process, and what there was to say."""
    _, life, spare = begin()
    process, told = support.end_of(spare, life)
    if process.returncode() is not None:
        support.start_spare(CRASHING, GENERATOR)
    return process, told


def setUpModule():
    begin()
    go_on()


class Generations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.net = support.devnet()
        cls.first, cls.same, cls.other, cls.too_long = (client.result() for client in begin()[0])

    def test_the_task_is_settled_and_all_three_providers_gave_the_same_text(self):
        for client in (self.first, self.same, self.other):
            view = client.view()
            self.assertEqual(view["state"]["name"], "Settled")
            self.assertEqual(set(support.paid(view)), {provider.stash for provider in self.net.providers})
            self.assertEqual(support.money_out(view), view["cap"])
            self.assertEqual(view["escrow"], 0)

    def test_tokens_were_seen_before_the_task_was_settled_and_are_what_was_settled(self):
        for client in (self.first, self.same, self.other):
            made = client.report["generation"]
            self.assertLess(client.first_token_block, client.view()["state"]["at"])
            self.assertTrue(made["streamed"]["as_settled"])
            self.assertEqual(made["streamed"]["restarts"], 0)
            self.assertGreater(made["streamed"]["tokens"], 0)
            self.assertTrue(made["text"].startswith(client.streamed()))
            first = made["streamed"]["seconds_post_to_first_token"]
            self.assertLess(first, client.report["seconds_post_to_settled"])

    def test_the_output_is_what_was_agreed_on_and_the_units_are_its_tokens(self):
        blob = self.first.out.read_bytes()
        claim = self.first.view()["state"]["claim"]
        self.assertEqual("0x" + content_hash(blob).hex(), claim["output"])
        made = self.first.report["generation"]
        self.assertLessEqual(len(made["tokens"]), MAX_TOKENS)
        self.assertEqual(claim["units"], made["prompt_tokens"] + len(made["tokens"]))

    def test_the_same_seed_gives_the_same_text_and_another_seed_another(self):
        texts = [client.report["generation"]["text"] for client in (self.first, self.same, self.other)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])
        outputs = [client.view()["state"]["claim"]["output"] for client in (self.first, self.same)]
        self.assertEqual(*outputs)

    def test_its_client_can_fetch_the_result_later(self):
        task, made = self.first.report["task"], self.first.report["generation"]
        fetched = self.first.surety.run("task", "result", task)
        for field in ("text", "tokens", "prompt_tokens", "finish_reason"):
            self.assertEqual(fetched["generation"][field], made[field])

    def test_nobody_else_is_served_the_result(self):
        refused = self.other.surety.attempt("task", "result", self.first.report["task"])
        self.assertNotEqual(refused.code, 0)
        self.assertIn("not among the readers", refused.stderr)

    def test_a_prompt_over_the_context_is_explained_and_not_even_posted(self):
        outcome = self.too_long.outcome
        self.assertEqual(outcome.code, USAGE, outcome.stderr)
        self.assertIn(f"over the model's {GENERATOR_CONTEXT}", outcome.stderr[outcome.stderr.find("error:") :])
        self.assertFalse(self.too_long.out.exists())
        account = self.too_long.surety.run("account", "show")["address"]
        self.assertEqual(self.net.chain.account(account)["held"], 0)


class Conversations(unittest.TestCase):
    """Messages become a prompt by the model's chat template, which is part of the model on the chain."""

    @classmethod
    def setUpClass(cls):
        cls.net = support.devnet()
        cls.asked, cls.spelled = (client.result() for client in begin_chat())

    def test_an_answer_is_settled(self):
        view, made = self.asked.view(), self.asked.report["generation"]
        self.assertEqual(view["state"]["name"], "Settled")
        self.assertEqual(set(support.paid(view)), {provider.stash for provider in self.net.providers})
        self.assertGreater(len(made["tokens"]), 0)

    def test_its_input_is_the_ids_of_what_the_template_makes_of_it(self):
        asked, spelled = (client.view()["spec"]["input"] for client in (self.asked, self.spelled))
        self.assertEqual(asked, spelled)
        answers = [client.report["generation"]["tokens"] for client in (self.asked, self.spelled)]
        self.assertEqual(*answers)


class ProviderKilledMidGeneration(unittest.TestCase):
    """It had begun to tell its tokens."""

    def test_it_comes_back_starts_over_and_is_paid(self):
        _, life, provider = begin()
        process, told = go_on()
        self.assertEqual(process.returncode(), -signal.SIGABRT, told)

        view = life.wait_for_state("Settled", "Failed")
        told = life.told(provider, *support.devnet().providers)
        self.assertEqual(view["state"]["name"], "Settled", told)
        self.assertEqual(set(support.paid(view)), support.with_spare(provider), told)
        self.assertEqual(life.finish(), 0, told)
        self.assertTrue(life.out.exists())
        support.end_spare(provider)


if __name__ == "__main__":
    unittest.main()
