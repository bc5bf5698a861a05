"""The gateway as OpenAI's own clients see it, on a network of its own: batches are tasks that providers are paid for on
the chain, once, although the gateway is killed in the middle of them.

`test_7_calls` has the same network, where both are run by one process.
"""

import atexit
import functools
import json
import os
import subprocess
import sys
import unittest

import support
from devnet_lib import gateway, openai_client, wait
from devnet_lib.console import Silent
from devnet_lib.devnet import GENERATOR, MODEL, PROMPT, Devnet
from devnet_lib.folders import new_run_dir, remove_data
from devnet_lib.ports import Ports

# Beside the other networks of these tests; with more, its ports would be among those that connections are given.
PORTS = Ports(1350)
# A batch's tasks live side by side. One that waits for its commit window lives 90 s longer than others.
BATCH_SECONDS = support.LIFE_SECONDS
JAVASCRIPT_SECONDS = 600
LINES = ["The whale is white.", "The sea is calm.", "A white whale was seen."]
WIDTH, MAX_TOKENS = 384, 16
SURE = 10**12
KEYS = {"rich": "50 SURE", "poor": "1 planck"}


@functools.cache
def official():
    """The official client."""
    # First of all: what it needs may be older elsewhere.
    sys.path.insert(0, str(openai_client.packages()))
    import openai

    return openai


@functools.cache
def network():
    """The network, stopped when Python ends."""
    run_dir = new_run_dir()
    net = Devnet(run_dir, Silent(), ports=PORTS, databases=support.scratch())
    atexit.register(remove_data, run_dir)
    atexit.register(net.stop)
    try:
        net.up()
    except BaseException:
        net.stop()
        raise
    return net


class Door(gateway.Gateway):
    """A gateway with keys of its own."""

    def __init__(self, name, uri, place, keys):
        super().__init__(network(), name, uri, place)
        terms = ("--requests-per-minute", 1000, "--label")
        self.keys = {label: self.create_key(cap, *terms, label)["key"] for label, cap in keys.items()}

    def forget(self):
        """It has ended, or is about to."""
        self.net.supervisor.forget(self.process)

    def client(self, label):
        """The official client, with one of the keys."""
        # A proxy of this machine knows nothing of it.
        http = official().DefaultHttpxClient(trust_env=False)
        return official().OpenAI(base_url=self.url, api_key=self.keys[label], max_retries=0, http_client=http)

    def read(self, path, key=None):
        """What is at a path of its address, as text."""
        return super().read(path, key or self.keys["rich"])

    def receipt(self, name, key=None):
        """What stands behind an answer."""
        return super().receipt(name, key or self.keys["rich"])

    def javascript(self, script, label="rich", **env):
        """Runs the tests of the official client for JavaScript. Returns how that ended."""
        env = {"SURETY_GATEWAY": self.url, "SURETY_API_KEY": self.keys[label], **env}
        options = {"cwd": support.REPO / "tests/js", "env": {**os.environ, **env}, "capture_output": True, "text": True}
        argv = ["npm", "run", "--silent", script]
        return subprocess.run(argv, timeout=JAVASCRIPT_SECONDS, check=False, **options)

    def listed(self):
        """Its keys by their labels, and what each has spent."""
        return {key["label"]: key for key in self.surety.run("gateway", "keys", "list")}


