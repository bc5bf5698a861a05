"""A short `scripts/bench chaos`: tasks are posted one after the other while a validator is paused for longer than the
windows of a task, a worker is killed, and workers cannot ask their nodes. Nobody honest loses anything.

The long one, with every kind of fault, is run by hand.
"""

import os
import unittest

import support  # noqa: F401  Finds the scripts.
from bench_lib import chaos
from bench_lib.chaos import account
from devnet_lib.console import Console

# Tests do not fail by chance: the same faults every time, unless somebody wants others.
SEED = int(os.environ.get("SURETY_CHAOS_SEED", 12))


class Chaos(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = chaos.live(dict(chaos.SHORT), SEED, chaos.SHORT_KINDS, {}, Console())

    def test_nobody_honest_lost_anything_and_every_task_ended(self):
        lost = {name: self.found[name] for name in account.MUST_BE_ZERO}
        self.assertEqual(lost, dict.fromkeys(account.MUST_BE_ZERO, 0), self.found["cases"])

    def test_every_fault_had_its_turn_and_no_worker_ended_by_itself(self):
        happened = {kind for kind, count in self.found["faults"].items() if count}
        self.assertEqual(happened, {kind.kind for kind in chaos.SHORT_KINDS})
        self.assertEqual(self.found["workers_crashed"], [])

    def test_there_was_work_meanwhile_and_most_of_it_was_settled(self):
        self.assertGreaterEqual(self.found["tasks"], chaos.SHORT["tasks"])
        self.assertGreater(self.found["settled"], self.found["tasks"] // 2, self.found["failed_reasons"])
        self.assertGreater(self.found["results_computed"], 0)


if __name__ == "__main__":
    unittest.main()
