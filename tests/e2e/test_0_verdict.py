"""How `scripts/devnet` decides whether a run was as it must be; and how records are read that it knows no shape of.

No process is started: what the chain and the logs say is made up.
"""

import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import support  # noqa: F401  Finds the scripts.
from devnet_lib import audits, cheats, verdict
from devnet_lib.chain import QUINTILLION
from devnet_lib.errors import DevnetError
from devnet_lib.metadata import Metadata
from devnet_lib.scale import ss58_encode

PROVIDERS = ("provider-1", "provider-2", "provider-3")
VERIFIERS = ("verifier-1", "verifier-2")
# Where four points are on a line of 10^12 whose draw came to 32 bytes of 7.
DRAWN = [21_221_809_825, 179_763_912_443, 341_674_005_506, 402_475_811_409]


def worker(name, **changes):
    role, earned = name.split("-")[0], 5 if name in PROVIDERS else 0
    found = {"worker": name, "role": role, "stash": f"stash of {name}", "earned": earned, "stake_lost": 0}
    return found | {"told": [], "audited": [], "log": "nowhere"} | changes


def task(number=0, paid=PROVIDERS, state="Settled", redundancy=3, reason=None):
    paid = {f"stash of {name}": 7 for name in paid}
    return {"task": number, "state": state, "reason": reason, "redundancy": redundancy, "paid": paid}


def judged(tasks, changed=(), **options):
    changed = {found["worker"]: found for found in changed}
    workers = [changed.get(name, worker(name)) for name in (*PROVIDERS, *VERIFIERS)]
    return verdict.judge({"tasks": tasks, "workers": workers}, **options)


