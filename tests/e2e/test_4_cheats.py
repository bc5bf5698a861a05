"""Somebody cheats, is found out by the chain's own means, and loses stake; nobody else does.

Each kind has a network of its own, since the one who cheated is in jail afterwards.
"""

import tempfile
import unittest
from pathlib import Path

import support
from devnet_lib import cheats
from devnet_lib.console import Silent
from devnet_lib.every_cheat import PORTS_APART
from devnet_lib.folders import new_run_dir, remove_data
from devnet_lib.ports import Ports

# Beside the devnet of the others; those of the kinds are as far apart as `scripts/devnet --cheat all` has them.
PORT_OFFSET = 610


def life(kind):
    """The report of a network in which somebody does `kind`."""
    cheat = cheats.CHEATS[kind]
    run_dir = new_run_dir()
    net = cheat.network(
        run_dir,
        Silent(),
        ports=Ports(PORT_OFFSET + PORTS_APART * list(cheats.CHEATS).index(kind)),
        databases=support.scratch(),
    )
    with tempfile.TemporaryDirectory() as folder:
        try:
            net.up()
            return cheats.run(net, cheat, Path(folder) / "vectors.safetensors")
        finally:
            net.stop()
            remove_data(run_dir)


class Cheats(unittest.TestCase):
    """As `scripts/devnet --cheat KIND` shows them."""

    def check(self, kind):
        found = life(kind)
        self.assertEqual(found["problems"], [], found)
        return found

    def test_an_altered_activation_is_judged_by_the_runtime(self):
        found = self.check("altered-activation")
        judged = [story for story in found["disputes"] if story["cell"] and story["reason"]]
        self.assertTrue(judged, found["disputes"])
        self.assertIn("activation function", found["disputed_cell"]["name"])
        self.assertEqual(found["state"], "Settled")

    def test_an_altered_output_is_judged_by_the_runtime(self):
        found = self.check("altered-output")
        self.assertTrue(found["disputed_cell"])
        self.assertNotIn(found["culprit"], found["paid"])

    def test_a_token_read_wrong_is_judged_by_the_runtime(self):
        found = self.check("altered-token")
        self.assertIn("the sum of embeddings", found["disputed_cell"]["name"])
        self.assertNotIn(found["culprit"], found["paid"])
        self.assertEqual(found["state"], "Settled")

    def test_a_smaller_model_is_found_out(self):
        found = self.check("model-swap")
        self.assertNotIn(found["culprit"], found["paid"])

    def test_a_copied_commitment_cannot_be_opened(self):
        found = self.check("copied-result")
        self.assertEqual(found["disputes"], [])
        self.assertNotIn(found["culprit"], found["paid"])

    def test_who_commits_and_does_not_reveal_is_slashed(self):
        found = self.check("commit-without-reveal")
        self.assertEqual(found["disputes"], [])
        self.assertNotIn(found["culprit"], found["paid"])

    def test_who_withholds_its_output_is_slashed(self):
        self.check("withheld-data")

    def test_an_output_that_is_withheld_in_a_dispute_loses_it_by_time(self):
        found = self.check("withheld-output")
        self.assertEqual(found["state"], "Settled")
        self.assertNotIn(found["culprit"], found["paid"])

    def test_who_serves_auditors_another_output_is_reported(self):
        found = self.check("two-faced")
        self.assertEqual(found["faults"], ["Equivocation"])
        self.assertEqual(found["state"], "Settled")

    def test_who_seals_and_opens_nothing_loses_what_stands_behind_it(self):
        found = self.check("abort")
        self.assertEqual([row["faults"] for row in found["culprits"]], [["NoReveal"], ["AuditNoShow"]])

    def test_a_crowd_in_all_places_keeps_out_nobody(self):
        found = self.check("crowding")
        self.assertTrue(found["disputed_cell"])
        self.assertEqual(found["state"], "Settled")

    def test_an_auditor_that_does_not_show_is_fined(self):
        found = self.check("lazy")
        self.assertEqual(found["faults"], ["AuditNoShow"])

    def test_a_false_challenge_costs_its_bond(self):
        found = self.check("false-challenge")
        self.assertEqual(found["state"], "Settled")
        # Stake is not at risk for a challenger: its bond is. What its agent has spent in all says less.
        self.assertEqual(found["culprit_lost"], 0)
        self.assertGreater(found["bond_forfeited"], 0)


if __name__ == "__main__":
    unittest.main()
