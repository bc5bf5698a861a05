"""Somebody cheats over payment channels, is found out by the chain or by whoever pays, and nobody else loses.

All kinds on one network, side by side: each has a payer of its own.
"""

import unittest

import support
from devnet_lib import call_cheats
from devnet_lib.console import Silent
from devnet_lib.folders import new_run_dir, remove_data
from devnet_lib.ports import Ports

PORT_OFFSET = 900
# In plancks, by its token.
UNIT_PRICE, CHUNK_UNITS_MAX = 10**9, 64
# What a gateway pays for ahead.
CHUNK_UNITS = 16
DEPOSIT = call_cheats.DEPOSIT_SURE * 10**12


class CallCheats(unittest.TestCase):
    """As `scripts/devnet --cheat over-channels` shows them."""

    @classmethod
    def setUpClass(cls):
        kinds, run_dir, console = list(call_cheats.CHEATS), new_run_dir(), Silent()
        net = call_cheats.network(kinds, run_dir, console, ports=Ports(PORT_OFFSET), databases=support.scratch())
        try:
            net.up()
            cls.found = call_cheats.run(net, kinds, console)
        finally:
            net.stop()
            remove_data(run_dir)

    def of(self, kind):
        """What came of a kind, which was as it must be."""
        found = next(one for one in self.found["cheats"] if one["cheat"] == kind)
        self.assertEqual(found["problems"], [], self.found)
        return found

    def test_a_wrong_token_is_found_by_a_point_and_judged_by_the_runtime(self):
        found = self.of("wrong-token")
        self.assertTrue(found["disputed_cell"])
        self.assertGreater(found["culprit_lost"], 0)
        self.assertEqual(found["paid"], 0)

    def test_a_receipt_that_is_right_is_stood_by_and_paid(self):
        found = self.of("false-dispute")
        self.assertEqual((found["culprit_lost"], found["faults"]), (0, []))
        self.assertGreater(found["bond_forfeited"], 0)

    def test_a_receipt_that_is_in_no_batch_is_demanded_and_its_provider_convicted(self):
        self.assertEqual(self.of("omitted-receipt")["faults"], ["WithheldData"])

    def test_who_signs_two_things_is_reported_by_whoever_pays(self):
        self.assertEqual(self.of("double-receipt")["faults"], ["Equivocation"])

    def test_who_says_one_thing_and_batches_another_has_what_it_said_demanded(self):
        self.assertEqual(self.of("says-other")["faults"], ["WithheldData"])

    def test_who_breaks_off_has_what_was_heard_demanded_and_its_payer_has_the_rest_back(self):
        found = self.of("breaks-off")
        self.assertEqual(found["faults"], ["WithheldData"])
        # No receipt was ever told: what was demanded has no end.
        self.assertEqual(len(found["heard"]), 1, found)
        self.assertGreater(found["heard"][0], 0)
        self.assertEqual(found["returned"] + found["paid"], DEPOSIT)
        self.assertLessEqual(found["paid"], found["heard"][0] + UNIT_PRICE * CHUNK_UNITS)

    def test_no_voucher_is_good_elsewhere(self):
        found = self.of("voucher-replay")
        self.assertEqual(len(found["tried"]), call_cheats.REPLAYS)
        self.assertLessEqual(found["paid"], found["receipts"])

    def test_a_channel_that_is_closed_early_pays_what_was_earned(self):
        found = self.of("early-close")
        self.assertGreater(found["paid"], 0)
        self.assertEqual(found["paid"], found["receipts"])

    def test_who_pays_for_no_more_is_told_no_more(self):
        found = self.of("unpaid-last-chunk")
        self.assertGreater(found["paid"], 0)
        self.assertLessEqual(found["receipts"] - found["paid"], UNIT_PRICE * CHUNK_UNITS_MAX)


if __name__ == "__main__":
    unittest.main()