class Verdict(unittest.TestCase):
    def test_a_run_in_which_all_providers_are_paid_for_every_task_is_as_it_must_be(self):
        found = judged([task(0), task(1)])
        self.assertTrue(found["as_it_must_be"])
        self.assertEqual(verdict.problems(found), [])

    def test_a_settled_task_that_left_one_of_three_honest_providers_unpaid_is_not(self):
        said = ["WARN not on the chain task=1 kind=Commit error=another call of this signer is on its way"]
        found = judged([task(0), task(1, paid=PROVIDERS[:2])], says=lambda _worker, _task: said)
        self.assertFalse(found["as_it_must_be"])
        unpaid = {"worker": "provider-3", "stash": "stash of provider-3", "task": 1, "says": said}
        self.assertEqual(found["honest_unpaid"], [unpaid])
        (problem,) = verdict.problems(found)
        for part in ("provider-3", "task 1", "not paid", said[0]):
            self.assertIn(part, problem)

    def test_a_provider_that_was_paid_nothing_at_all_is_named_once_for_each_task(self):
        found = judged([task(0, paid=PROVIDERS[1:]), task(1, paid=PROVIDERS[1:])])
        self.assertEqual([of["task"] for of in found["honest_unpaid"]], [0, 1])

    def test_who_works_for_a_task_with_fewer_places_than_providers_is_a_draw(self):
        self.assertTrue(judged([task(paid=PROVIDERS[:1], redundancy=1)])["as_it_must_be"])

    def test_a_task_that_did_not_settle_is_named_with_its_reason(self):
        found = judged([task(0), task(1, paid=(), state="Failed", reason="NotEnoughBids")])
        self.assertEqual(found["tasks_unsettled"], [{"task": 1, "state": "Failed", "reason": "NotEnoughBids"}])
        self.assertIn("task 1 is Failed: NotEnoughBids", verdict.problems(found)[0])

    def test_no_task_at_all_is_not_as_it_must_be(self):
        found = judged([])
        self.assertFalse(found["as_it_must_be"])
        self.assertEqual(verdict.problems(found), ["there was no task"])

    def test_stake_lost_or_a_fault_or_a_suspension_of_somebody_honest_is_a_fine(self):
        told = [{"event": "FaultFound", "block": 9, "stash": "stash of verifier-1", "task": 0, "kind": "AuditNoShow"}]
        suspended = [{"event": "Suspended", "block": 9, "stash": "stash of provider-2", "task": None}]
        for changed in (
            worker("provider-1", stake_lost=1),
            worker("verifier-1", told=told),
            worker("provider-2", told=suspended),
        ):
            found = judged([task()], [changed])
            self.assertEqual([of["worker"] for of in found["honest_fined"]], [changed["worker"]])
            self.assertFalse(found["as_it_must_be"])
            self.assertIn(changed["worker"], verdict.problems(found)[0])

    def test_only_the_culprit_may_lose(self):
        lost = worker("provider-1", stake_lost=9, earned=0)
        tasks = [task(paid=PROVIDERS[1:])]
        self.assertTrue(judged(tasks, [lost], culprits=[lost["stash"]])["as_it_must_be"])
        for other in (worker("provider-2", stake_lost=1), worker("verifier-2", stake_lost=1)):
            self.assertFalse(judged(tasks, [lost, other], culprits=[lost["stash"]])["as_it_must_be"])

    def test_an_auditor_that_agreed_and_got_nothing_is_unpaid_and_one_that_was_not_drawn_is_not(self):
        audit = {"event": "AuditRevealed", "block": 9, "stash": None, "task": 0, "agrees": True}
        found = judged([task()], [worker("verifier-1", audited=[audit])])
        self.assertEqual([of["worker"] for of in found["honest_unpaid"]], ["verifier-1"])
        self.assertTrue(judged([task()], [worker("verifier-1", audited=[audit], earned=1)])["as_it_must_be"])

    def test_a_chat_has_to_be_audited_final_and_redeemed(self):
        chat = {"audited": {"verifier-1": 2}, "verdict": "final", "price": "5", "redeemed": 5}
        self.assertTrue(judged([task()], chat=chat)["as_it_must_be"])
        for what, changed in (
            ("audited", {"audited": {}}),
            ("final", {"verdict": "challengeable"}),
            ("redeemed", {"redeemed": 4}),
        ):
            found = judged([task()], chat=chat | changed)
            self.assertFalse(found["as_it_must_be"])
            self.assertEqual(verdict.problems(found), [f"the chat's receipt is not {what}"])

    def test_what_slashes_come_to_is_exact(self):
        # As a float the part would be rounded, and so much stake shows it.
        part, stake = QUINTILLION // 3, 10**30
        slashes = {0: {"lock": 10, "part": 0}, 1: {"lock": 5, "part": part}}
        rest = stake - 15
        self.assertEqual(cheats.due(slashes, stake), 15 + -(-part * rest // QUINTILLION))

    def test_a_log_says_first_what_it_has_on_the_task(self):
        lines = [
            "2026-11-22T09:00:00Z  INFO surety_host::jobs: starting task=1 kind=Commit",
            "2026-11-22T09:00:01Z \x1b[33m WARN\x1b[0m not on the chain \x1b[3mtask\x1b[0m\x1b[2m=\x1b[0m1 error=busy",
            "2026-11-22T09:00:02Z  WARN lost the chain, trying again",
        ]
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write("\n".join(lines))
            log.flush()
            says = verdict.log_says({"log": log.name}, 1)
            self.assertEqual(len(says), 1)
            self.assertIn("not on the chain task=1 error=busy", says[0])
            self.assertIn("lost the chain", verdict.log_says({"log": log.name}, 2)[-1])
        self.assertIn("No such file", verdict.log_says({"log": str(Path(log.name))}, 1)[0])


class Audits(unittest.TestCase):
    RECEIPTS = ((4, 1, 30), (3, 7, 20), (4, 0, 50))

    def test_receipts_lie_in_the_order_of_their_channels_and_numbers(self):
        parts = [audits.within(self.RECEIPTS, one) for one in self.RECEIPTS]
        self.assertEqual(parts, [range(70, 100), range(20), range(20, 70)])

    def test_points_are_those_that_the_chain_draws(self):
        # `primitives/audit-economics` has the same.
        self.assertEqual(audits.drawn("0x" + "07" * 32, 4, 10**12), DRAWN)

    def test_a_receipt_is_audited_by_whoever_has_opened_a_point_in_it(self):
        of = audits.Audits.__new__(audits.Audits)
        of.provider, of.batch, of.price = "provider", 2, 100
        of.verifiers = [SimpleNamespace(name=name, stash=f"stash of {name}") for name in VERIFIERS]
        of.opened = {"verifier-1": "0x" + "07" * 32}
        points = sorted(point * 100 // 10**12 for point in DRAWN)
        batch = {"provider": "provider", "batch": 2}
        announced = [
            (None, "Channels", "PointsAnnounced", batch | {"verifier": one.stash, "points": 4}) for one in of.verifiers
        ]
        log = SimpleNamespace(events=lambda: announced)
        for receipt in self.RECEIPTS:
            count = sum(point in audits.within(self.RECEIPTS, receipt) for point in points)
            # The other has opened nothing.
            self.assertEqual(of.of(self.RECEIPTS, receipt, log), {"verifier-1": count} if count else {})
        self.assertEqual(of.of(self.RECEIPTS, self.RECEIPTS[0], SimpleNamespace(events=list)), {})
        with self.assertRaises(DevnetError):
            of.of(self.RECEIPTS[:2], self.RECEIPTS[0], log)


def compact(number):
    return bytes([number << 2])


def text(value):
    return compact(len(value)) + value.encode()


def made(kind, *path):
    """A type: its path, no parameters, what it is, no docs."""
    return compact(len(path)) + b"".join(map(text, path)) + compact(0) + kind + compact(0)


def fields(*pairs):
    named = ((b"\0" if name is None else b"\1" + text(name)) + compact(of) + b"\0" + compact(0) for name, of in pairs)
    return compact(len(pairs)) + b"".join(named)


def variants(*of):
    found = (text(name) + fields(*pairs) + bytes([index]) + compact(0) for index, name, pairs in of)
    return b"\1" + compact(len(of)) + b"".join(found)


BYTE, WORD, KEY, ACCOUNT, STATE, MAYBE, LIST, RECORD, BLOB = range(9)
TYPES = [
    made(b"\5\3"),
    made(b"\5\5"),
    made(b"\3" + (32).to_bytes(4, "little") + compact(BYTE)),
    made(b"\0" + fields((None, KEY)), "sp_core", "crypto", "AccountId32"),
    made(variants((0, "Bidding", [("until", WORD)]), (2, "Drawing", [("since", WORD)]), (5, "Over", []))),
    made(variants((0, "None", []), (1, "Some", [(None, WORD)])), "Option"),
    made(b"\2" + compact(STATE)),
    made(b"\0" + fields(("who", ACCOUNT), ("key", KEY), ("states", LIST), ("until", MAYBE), ("blob", BLOB))),
    made(b"\2" + compact(BYTE)),
]


def metadata():
    item = text("Records") + b"\0\1" + compact(1) + bytes([5]) + compact(WORD) + compact(RECORD) + compact(0) * 2
    pallet = text("Pallet") + b"\1" + text("Pallet") + compact(1) + item
    pallet += b"\1" + compact(STATE) + b"\0" + compact(0) + b"\0" + bytes([54])
    types = compact(len(TYPES)) + b"".join(compact(number) + of for number, of in enumerate(TYPES))
    extrinsic = compact(WORD) + bytes([4]) + compact(1) + text("CheckNonce") + compact(WORD) + compact(BLOB)
    return Metadata(b"meta" + bytes([14]) + types + compact(1) + pallet + extrinsic + compact(WORD))


class Records(unittest.TestCase):
    def test_a_record_is_read_by_what_the_runtime_says_of_its_types(self):
        account, key = bytes(range(32)), bytes(32)
        states = compact(3) + b"\2" + (7).to_bytes(4, "little") + b"\5" + b"\0" + (9).to_bytes(4, "little")
        data = account + key + states + b"\1" + (8).to_bytes(4, "little") + compact(2) + b"ab"
        of = metadata()
        self.assertEqual(
            of.decode(of.item("Pallet", "Records").value, data),
            {
                "who": ss58_encode(account),
                "key": "0x" + key.hex(),
                "states": [{"name": "Drawing", "since": 7}, {"name": "Over"}, {"name": "Bidding", "until": 9}],
                "until": 8,
                "blob": b"ab",
            },
        )
        with self.assertRaises(ValueError):
            of.decode(of.item("Pallet", "Records").value, data + b"\0")

    def test_a_map_of_the_runtime_says_how_its_keys_are_hashed_and_a_pallet_where_its_calls_are(self):
        of = metadata()
        hashed = of.item("Pallet", "Records").hashed((1).to_bytes(4, "little"))
        self.assertEqual(len(hashed), 12)
        self.assertTrue(hashed.endswith(b"\1\0\0\0"))
        self.assertEqual(of.call_index("Pallet", "Drawing"), bytes([54, 2]))
        self.assertIsNone(of.item("Pallet", "Nothing"))
        self.assertIsNone(of.item("Nobody", "Nothing"))

    def test_an_extrinsic_says_who_signed_it_and_what_it_calls(self):
        account, carried = bytes(range(32)), (5).to_bytes(4, "little")

        def signed(call, version=0x84):
            body = bytes([version]) + b"\0" + account + b"\1" + bytes(64) + carried + call
            return (len(body) << 2 | 1).to_bytes(2, "little") + body

        of, call = metadata(), bytes([54, 2]) + (7).to_bytes(4, "little")
        found = (ss58_encode(account), {"name": "Drawing", "since": 7})
        self.assertEqual(of.signed(signed(call), "Pallet", "Drawing"), found)
        self.assertIsNone(of.signed(signed(call), "Pallet", "Bidding"))
        self.assertIsNone(of.signed(signed(bytes([53]) + call), "Pallet", "Drawing"))
        # What nobody signs is of other versions.
        self.assertIsNone(of.signed(signed(call, version=0x45), "Pallet", "Drawing"))
        # The same bytes within another call are not that call.
        self.assertIsNone(of.signed(signed(bytes([54, 0]) + call[:4]), "Pallet", "Drawing"))

    def test_metadata_of_another_version_is_refused(self):
        with self.assertRaises(ValueError):
            Metadata(b"meta" + bytes([15]))


if __name__ == "__main__":
    unittest.main()
