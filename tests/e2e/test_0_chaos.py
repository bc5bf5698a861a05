"""How `scripts/bench chaos` counts, and its tools: no network is started."""

import contextlib
import random
import socket
import tempfile
import threading
import unittest
from types import SimpleNamespace

import support  # noqa: F401  Finds the scripts.
from bench_lib import chaos as bench
from bench_lib import windows
from bench_lib.chaos import account, faults, proxy
from bench_lib.chaos.ed25519 import Key
from bench_lib.chaos.extrinsic import compact
from bench_lib.chaos.net import POOL_LIMIT
from bench_lib.errors import BenchError
from devnet_lib.console import Silent
from devnet_lib.errors import DevnetError, RpcError
from devnet_lib.watch import Block, ChainLog, SlashWatch

PROXY_PORT = 21_900
NAMES = ("provider-1", "provider-2", "provider-3")
STASHES = {name: f"stash of {name}" for name in (*NAMES, "verifier-1")}
RIGHT, WRONG = "0x01", "0x02"
CAP = 100


def event(name, pallet=None, task=0, **fields):
    return (pallet or "Results", name, {"task": task, **fields})


def posted(task=0, client="client"):
    return event("TaskPosted", "TaskAuction", task, client=client, cap=CAP)


def settled(paid=NAMES, task=0, price=10, fee=0):
    payments = [{"provider": STASHES[name], "price": price} for name in paid]
    refund = CAP - price * len(payments)
    return event("TaskSettled", "TaskAuction", task, claim={"output": RIGHT}, payments=payments, fee=fee, refund=refund)


def chain(*events, until=50, stalls=()):
    """A block every two seconds. What happens does so one block after the other, the last of it in block 99."""
    blocks, clock = [], 0
    for number in range(100):
        clock += number not in stalls
        happens = [events[number - 1]] if 0 < number < len(events) else []
        happens += [event("RoundOpened", until=until)] if number == len(events) else []
        happens += [events[-1]] if number == 99 else []
        blocks.append(Block(number, number * 2000, clock, happens))
    return blocks


def judged(*events, computed=None, answered=lambda *_: 1000, **options):
    computed = computed if computed is not None else {name: (40_000, RIGHT) for name in NAMES}
    computed = {name: {0: computed[name]} if name in computed else {} for name in NAMES}
    money = options.pop("money", {})
    seen = account.Seen(chain(*events, **options), computed, STASHES, {"client"}, answered, money)
    return account.judge(seen)


