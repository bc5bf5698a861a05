"""Answers at once, over payment channels, as OpenAI's own clients see them: two providers stand behind their offers,
and a gateway pays them.

On the network of `test_6_gateway`, which comes before it where one process runs both: there nobody answers at once.
"""

import array
import asyncio
import base64
import re
import unittest
from concurrent.futures import ThreadPoolExecutor

import support
from devnet_lib import gateway, wait
from devnet_lib.devnet import GENERATOR, MODEL, PROMPT
from test_6_gateway import BATCH_SECONDS, LINES, SURE, WIDTH, Door, network, official

KEYS = {"rich": "20 SURE", "poor": "1 planck"}
OFFERED = {MODEL: "embed", GENERATOR: "generate"}
UNIT_PRICE, PLACES, CAP = "0.0001 SURE", 8, "10 SURE"
SELLERS = 2
OFFER_SECONDS = support.SOON_SECONDS
MESSAGES = [{"role": "user", "content": "Where is the whale?"}]
CHAT = {"model": GENERATOR, "messages": MESSAGES, "max_tokens": 24, "seed": 7}
AT_ONCE = 6


def sell(provider):
    """Has a provider stand behind both models, and sell them over channels."""
    gateway.sell(network(), provider, OFFERED, cap=CAP, price=UNIT_PRICE, places=PLACES)


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.openai, cls.net = official(), network()
        with ThreadPoolExecutor(SELLERS) as pool:
            list(pool.map(sell, cls.net.providers[:SELLERS]))
        cls.door = Door("calls", "//Alice//stash", 1, KEYS)
        cls.door.start("--deposit", "2 SURE", "--budget", "15 SURE")
        cls.addClassCleanup(cls.end)
        cls.rich, cls.poor = (cls.door.client(label) for label in KEYS)
        wait.until("all models to be offered at once", cls.are_offered, OFFER_SECONDS, cls.net.supervisor.check)
        # The first opens a channel, which is good for calls once it is final.
        cls.first = wait.until("a first answer", cls.answered, OFFER_SECONDS, cls.net.supervisor.check)

    @classmethod
    def end(cls):
        """Whoever comes after it has the machine for itself."""
        cls.door.forget()
        cls.door.process.stop()

    @classmethod
    def are_offered(cls):
        prices = {model.id: model.surety["unit_price_max"] for model in cls.rich.models.list()}
        return all(prices.get(model) for model in OFFERED)

    @classmethod
    def answered(cls):
        try:
            return cls.rich.chat.completions.create(**CHAT)
        except cls.openai.InternalServerError:
            return None

    def metric(self, name):
        """What the gateway counts."""
        found = re.search(rf"^surety_gateway_{name} (\d+)$", self.door.read("/metrics"), re.MULTILINE)
        return int(found[1])

    def spent(self):
        """What the key has spent, once all of its calls are over: those that hung up, too."""

        def over():
            rich = self.door.listed()["rich"]
            return rich if int(rich["reserved"]) == 0 else None

        check = self.net.supervisor.check
        return int(wait.until("all calls to be over", over, support.SOON_SECONDS, check)["spent"])

    def proof(self, name):
        """What shows that a receipt is on the chain; nothing while no batch has it."""
        return self.door.proven(name, self.door.keys["rich"])

    def channels(self):
        """Numbers of the gateway's channels."""
        return {channel["channel"] for channel in self.door.surety.run("channel", "list")}

    def assert_ends_early(self, name):
        """A call whose client has hung up is over soon, has cost a part, and keeps no place."""
        over = lambda: (call := self.door.receipt(name))["state"] != "open" and call  # noqa: E731
        call = wait.until("the call to be over", over, support.SOON_SECONDS, self.net.supervisor.check)
        self.assertEqual(call["state"], "closed")
        self.assertLess(int(call["spent"]), int(call["reserved"]))
        idle = lambda: self.metric("calls_open") == 0  # noqa: E731
        wait.until("its place to be free again", idle, support.SOON_SECONDS, self.net.supervisor.check)

    def test_models_are_listed_with_their_prices_and_known_by_their_names(self):
        listed = {model.id: model for model in self.rich.models.list()}
        for name in OFFERED:
            found = self.rich.models.retrieve(name)
            self.assertEqual((found.id, found.surety), (name, listed[name].surety))
        with self.assertRaises(self.openai.NotFoundError) as refused:
            self.rich.models.retrieve("nobody")
        self.assertEqual(refused.exception.code, "model_not_found")

    def test_a_stream_says_what_the_whole_answer_says(self):
        stream = self.rich.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True})
        parts = list(stream)
        text = "".join(choice.delta.content or "" for part in parts for choice in part.choices)
        self.assertEqual(text, self.first.choices[0].message.content)
        self.assertEqual(parts[-1].usage, self.first.usage)
        self.assertEqual(parts[-2].choices[0].finish_reason, self.first.choices[0].finish_reason)

    def test_several_at_once_say_the_same_by_their_seed_and_all_are_paid(self):
        before, asked = self.spent(), {"model": GENERATOR, "prompt": PROMPT, "max_tokens": 16, "seed": 3}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(lambda _: self.rich.completions.create(**asked), range(AT_ONCE)))
        self.assertEqual(len({answer.choices[0].text for answer in answers}), 1)
        calls = [self.door.receipt(answer.surety["receipt"]) for answer in answers]
        self.assertEqual({call["state"] for call in calls}, {"closed"})
        self.assertEqual(self.spent() - before, sum(int(call["spent"]) for call in calls))
        units = {receipt["receipt"]["units"] for call in calls for receipt in call["receipts"]}
        self.assertEqual(units, {answers[0].usage.total_tokens})

    def test_a_continuation_streams_too_and_ends_before_what_it_is_to_stop_at(self):
        asked = {"model": GENERATOR, "prompt": PROMPT, "max_tokens": 16, "seed": 3}
        whole = self.rich.completions.create(**asked).choices[0]
        parts = list(self.rich.completions.create(**asked, stream=True))
        self.assertEqual("".join(choice.text for part in parts for choice in part.choices), whole.text)
        reasons = [choice.finish_reason for part in parts for choice in part.choices if choice.finish_reason]
        self.assertEqual(reasons, [whole.finish_reason])
        half = len(whole.text) // 2
        stop = whole.text[half : half + 3]
        stopped = self.rich.completions.create(**asked, stop=stop).choices[0]
        self.assertEqual((stopped.text, stopped.finish_reason), (whole.text[: whole.text.index(stop)], "stop"))

    def test_vectors_are_those_of_texts_and_the_same_whoever_computes_them(self):
        answers = [self.rich.embeddings.create(model=MODEL, input=LINES) for _ in range(2)]
        vectors = [one.embedding for one in answers[0].data]
        self.assertEqual({len(vector) for vector in vectors}, {WIDTH})
        self.assertEqual(vectors, [one.embedding for one in answers[1].data])
        nearness = lambda a, b: sum(x * y for x, y in zip(vectors[a], vectors[b], strict=True))  # noqa: E731
        self.assertGreater(nearness(0, 2), nearness(0, 1))

    def test_vectors_come_as_numbers_or_as_their_bytes(self):
        asked = {"model": MODEL, "input": LINES}
        numbers = self.rich.embeddings.create(**asked, encoding_format="float").data
        packed = self.rich.embeddings.create(**asked, encoding_format="base64").data
        for of, by in zip(numbers, packed, strict=True):
            self.assertEqual(array.array("f", of.embedding).tobytes(), base64.b64decode(by.embedding))

    def test_more_texts_than_one_request_of_a_channel_has_come_in_their_order(self):
        many = [f"{place} whales" for place in range(200)]
        data = self.rich.embeddings.create(model=MODEL, input=many).data
        self.assertEqual([one.index for one in data], list(range(len(many))))
        last = self.rich.embeddings.create(model=MODEL, input=many[-1]).data[0].embedding
        self.assertEqual(data[-1].embedding, last)

    def test_a_client_that_hangs_up_pays_for_a_part(self):
        asked = {**CHAT, "max_tokens": 200}
        stream = self.rich.chat.completions.create(**asked, stream=True)
        name = next(iter(stream)).surety["receipt"]
        stream.close()
        self.assert_ends_early(name)

    def test_a_task_of_the_asynchronous_client_that_is_cancelled_pays_for_a_part(self):
        asked, begun = {**CHAT, "max_tokens": 200}, []

        async def read(client):
            async for part in await client.chat.completions.create(**asked, stream=True):
                begun.append(part.surety["receipt"])

        async def cancelled():
            http = self.openai.DefaultAsyncHttpxClient(trust_env=False)
            options = {"base_url": self.door.url, "api_key": self.door.keys["rich"], "max_retries": 0}
            async with self.openai.AsyncOpenAI(**options, http_client=http) as client:
                reading = asyncio.create_task(read(client))
                while not begun and not reading.done():
                    await asyncio.sleep(0.01)
                reading.cancel()
                await asyncio.wait([reading])

        asyncio.run(cancelled())
        self.assert_ends_early(begun[0])

    def test_what_is_wrong_is_refused_before_anything_is_paid(self):
        before = self.spent()
        for error, param, asked in [
            (self.openai.BadRequestError, "tools", {"tools": [{"type": "function", "function": {"name": "f"}}]}),
            (self.openai.BadRequestError, "messages", {"messages": [{"role": "user", "content": "whale " * 2000}]}),
            (self.openai.BadRequestError, "max_tokens", {"max_tokens": 100_000}),
            (self.openai.NotFoundError, "model", {"model": "nobody"}),
        ]:
            with self.subTest(param), self.assertRaises(error) as refused:
                self.rich.chat.completions.create(**{**CHAT, **asked})
            self.assertEqual(refused.exception.param, param)
        with self.assertRaises(self.openai.RateLimitError) as refused:
            self.poor.chat.completions.create(**CHAT)
        self.assertEqual(refused.exception.code, "insufficient_quota")
        self.assertEqual(self.spent(), before)

    def test_whoever_has_no_key_or_asks_too_often_is_told_so(self):
        with self.assertRaises(self.openai.AuthenticationError) as refused:
            self.rich.with_options(api_key="sk-surety-00").chat.completions.create(**CHAT)
        self.assertEqual(refused.exception.code, "invalid_api_key")
        made = self.door.create_key("1 SURE", "--requests-per-minute", 1)
        slow = self.rich.with_options(api_key=made["key"])
        self.assertTrue(slow.embeddings.create(model=MODEL, input="a").data)
        with self.assertRaises(self.openai.RateLimitError) as refused:
            slow.chat.completions.create(**CHAT, stream=True)
        self.assertEqual(refused.exception.code, "rate_limit_exceeded")
        self.assertGreater(int(refused.exception.response.headers["retry-after"]), 0)

    def test_channels_have_what_answers_cost_and_the_budget_is_kept(self):
        channels = self.door.surety.run("channel", "list")
        self.assertTrue(channels)
        self.assertLessEqual({channel["provider"] for channel in channels}, {one.stash for one in self.net.providers})
        self.assertLessEqual(sum(int(channel["deposit"]) for channel in channels), 15 * SURE)
        self.assertGreater(self.spent(), 0)

    def test_the_official_client_for_javascript_sees_the_same(self):
        done = self.door.javascript("test:calls")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("skipped 0", done.stdout)

    def test_a_receipt_is_proven_by_a_light_client_and_becomes_final_on_the_chain(self):
        name = self.first.surety["receipt"]
        proof = wait.until(f"a proof of {name}", lambda: self.proof(name), BATCH_SECONDS, self.net.supervisor.check)
        self.assertEqual(proof["proofs"][0]["proof"]["says"]["units"], self.first.usage.total_tokens)
        answer = self.net.run_dir / "answer.json"
        answer.write_text(self.first.model_dump_json())
        done = self.door.javascript("test:proof", SURETY_WS=self.net.ws, SURETY_ANSWER=str(answer))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("skipped 0", done.stdout)
        verdicts = []

        def final():
            call = self.door.receipt(name)
            if call["verdict"] not in verdicts:
                verdicts.append(call["verdict"])
            return call["verdict"] == "final" and call

        call = wait.until(f"{name} to be final", final, BATCH_SECONDS, self.net.supervisor.check)
        # In the order in which that goes, whatever of it was seen.
        order = ["unbatched", "challengeable", "final"]
        self.assertEqual(verdicts, [verdict for verdict in order if verdict in verdicts])
        self.assertEqual(int(call["spent"]), sum(int(one["receipt"]["price"]) for one in call["receipts"]))

    def test_killed_it_goes_on_with_its_channels_and_counts_what_was_signed_for_what_was_open(self):
        before, name = self.channels(), self.first.surety["receipt"]
        proven = wait.until(f"a proof of {name}", lambda: self.proof(name), BATCH_SECONDS, self.net.supervisor.check)
        stream = self.rich.chat.completions.create(**{**CHAT, "max_tokens": 200}, stream=True)
        killed = next(iter(stream)).surety["receipt"]
        self.door.forget()
        self.door.process.kill()
        stream.close()
        self.door.start("--deposit", "2 SURE", "--budget", "15 SURE")
        call = self.door.receipt(killed)
        signed = sum(int(one["receipt"]["price"]) for one in call["receipts"])
        self.assertEqual(call["state"], "interrupted")
        # What was said, and a chunk ahead of it: far less than all that was asked for.
        self.assertGreater(signed, 0)
        self.assertLessEqual(signed, int(call["spent"]))
        self.assertLess(int(call["spent"]), int(call["reserved"]))
        self.assertEqual(int(self.door.listed()["rich"]["reserved"]), 0)
        again = wait.until("an answer", self.answered, OFFER_SECONDS, self.net.supervisor.check)
        self.assertEqual(again.choices[0].message.content, self.first.choices[0].message.content)
        self.assertLessEqual(before, self.channels())
        # What was shown before is kept.
        self.assertEqual(self.proof(name), proven)


if __name__ == "__main__":
    unittest.main()
