"""Text generated on the chain: streamed while it is made, the same from all providers, and reproducible by its seed.

Several tasks live at once, each with a client of its own: a life takes longer than its computation.
"""

import signal
import unittest
from concurrent.futures import ThreadPoolExecutor

import support
from devnet_lib.devnet import PROMPT
from devnet_lib.folders import write_secret
from devnet_lib.models import GENERATOR_CONTEXT
from devnet_lib.scale import content_hash

MAX_TOKENS = 48
NO_RESULT = 5


class Client:
    """Somebody who has text generated, and what came of it."""

    def __init__(self, net, index, uri, **options):
        self.net, self.first_token_block = net, None
        home = net.run_dir / f"generation-client-{index}"
        home.mkdir()
        self.surety = net.surety(home, write_secret(home / "account.key", uri))
        self.out = home / "generation.bin"
        args = net.generation_args(**{"prompt": PROMPT, "max_tokens": MAX_TOKENS, **options})
        # The ports of other tests' clients are taken.
        args[args.index("--listen") + 1] = f"127.0.0.1:{net.ports.client() + 4 + index}"
        self.args = [*args, "--out", self.out, "--follow"]

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


def setUpModule():
    support.happy_life()


class Generations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.net = net = support.devnet()
        wanted = [("//Ferdie", {"seed": 7}), ("//Eve", {"seed": 7}), ("//Charlie", {"seed": 8})]
        clients = [Client(net, index, uri, **options) for index, (uri, options) in enumerate(wanted)]
        # More words than the model has positions; no tokenizer makes fewer tokens of them.
        long = " ".join(["whale"] * GENERATOR_CONTEXT)
        clients.append(Client(net, 3, "//Dave", prompt=long))
        # Each waits in a thread of its own: the processes end with the threads that started them.
        with ThreadPoolExecutor(len(clients)) as pool:
            cls.first, cls.same, cls.other, cls.too_long = pool.map(Client.live, clients)

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

    def test_the_result_can_be_fetched_by_anybody_later(self):
        task, made = self.first.report["task"], self.first.report["generation"]
        fetched = self.other.surety.run("task", "result", task)
        for field in ("text", "tokens", "prompt_tokens", "finish_reason"):
            self.assertEqual(fetched["generation"][field], made[field])

    def test_a_prompt_over_the_context_is_explained_and_costs_nothing(self):
        outcome = self.too_long.outcome
        self.assertEqual(outcome.code, NO_RESULT, outcome.stderr)
        self.assertIn(f"over the model's {GENERATOR_CONTEXT}", outcome.stderr[outcome.stderr.find("error:") :])
        self.assertFalse(self.too_long.out.exists())
        account = self.too_long.surety.run("account", "show")["address"]
        self.assertEqual(self.net.chain.account(account)["held"], 0)


class ProviderKilledMidGeneration(unittest.TestCase):
    """It has told its first token, and no more."""

    def test_it_comes_back_starts_over_and_is_paid(self):
        net = support.devnet()
        provider = net.providers[2]
        support.restart(provider, env={"SURETY_CRASH_AT": "mid-generation"})
        net.supervisor.forget(provider.process)
        life = support.Life(net, "generation-crash", args=[*net.generation_args(), "--follow"])
        self.assertTrue(provider.process.wait(support.LIFE_SECONDS), "it was to abort")
        self.assertEqual(provider.process.returncode(), -signal.SIGABRT, provider.process.tail())
        net.start_provider(provider)

        view = life.wait_for_state("Settled", "Failed")
        self.assertEqual(view["state"]["name"], "Settled")
        self.assertEqual(set(support.paid(view)), {provider.stash for provider in net.providers})
        self.assertEqual(life.finish(), 0, life.process.tail())
        self.assertTrue(life.out.exists())


if __name__ == "__main__":
    unittest.main()
