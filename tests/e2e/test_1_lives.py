"""Tasks from post to paid, on a chain of three validators with three providers."""

import functools
import os
import re
import shutil
import signal
import unittest
import urllib.request

import support
from devnet_lib.devnet import MODEL
from devnet_lib.folders import CHEAT, binaries
from devnet_lib.scale import content_hash

CRASHING = 1


def installed():
    """Where the program of the provider that is upgraded is."""
    return support.run_dir() / "installed" / "surety"


def install(program):
    """Puts a program there as scripts/install does, whether or not the one before it runs."""
    folder = installed().parent
    folder.mkdir(exist_ok=True)
    staged = folder / ".surety.new"
    shutil.copy(program, staged)
    os.replace(staged, installed())


def running(process):
    """The program of a process: its file, and whether that is no longer what is installed."""
    return os.readlink(f"/proc/{process.pid}/exe")


@functools.cache
def begin():
    """Posts the tasks. The spare provider of one is killed between journal and extrinsic, by when another program is
    installed than the one that it runs.
    """
    support.begin_happy_life()
    install(binaries(CHEAT) / CHEAT)
    spare = support.start_spare(CRASHING, MODEL, "--crash-at", "after-journal-commit", program=installed())
    install(binaries() / "surety")
    old = running(spare.process)
    support.devnet().supervisor.forget(spare.process)
    first = support.devnet().chain.finalized_number()
    args = support.devnet().task_args(text=support.short_text(), **support.SPARE_TASK)
    return support.Life("client-crash", "//Bob", 8, args), spare, first, old


@functools.cache
def go_on():
    """Starts the spare provider again once it was killed. Returns its process, what it had committed by then, what
    there was to say, and the program that it is since.
    """
    net, (life, spare, first, _) = support.devnet(), begin()
    process, told = support.end_of(spare, life)
    committed = net.chain.commits(life.task, spare.agent, first, net.chain.best_number())
    if process.returncode() is not None:
        support.start_spare(CRASHING, MODEL, program=installed())
    return process, committed, told, running(spare.process)


def setUpModule():
    begin()
    go_on()


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
        report = self.report
        blob = (self.net.run_dir / "vectors.safetensors").read_bytes()
        self.assertEqual("0x" + content_hash(blob).hex(), report["output_hash"])
        self.assertEqual(report["units"], 80)
        self.assertGreaterEqual(report["paraphrases_found"], 0.9 * report["paraphrases"])

    def test_auditors_have_their_part_of_what_providers_earned(self):
        block, seen = self.report["settled_block"], self.report["settlement"]
        received = seen["received"]
        verifiers = sum(received[verifier.stash] for verifier in self.net.verifiers)
        # Other tasks may be settled in the same block.
        over = [view for view in seen["tasks"] if view and view["state"].get("at") == block]
        paid = sum(sum(support.paid(view).values()) for view in over if "payments" in view["state"])
        # Providers get something for work beyond its price, which is minted.
        minted = sum(of["minted"] for pallet, name, of in seen["events"] if (pallet, name) == ("Emission", "WorkPaid"))
        self.assertEqual(sum(received.values()), paid + minted)
        # Newcomers are audited so closely that nobody escapes it.
        self.assertGreater(verifiers, 0)

    def test_times_are_reported(self):
        report = self.report
        self.assertLess(0, report["seconds_post_to_result"])
        self.assertLess(report["seconds_post_to_result"], report["seconds_post_to_settled"])
        # Slots of 2 s; a machine that is busy, or was paused, misses some.
        self.assertTrue(1.9 < report["seconds_per_block"] < 20, report["seconds_per_block"])
        names = {row["process"] for row in report["memory"]}
        workers = [f"{role}-{number}" for role in ("provider", "verifier") for number in (1, 2, 3)]
        # And the clients and spare providers of other tests.
        self.assertLessEqual({*workers, *(validator.name for validator in self.net.validators.all)}, names)

    def test_validators_answer_health_and_prometheus(self):
        for validator in self.net.validators.all:
            # One that has missed some blocks fetches them.
            synced = lambda rpc=validator.chain.rpc: not rpc.get("/health")["isSyncing"]  # noqa: E731
            support.wait.until(f"{validator.name} to be synced", synced, support.SOON_SECONDS)
            url = f"http://127.0.0.1:{self.net.ports.prometheus(validator.index)}/metrics"
            with urllib.request.urlopen(url, timeout=60) as answer:
                self.assertIn("substrate_block_height", answer.read().decode())

    def test_every_secret_is_readable_by_its_owner_only(self):
        keys = [*self.net.run_dir.rglob("*.key"), *self.net.validators.home.rglob("*.key")]
        self.assertGreater(len(keys), 10)
        for path in keys:
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)


def aborting(process):
    """The line of a worker's log in which it says what it dies of."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", process.log.read_text())
    return next((line for line in text.splitlines() if "aborting" in line), "it did not abort")


class WorkerKilledBetweenJournalAndExtrinsic(unittest.TestCase):
    """The result is in the journal, the commitment is not on its way yet. What comes back is another program."""

    def test_its_program_was_replaced_while_it_ran(self):
        old, new = begin()[3], go_on()[3]
        self.assertEqual(old, f"{installed()} (deleted)")
        self.assertEqual(new, str(installed()))

    def test_it_comes_back_commits_once_and_is_paid(self):
        net, (life, provider, first, _) = support.devnet(), begin()
        process, committed, told, _ = go_on()
        self.assertEqual(process.returncode(), -signal.SIGABRT, told)
        self.assertIn(f"task={life.task}", aborting(process), told)
        self.assertEqual(committed, [], told)

        view = life.wait_for_state("Settled", "Failed")
        told = life.told(provider, *net.providers)
        self.assertEqual(view["state"]["name"], "Settled", told)
        self.assertEqual(set(support.paid(view)), support.with_spare(provider), told)
        commits = net.chain.commits(life.task, provider.agent, first, net.chain.finalized_number())
        self.assertEqual(len(commits), 1, f"one commitment, in one extrinsic: {commits}\n{told}")
        self.assertEqual(support.money_out(view), view["cap"], told)
        self.assertEqual(life.finish(), 0, told)
        support.end_spare(provider)


if __name__ == "__main__":
    unittest.main()