class Gateway(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.openai, cls.net = official(), network()
        # Nobody else's while the network runs.
        cls.door = Door("gateway", "//Two", 0, KEYS)
        cls.door.start()
        cls.addClassCleanup(cls.end)
        cls.rich, cls.poor = (cls.door.client(label) for label in KEYS)
        cls.begin_batches()
        # By now its tasks are being posted, or were.
        cls.door.forget()
        cls.door.process.kill()
        cls.door.start()
        cls.done = {name: cls.end_of(batch) for name, batch in cls.batches.items()}

    @classmethod
    def end(cls):
        """Whoever comes after it has the machine for itself."""
        cls.door.forget()
        cls.door.process.stop()

    @classmethod
    def batch(cls, client, endpoint, bodies):
        """Uploads requests, and has them computed."""
        lines = [
            json.dumps({"custom_id": f"r{place}", "method": "POST", "url": endpoint, "body": body})
            for place, body in enumerate(bodies)
        ]
        file = client.files.create(file=("requests.jsonl", "\n".join(lines).encode()), purpose="batch")
        return client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")

    @classmethod
    def begin_batches(cls):
        embed = [{"model": MODEL, "input": line} for line in LINES]
        generate = {"model": GENERATOR, "prompt": PROMPT, "max_tokens": MAX_TOKENS, "seed": 7}
        cls.batches = {
            "vectors": cls.batch(cls.rich, "/v1/embeddings", embed),
            "text": cls.batch(cls.rich, "/v1/completions", [generate]),
        }
        for batch in cls.batches.values():
            cls.until(cls.rich, batch, "in_progress")

    @classmethod
    def until(cls, client, batch, *states, seconds=support.SOON_SECONDS):
        def reached():
            found = client.batches.retrieve(batch.id)
            return found if found.status in states else None

        return wait.until(f"{batch.id} to be {' or '.join(states)}", reached, seconds, cls.net.supervisor.check)

    @classmethod
    def end_of(cls, batch):
        return cls.until(cls.rich, batch, "completed", "failed", "expired", seconds=BATCH_SECONDS)

    def answers(self, name):
        """The lines of a batch's output, by the names of its requests."""
        batch = self.done[name]
        self.assertEqual(batch.status, "completed", batch)
        lines = [json.loads(line) for line in self.rich.files.content(batch.output_file_id).text.splitlines()]
        return {line["custom_id"]: line["response"] for line in lines}

    def test_models_on_the_chain_are_listed(self):
        models = {model.id for model in self.rich.models.list()}
        self.assertLessEqual({MODEL, GENERATOR}, models)
        self.assertEqual(self.rich.models.retrieve(MODEL).id, MODEL)

    def test_a_batch_of_embeddings_has_a_vector_for_each_line(self):
        answers = self.answers("vectors")
        vectors = [answers[f"r{place}"]["body"]["data"][0]["embedding"] for place in range(len(LINES))]
        self.assertEqual({len(vector) for vector in vectors}, {WIDTH})
        counts = self.done["vectors"].request_counts
        self.assertEqual((counts.total, counts.completed, counts.failed), (len(LINES), len(LINES), 0))
        # What was said of whales is nearer to itself than to the sea.
        nearness = lambda a, b: sum(x * y for x, y in zip(vectors[a], vectors[b], strict=True))  # noqa: E731
        self.assertGreater(nearness(0, 2), nearness(0, 1))

    def test_a_batch_of_prompts_is_answered(self):
        answer = self.answers("text")["r0"]["body"]
        self.assertTrue(answer["choices"][0]["text"])
        self.assertLessEqual(answer["usage"]["completion_tokens"], MAX_TOKENS)

    def test_each_task_is_on_the_chain_once_and_its_providers_are_paid_what_the_receipt_says(self):
        # The network is this test's own.
        self.assertEqual(self.net.chain.next_task(), 2)
        spent, tasks = 0, set()
        for name in self.batches:
            receipts = [self.door.receipt(answer["request_id"]) for answer in self.answers(name).values()]
            # Lines of one task have one receipt.
            self.assertEqual({receipt["id"] for receipt in receipts}, {receipts[0]["id"]})
            receipt = receipts[0]
            view = self.net.chain.task(receipt["task"])
            self.assertEqual(view["state"]["name"], "Settled")
            told = {payment["provider"]: int(payment["price"]) for payment in receipt["receipt"]["payments"]}
            self.assertEqual(told, support.paid(view))
            self.assertEqual(set(told), {provider.stash for provider in self.net.providers})
            paid = sum(told.values()) + view["state"]["fee"]
            self.assertEqual(int(receipt["spent"]), paid)
            spent += paid
            tasks.add(receipt["task"])
        self.assertEqual(tasks, {0, 1})
        rich = self.door.listed()["rich"]
        self.assertEqual((int(rich["spent"]), int(rich["reserved"])), (spent, 0))
        self.assertLess(spent, 50 * SURE)

    def test_a_key_spends_no_more_than_its_cap(self):
        batch = self.batch(self.poor, "/v1/embeddings", [{"model": MODEL, "input": LINES[0]}])
        failed = self.until(self.poor, batch, "failed")
        self.assertEqual([error.code for error in failed.errors.data], ["insufficient_quota"])
        with self.assertRaises(self.openai.NotFoundError):
            self.rich.batches.retrieve(batch.id)

    def test_a_model_that_is_not_there_is_said_to_be_none(self):
        batch = self.batch(self.rich, "/v1/embeddings", [{"model": "nobody", "input": "a"}])
        failed = self.until(self.rich, batch, "failed")
        self.assertEqual([error.code for error in failed.errors.data], ["model_not_found"])
        with self.assertRaises(self.openai.NotFoundError) as refused:
            self.rich.embeddings.create(model="nobody", input="a")
        self.assertEqual(refused.exception.code, "model_not_found")

    def test_nobody_answers_at_once_without_providers_that_do(self):
        with self.assertRaises(self.openai.InternalServerError) as refused:
            self.rich.embeddings.create(model=MODEL, input=LINES[0])
        self.assertEqual((refused.exception.status_code, refused.exception.code), (503, "no_provider"))

    def test_a_key_that_is_revoked_opens_nothing_from_then_on_and_the_gateway_ends_when_it_is_asked_to(self):
        made = self.door.create_key("1 SURE")
        client = self.rich.with_options(api_key=made["key"])
        self.assertTrue(client.models.list().data)
        self.door.surety.run("gateway", "keys", "revoke", made["id"])
        with self.assertRaises(self.openai.AuthenticationError):
            client.models.list()
        process = self.door.process
        self.door.forget()
        process.stop()
        self.assertEqual(process.returncode(), 0, process.tail())
        self.door.start()

    def test_the_official_client_for_javascript_sees_the_same(self):
        done = self.door.javascript("test:batches", SURETY_BATCH=self.done["vectors"].id)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("skipped 0", done.stdout)

    def test_it_describes_itself_to_whoever_asks(self):
        api = json.loads(self.door.read("/openapi.json"))
        self.assertLessEqual({"/v1/batches", "/v1/embeddings", "/v1/receipts/{id}"}, set(api["paths"]))

    def test_whoever_has_no_key_is_refused_and_files_can_be_deleted(self):
        stranger = self.rich.with_options(api_key="sk-surety-00")
        with self.assertRaises(self.openai.AuthenticationError):
            stranger.models.list()
        file = self.rich.files.create(file=("requests.jsonl", b"{}\n"), purpose="batch")
        self.assertIn(file.id, [listed.id for listed in self.rich.files.list(purpose="batch")])
        self.assertTrue(self.rich.files.delete(file.id).deleted)
        with self.assertRaises(self.openai.NotFoundError):
            self.rich.files.retrieve(file.id)


if __name__ == "__main__":
    unittest.main()