class Counting(unittest.TestCase):
    def test_a_settled_task_of_which_everybody_is_paid_leaves_nothing_to_complain_of(self):
        found = judged(posted(), settled())
        self.assertEqual((found["tasks"], found["settled"]), (1, 1))
        self.assertEqual([found[name] for name in account.MUST_BE_ZERO], [0] * len(account.MUST_BE_ZERO))

    def test_a_right_result_that_was_made_in_time_and_not_paid_is_counted(self):
        found = judged(posted(), settled(NAMES[:2]))
        self.assertEqual(found["honest_right_in_time_unpaid"], 1)
        self.assertEqual(found["cases"]["unpaid"][0]["worker"], "provider-3")

    def test_a_wrong_or_late_result_or_one_that_no_node_could_be_told_of_is_not(self):
        for case in (
            {"computed": {"provider-3": (40_000, WRONG)}},
            {"computed": {"provider-3": (85_000, RIGHT)}},
            {"answered": lambda *_: account.ANSWERED_SECONDS - 1},
        ):
            found = judged(posted(), settled(NAMES[:2]), **case)
            self.assertEqual(found["honest_right_in_time_unpaid"], 0, case)

    def test_what_is_late_by_blocks_is_in_time_while_the_clock_stands_still(self):
        case = {"computed": {"provider-3": (85_000, RIGHT)}, "stalls": range(20, 42)}
        self.assertEqual(judged(posted(), settled(NAMES[:2]), **case)["honest_right_in_time_unpaid"], 1)

    def test_of_a_task_that_failed_what_most_computed_is_right(self):
        failed = event("TaskFailed", "TaskAuction", reason="NotEnoughResults")
        computed = dict(zip(NAMES, [(40_000, RIGHT), (40_000, RIGHT), (40_000, WRONG)], strict=True))
        found = judged(posted(), failed, computed=computed)
        self.assertEqual([case["worker"] for case in found["cases"]["unpaid"]], list(NAMES[:2]))
        self.assertEqual(found["failed_reasons"], {"NotEnoughResults": 1})

    def test_what_a_provider_computed_after_another_took_its_place_is_not(self):
        replaced = event("ProviderReplaced", dropped=STASHES["provider-3"], by=STASHES["provider-1"])
        for at_ms, count in ((40_000, 0), (1_000, 1)):
            found = judged(posted(), replaced, settled(NAMES[:2]), computed={"provider-3": (at_ms, RIGHT)})
            self.assertEqual(found["honest_right_in_time_unpaid"], count)

    def test_a_fault_and_its_slash_are_one_slash_of_whoever_is_honest(self):
        of = {"offender": STASHES["verifier-1"], "kind": "AuditNoShow"}
        deferred = ("TrustLock", "SlashDeferred", {"cause": {"name": "Task", "value": 0}, **of})
        found = judged(posted(), event("FaultFound", **of), deferred, settled())
        self.assertEqual(found["honest_slashes"], 1)
        self.assertEqual(found["cases"]["slashes"][0]["worker"], "verifier-1")
        other = {"offender": "somebody else", "kind": "NoReveal"}
        self.assertEqual(judged(posted(), event("FaultFound", **other), settled())["honest_slashes"], 0)

    def test_a_slash_for_something_else_than_a_task_is_one_of_its_own(self):
        for cause in ({"name": "Channels"}, {"name": "Equivocation", "value": 0}):
            of = {"cause": cause, "offender": STASHES["provider-1"], "kind": "Equivocation"}
            found = judged(posted(), ("TrustLock", "SlashDeferred", of), settled())
            self.assertEqual(found["honest_slashes"], 1)
            self.assertIsNone(found["cases"]["slashes"][0]["task"])

    def test_suspensions_are_counted_apart(self):
        suspended = ("TrustLock", "Suspended", {"stash": STASHES["provider-1"], "until": 90})
        found = judged(posted(), suspended, settled())
        self.assertEqual((found["suspensions"], found["honest_slashes"]), (1, 0))

    def test_a_task_that_has_not_ended_is_counted(self):
        self.assertEqual(judged(posted(), event("AuditRevealed"))["tasks_not_ended"], 1)

    def test_a_client_that_lost_its_lock_is_counted(self):
        found = judged(posted(), event("TaskFailed", "TaskAuction", reason="InputWithheld"), computed={})
        self.assertEqual(found["honest_clients_fined"], 1)

    def test_money_that_is_nowhere_is_counted(self):
        self.assertEqual(judged(posted(), settled(fee=3))["money_lost"], 3)
        self.assertEqual(judged(posted(), settled(), money={"escrow_left": 5, "other": -2})["money_lost"], 7)

    def test_a_provider_s_log_says_what_it_computed_first(self):
        line = (
            "2026-11-22T09:00:0{}.5Z  \x1b[32mINFO\x1b[0m host: computed \x1b[3mtask\x1b[0m\x1b[2m=\x1b[0m7 output={}\n"
        )
        with tempfile.NamedTemporaryFile("w") as log:
            log.write(line.format(1, RIGHT) + "something else task=8\n" + line.format(2, WRONG))
            log.flush()
            ((task, (at, output)),) = account.computed_in(log.name).items()
        self.assertEqual((task, output, at % 60_000), (7, RIGHT, 1500))


class Ill(faults.Fault):
    """A fault that says what is done with it."""

    done, seconds = [], (0.0, 0.0)

    def begin(self):
        self.done.append(self.kind)
        return "nothing"

    def end(self):
        self.done.append("over")


