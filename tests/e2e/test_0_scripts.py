"""The devnet's own machinery: what it reads from chains, and that it leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock

import support
from bench_lib import finality
from bench_lib.alone import alone
from devnet_lib import processes, scale, wait
from devnet_lib.chain import sure
from devnet_lib.errors import CommandFailed, DevnetError, RpcError
from devnet_lib.surety import Surety

ALICE = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
# Beside the network of the other tests.
OFFSET = 442


class ReadingChains(unittest.TestCase):
    def test_names_hash_as_the_chain_hashes_them(self):
        self.assertEqual(scale.twox128("System").hex(), "26aa394eea5630e07c48ae0c9558cef7")
        self.assertEqual(scale.twox128("Account").hex(), "b99d880ec681799c0cf30e8886371da9")
        self.assertEqual(scale.twox128("Timestamp").hex(), "f0c365c3cf59d671eb72da0e7a4113c4")

    def test_blobs_hash_as_the_chain_names_them(self):
        row = bytes((i * i + 3 * i + i // 251) % 256 for i in range(1025))
        # The third of primitives/proofs/vectors/row_digest.json.
        self.assertEqual(scale.content_hash(row).hex()[:16], "ad2cf06e8b4c1828")

    def test_addresses_are_read_and_written(self):
        account = scale.ss58_decode(ALICE)
        self.assertEqual(account.hex()[:8], "d43593c7")
        self.assertEqual(scale.ss58_encode(account), ALICE)
        with self.assertRaises(ValueError):
            scale.ss58_decode(ALICE[:-1] + "Z")

    def test_values_are_read_to_their_end_and_not_beyond(self):
        reader = scale.Reader(bytes.fromhex("04fd0302000000"))
        self.assertEqual((reader.compact(), reader.compact(), reader.u32()), (1, 255, 2))
        with self.assertRaises(ValueError):
            reader.u8()
        with self.assertRaises(ValueError):
            scale.Reader(b"\0").done()

    def test_amounts_are_written_for_people(self):
        self.assertEqual(sure(0), "0 SURE")
        self.assertEqual(sure(1_234_500_000_000_000), "1,234.5 SURE")
        self.assertEqual(sure(1), "0.000000000001 SURE")


def header(number, parent, slot):
    babe = b"\2" + bytes(4) + slot.to_bytes(8, "little")
    log = b"\6BABE" + bytes([len(babe) << 2]) + babe
    nothing = "0x" + bytes(32).hex()
    roots = {"parentHash": parent, "stateRoot": nothing, "extrinsicsRoot": nothing}
    return {"number": hex(number), "digest": {"logs": ["0x" + log.hex()]}, **roots}


class Followed:
    """What one node was seen to do."""

    def __init__(self, had, final):
        self.had, self.final = had, final


class Finality(unittest.TestCase):
    """What `scripts/bench staking` makes of what nodes say."""

    def test_a_block_is_final_with_its_descendants_and_counts_where_all_nodes_said_so(self):
        first = header(1, "0x" + bytes(32).hex(), 10)
        name = finality.header_hash(first)
        second, beside = header(2, name, 11), header(2, name, 12)
        third = header(3, finality.header_hash(second), 13)
        author = Followed(
            [(20.0, first), (22.0, second), (24.2, beside), (26.0, third)], [(25.0, second), (29.0, third)]
        )
        other = Followed(
            [(20.5, first), (22.5, second), (24.0, beside), (26.5, third)], [(24.0, first), (26.0, second)]
        )
        found = finality.times([author, other])
        # The first after 5 s and 4 s, the second after 3 s and 4 s; the third is not final for the other one yet.
        self.assertEqual((found["blocks"], found["p50_s"], found["max_s"]), (2, 4.0, 5.0))
        # Slots of two seconds.
        self.assertEqual(found["from_slot_p50_s"], 4.0)
        self.assertEqual(found["blocks_not_of_the_chain"], 1)
        self.assertEqual(found["import_elsewhere_p50_s"], 0.5)


class Benches(unittest.TestCase):
    """What `scripts/bench` builds beside the workspace, and that it runs alone."""

    def test_a_bench_does_not_begin_beside_another_and_says_which_that_is(self):
        def begin():
            folder, module = support.REPO / "scripts", [sys.executable, "-m", "bench_lib.alone"]
            return subprocess.run(module, cwd=folder, capture_output=True, text=True, timeout=60, check=False)

        with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, XDG_CACHE_HOME=cache):
            with alone():
                refused = begin()
            self.assertEqual(refused.returncode, 1, refused)
            self.assertIn(f"another bench is running: process {os.getpid()}, ", refused.stdout)
            # A file that is left of it keeps nobody out.
            self.assertEqual(begin().returncode, 0)

    def test_the_stock_runtime_is_of_the_libraries_that_ours_is_of(self):
        ours = tomllib.loads((support.REPO / "Cargo.toml").read_text())["workspace"]["dependencies"]
        stock = tomllib.loads((support.REPO / "scripts/stock-runtime/Cargo.toml").read_text())["dependencies"]
        versions = {name: of["version"] for name, of in stock.items()}
        self.assertEqual(versions, {name: ours[name]["version"] for name in stock})


class Limits(unittest.TestCase):
    """Whatever takes too long is ended, and that is said."""

    def test_a_command_that_does_not_end_is_named(self):
        with self.assertRaisesRegex(DevnetError, "`sleep 30` took more than 0 s"):
            processes.run(["sleep", "30"], 0.2)
        with self.assertRaisesRegex(CommandFailed, "ended with 1"):
            processes.run(["false"], 10)

    def test_a_process_that_is_late_is_ended_whether_it_wants_or_not(self):
        for script, seconds, stop_seconds, code in (
            ("echo", 60, 60, 0),
            ("echo; exec sleep 100", 0.5, 60, -signal.SIGTERM),
            ("trap '' TERM; echo; sleep 100; sleep 100", 0.5, 0.2, -signal.SIGKILL),
        ):
            process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, **processes.child_options())
            with process.stdout:
                # From now on it is as it is to be.
                process.stdout.readline()
                self.assertEqual(processes.end_of(process, seconds, stop_seconds), (code, code != 0), script)

    def test_while_a_machine_is_paused_no_time_is_used_up(self):
        with mock.patch.object(wait.time, "monotonic", side_effect=[0.0, 10.0, 10_000.0, 10_015.0, 10_020.0]):
            limit = wait.Limit(60)
            self.assertEqual([limit.is_over() for _ in range(4)], [False, False, False, True])

    def test_a_node_that_does_not_answer_is_asked_again_and_named_in_the_end(self):
        answers = iter([RpcError("nobody is there"), "here"])

        def asked():
            answer = next(answers, RpcError("gone"))
            if isinstance(answer, RpcError):
                raise answer
            return answer

        self.assertEqual(wait.until("an answer", asked, 60), "here")
        with self.assertRaisesRegex(DevnetError, "waited 0 s in vain for another; the last answer: gone"):
            wait.until("another", asked, 0.3)

    def test_what_a_killed_command_said_tells_why(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "surety"
            program.write_text("#!/bin/sh\nexec sleep 30\n")
            program.chmod(0o700)
            surety = Surety(processes.Supervisor(folder), program, folder, "ws://127.0.0.1:1")
            with self.assertRaisesRegex(CommandFailed, "ended with -9: killed: it had not ended after 0 s"):
                surety.run("account", "show", timeout=0.2)


class Script(unittest.TestCase):
    """`scripts/devnet` from outside."""

    def start(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        command = [str(support.REPO / "scripts/devnet"), "--no-build", "--port-offset", str(OFFSET)]
        with open(Path(self.home.name) / "stdout", "wb") as said:
            process = subprocess.Popen(
                command,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": self.home.name},
                start_new_session=True,
            )
        self.addCleanup(process.kill)
        return process

    def said(self):
        return (Path(self.home.name) / "stdout").read_text()

    def left_over(self):
        """Processes of that run that still exist."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if f"{self.home.name}/" in command:
                found.append(command)
        return found

    def test_a_taken_port_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 9945 + OFFSET))
            taken.listen()
            process = self.start()
            self.assertEqual(process.wait(support.SOON_SECONDS), 1, self.said())
        self.assertIn(f"TCP port {9945 + OFFSET} (RPC of validator 2) is taken", self.said())
        self.assertEqual(self.left_over(), [])

    def interrupt(self, number):
        process = self.start()
        wait.until("the validators to answer", lambda: "validators answer" in self.said(), support.SOON_SECONDS)
        self.assertNotEqual(self.left_over(), [])
        process.send_signal(number)
        self.assertEqual(process.wait(support.SOON_SECONDS), 130, self.said())
        self.assertIn("stopping everything", self.said())
        self.assertEqual(self.left_over(), [])

    def test_ctrl_c_and_a_second_run_that_is_terminated_leave_no_process_behind(self):
        self.interrupt(signal.SIGINT)
        # The ports are free again.
        self.interrupt(signal.SIGTERM)

    def test_being_killed_leaves_no_process_behind(self):
        process = self.start()
        wait.until("the validators to be started", lambda: len(self.left_over()) >= 3, support.SOON_SECONDS)
        process.kill()
        process.wait()
        wait.until("their end", lambda: not self.left_over(), 60)


if __name__ == "__main__":
    unittest.main()
