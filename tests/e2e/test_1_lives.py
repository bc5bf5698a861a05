"""Tasks from post to paid, on a chain of three validators with three providers."""

import signal
import unittest
import urllib.request

import support


class HappyLife(unittest.TestCase):
    """Nothing goes wrong."""

    @classmethod
    def setUpClass(cls):
        cls.net, cls.report = support.devnet(), support.happy_life()

    def test_the_task_is_settled_and_three_providers_are_paid(self):
        report = self.report
        self.assertEqual(report["state"], "Settled")
        self.assertEqual(len(report["providers"]), 3)
        self.assertEqual(len({provider["account"] for provider in report["providers"]}), 3)
        for provider in report["providers"]:
            self.assertGreater(provider["paid"], 0)
            self.assertNotEqual(provider["account"], provider["agent"])

    def test_no_money_is_left_in_escrow_or_lost(self):
        report = self.report
        self.assertEqual(report["escrow_left"], 0)
        out = sum(provider["paid"] for provider in report["providers"]) + report["fee"] + report["client_refund"]
        self.assertEqual(out, report["cap"])
        self.assertEqual(self.net.chain.account(report["client"])["held"], 20 * 10**12, "only two models' deposits")

    def test_every_validator_has_the_settlement_in_a_final_block(self):
        report = self.report
        self.assertGreaterEqual(report["finalized_block"], report["settled_block"])
        for number in (report["settled_block"], report["finalized_block"]):
            for validator in self.net.validators.all:
                self.net.validators.wait_for_finality(number, through=validator.index)
            hashes = {validator.chain.block_hash(number) for validator in self.net.validators.all}
            self.assertEqual(len(hashes), 1)

    def test_the_vectors_are_what_was_agreed_on_and_mean_something(self):
        from devnet_lib.scale import content_hash

        report = self.report
        blob = (self.net.run_dir / "vectors.safetensors").read_bytes()
        self.assertEqual("0x" + content_hash(blob).hex(), report["output_hash"])
        self.assertEqual(report["units"], 80)
        self.assertGreaterEqual(report["paraphrases_found"], 0.9 * report["paraphrases"])

    def test_auditors_have_their_part_of_what_providers_earned(self):
        received = {row["worker"]: row["received"] for row in self.report["received"]}
        providers = sum(amount for worker, amount in received.items() if worker.startswith("provider"))
        verifiers = sum(amount for worker, amount in received.items() if worker.startswith("verifier"))
        earned = sum(provider["paid"] for provider in self.report["providers"])
        self.assertEqual(providers + verifiers, earned)
        # Newcomers are audited so closely that nobody escapes it.
        self.assertGreater(verifiers, 0)

    def test_times_are_reported(self):
        report = self.report
        self.assertLess(0, report["seconds_post_to_result"])
        self.assertLess(report["seconds_post_to_result"], report["seconds_post_to_settled"])
        self.assertAlmostEqual(report["seconds_per_block"], 2, delta=1)
        names = {row["process"] for row in report["memory"]}
        workers = [f"{role}-{number}" for role in ("provider", "verifier") for number in (1, 2, 3)]
        self.assertEqual(names, {*workers, *(validator.name for validator in self.net.validators.all)})

    def test_validators_answer_health_and_prometheus(self):
        for validator in self.net.validators.all:
            self.assertEqual(validator.chain.rpc.get("/health")["isSyncing"], False)
            url = f"http://127.0.0.1:{self.net.ports.prometheus(validator.index)}/metrics"
            with urllib.request.urlopen(url, timeout=10) as answer:
                self.assertIn("substrate_block_height", answer.read().decode())

    def test_every_secret_is_readable_by_its_owner_only(self):
        keys = [*self.net.run_dir.rglob("*.key"), *self.net.validators.home.rglob("*.key")]
        self.assertGreater(len(keys), 10)
        for path in keys:
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)


class WorkerKilledBetweenJournalAndExtrinsic(unittest.TestCase):
    """The result is in the journal, the commitment is not on its way yet."""

    def test_it_comes_back_commits_once_and_is_paid(self):
        support.happy_life()
        net = support.devnet()
        provider = net.providers[2]
        support.restart(provider, env={"SURETY_CRASH_AT": "after-journal-commit"})
        net.supervisor.forget(provider.process)
        first = net.chain.finalised_number()

        life = support.Life(net, "client-crash")
        self.assertTrue(provider.process.wait(support.LIFE_SECONDS), "it was to abort")
        self.assertEqual(provider.process.returncode(), -signal.SIGABRT, provider.process.tail())
        best = net.chain.best_number()
        self.assertEqual(net.chain.commits(life.task, provider.agent, first, best), [])
        net.start_provider(provider)

        view = life.wait_for_state("Settled", "Failed")
        self.assertEqual(view["state"]["name"], "Settled")
        self.assertEqual(set(support.paid(view)), {provider.stash for provider in net.providers})
        commits = net.chain.commits(life.task, provider.agent, first, net.chain.finalised_number())
        self.assertEqual(len(commits), 1, "one commitment, in one extrinsic")
        self.assertEqual(support.money_out(view), view["cap"])
        self.assertEqual(life.finish(), 0, life.process.tail())


if __name__ == "__main__":
    unittest.main()