class Faults(unittest.TestCase):
    def test_every_kind_has_its_turn_before_any_comes_again_and_each_is_undone(self):
        Ill.done.clear()
        kinds = [type(f"Ill{kind}", (Ill,), {"kind": kind}) for kind in ("pool-full", "slow-peer", "lying-peer")]
        schedule = faults.Schedule(None, random.Random(1), kinds, Silent())
        schedule.REST_SECONDS = (0.0, 0.0)
        schedule.next_at = 0.0
        while len(schedule.log) < 6:
            schedule.step()
        schedule.stop()
        begun = Ill.done[::2]
        self.assertEqual(set(begun[:3]), {kind.kind for kind in kinds})
        self.assertEqual(Ill.done[1::2], ["over"] * len(begun))
        self.assertEqual(sum(schedule.counts().values()), 6)

    def test_a_short_pause_is_longer_than_the_windows_of_a_task_and_a_short_drop_is_not(self):
        blocks = windows.all_presets()["local"]
        names = ("CommitWindow", "AuditWindow", "RevealWindow", "ChallengeWindow")
        longest = max(blocks[name] for name in names) * 60 / windows.UNITS["MINUTES"]
        self.assertGreater(bench.ShortPause.seconds[0], longest)
        self.assertLess(bench.ShortDrop.seconds[1], longest)

    def test_a_flood_that_never_fills_the_pool_is_a_problem(self):
        for counts, is_one in (((9, 0, 9), True), ((99, 1, 9), False), ((99, 0, POOL_LIMIT), False)):
            flood = faults.PoolFull(None, random.Random(1))
            flood.over, flood.thread = threading.Event(), threading.Thread(target=lambda: None)
            flood.thread.start()
            flood.sent, flood.refused, flood.kept = counts
            self.assertEqual(flood.end() is not None, is_one, counts)

    def test_the_same_seed_has_the_same_faults(self):
        def kinds(seed):
            return [kind.kind for kind in faults.Schedule(None, random.Random(seed), faults.ALL, Silent()).first]

        self.assertEqual(kinds(3), kinds(3))
        self.assertNotEqual(kinds(3), kinds(4))


class Node:
    """A node that has some blocks, or answers nothing."""

    def __init__(self, blocks=None):
        self.blocks, self.rpc = blocks, SimpleNamespace(url="http://a.node")

    def finalized_number(self):
        if self.blocks is None:
            raise RpcError("nobody is there")
        return self.blocks

    def block_hash(self, number):
        return number

    def timestamp_ms(self, number):
        return number * 2000

    def clock(self, block):
        return block

    def events(self, _block):
        return []


class Watching(unittest.TestCase):
    def test_another_node_is_asked_when_one_does_not_answer(self):
        first, second = Node(0), Node(120)
        log = ChainLog([first, second])
        first.blocks = None
        log.catch_up(120, 5)
        self.assertEqual([block.number for block in log.blocks], list(range(1, 121)))

    def test_a_log_that_is_ended_tells_what_a_node_says_of_its_last_block_and_no_more(self):
        node, ahead = Node(0), Node(9)
        log = ChainLog([node, ahead])
        node.blocks = 7
        self.assertEqual((log.end_at_final(node), log.seen()), (7, 7))
        node.blocks = 9
        log.look()
        self.assertEqual(log.seen(), 7)

    def test_a_slash_that_was_carried_out_between_two_looks_is_seen(self):
        of = {"slash": 3, "offender": "somebody", "kind": "NoReveal", "lock": 5, "part": 0}
        log = ChainLog([Node(0)])
        slashes = SlashWatch(log, Silent())
        self.assertFalse(slashes.are_carried_out())
        log.blocks.append(Block(1, 2000, 1, [("TrustLock", "SlashDeferred", {**of, "until": 9})]))
        self.assertFalse(slashes.are_carried_out())
        log.blocks.append(Block(2, 4000, 2, [("TrustLock", "SlashRaised", {"slash": 3, "lock": 7, "part": 0})]))
        log.blocks.append(Block(3, 6000, 3, [("TrustLock", "SlashCarriedOut", {"slash": 3, "taken": 7})]))
        self.assertTrue(slashes.are_carried_out())
        self.assertEqual(slashes.seen, {3: {"offender": "somebody", "kind": "NoReveal", "lock": 7, "part": 0}})

    def test_when_none_answers_the_last_answer_is_named(self):
        node = Node(0)
        log = ChainLog([node])
        node.blocks = None
        with self.assertRaisesRegex(DevnetError, "block 1; the last one said: RpcError: nobody is there"):
            log.catch_up(1, 0.5)

    def test_a_mistake_of_ours_is_not_taken_for_a_node_that_does_not_answer(self):
        nodes = [Node(), Node(7)]
        self.assertEqual(bench.told_by_any(nodes, "a number", lambda node: node.finalized_number()), 7)
        with self.assertRaises(KeyError):
            bench.told_by_any(nodes, "a number", lambda _node: {}["nothing"])
        with self.assertRaisesRegex(BenchError, "a number; the last answer: nobody is there"):
            bench.told_by_any(nodes[:1], "a number", lambda node: node.finalized_number(), 0.3)


class Signing(unittest.TestCase):
    def test_keys_and_signatures_are_those_of_rfc_8032(self):
        key = Key(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
        self.assertEqual(key.public.hex(), "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
        self.assertEqual(
            key.sign(b"\x72").hex(),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        )

    def test_numbers_are_compact(self):
        for number, found in ((1, "04"), (69, "1501"), (65535, "feff0300"), (10**12, "070010a5d4e8")):
            self.assertEqual(compact(number).hex(), found)


class Proxies(unittest.TestCase):
    """An echo behind a proxy."""

    def setUp(self):
        self.server, self.received = socket.create_server(("127.0.0.1", 0)), bytearray()
        self.addCleanup(self.server.close)
        threading.Thread(target=self._serve, daemon=True).start()
        proxies = proxy.Proxies()
        self.addCleanup(proxies.close)
        self.proxy = proxies.add("echo", PROXY_PORT, self.server.getsockname()[1])

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.server.accept()
                threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection):
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(4096):
                self.received += data
                connection.sendall(data)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", PROXY_PORT), 5)
        self.addCleanup(connection.close)
        connection.settimeout(5)
        return connection

    def asked(self, connection):
        connection.sendall(b"hello")
        return connection.recv(100)

    def test_it_passes_on_what_comes(self):
        self.assertEqual(self.asked(self.connect()), b"hello")
        self.assertEqual(self.proxy.outages, [])

    def test_what_is_frozen_goes_on_when_that_is_over(self):
        connection = self.connect()
        self.assertEqual(self.asked(connection), b"hello")
        self.proxy.set(proxy.FREEZE)
        connection.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            self.asked(connection)
        self.proxy.set(proxy.PASS)
        connection.settimeout(5)
        self.assertEqual(connection.recv(100), b"hello")
        ((first, last),) = self.proxy.outages
        self.assertLess(first, last)

    def test_what_is_dropped_is_gone_and_comes_back_for_new_connections(self):
        connection = self.connect()
        self.assertEqual(self.asked(connection), b"hello")
        self.proxy.set(proxy.REFUSE)
        for old_or_new in (lambda: connection, self.connect):
            with contextlib.suppress(ConnectionError):
                self.assertEqual(self.asked(old_or_new()), b"")
        self.proxy.set(proxy.PASS)
        self.assertEqual(self.asked(self.connect()), b"hello")

    def test_what_is_damaged_arrives_as_something_else(self):
        self.proxy.set(proxy.DAMAGE)
        self.asked(self.connect())
        self.assertEqual(len(self.received), 5)
        self.assertNotEqual(bytes(self.received), b"hello")


if __name__ == "__main__":
    unittest.main()
