"""Four validators: one may fail. When two are down finality stands still, loses nothing, and goes on afterwards."""

import tempfile
import unittest
from pathlib import Path

import support
from devnet_lib import wait
from devnet_lib.folders import binaries, write_secret
from devnet_lib.ports import Ports
from devnet_lib.processes import Supervisor
from devnet_lib.surety import Surety
from devnet_lib.validators import Validators

# Beside the devnet.
PORTS = Ports(100)
URI = "//Surety//testnet//{}"
BLOCKS = 4
# Two of four fill about half of the slots.
SECONDS = 300


class FourValidators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory(prefix="surety-e2e-")
        cls.addClassCleanup(home.cleanup)
        cls.home = Path(home.name)
        logs = support.run_dir() / "logs"
        logs.mkdir(exist_ok=True)
        cls.supervisor = Supervisor(logs)
        cls.addClassCleanup(cls.supervisor.stop)
        node = binaries() / "surety-node"
        cls.net = Validators(cls.supervisor, node, PORTS, support.scratch(), chain="testnet", count=4)
        cls.net.prepare()
        for index in range(4):
            cls.net.insert_keys(index, write_secret(cls.home / f"{index}.key", URI.format(index)))
        cls.net.start_all()
        cls.net.wait_for_finality(2)
        cls.chain = cls.net.all[0].chain

    def best(self, number):
        return wait.until(f"block {number}", lambda: self.chain.best_number() >= number, SECONDS, self.supervisor.check)

    def both_have(self, number):
        """Waits until the two that are left have the same block at a height: neither builds beside it any more."""

        def same():
            first, second = (validator.chain.block_hash(number) for validator in self.net.all[:2])
            return first == second

        wait.until(f"both to have the same block {number}", same, SECONDS, self.supervisor.check)

    def test_one_down_changes_nothing_two_down_stop_finality_until_one_returns(self):
        self.net.kill(3)
        final = self.net.wait_for_finality(self.chain.finalized_number() + 2 * BLOCKS)

        self.net.kill(2)
        # Votes that were on their way may still finalise what existed by now.
        existed = self.chain.best_number()
        self.best(existed + BLOCKS)
        stuck = self.chain.finalized_number()
        self.assertGreaterEqual(stuck, final)
        self.assertLessEqual(stuck, existed)
        payment = self.pay_in_background()
        self.best(existed + 2 * BLOCKS)
        shown = self.chain.finality_clock(self.chain.best_hash())
        stuck = self.chain.finalized_number()
        self.assertLessEqual(stuck, existed, "two of four must not finalise anything")
        self.assertLessEqual(shown, stuck, "the runtime's clock stands still with finality")
        self.assertIsNone(payment.returncode(), payment.tail())
        # The newest may still be replaced by siblings.
        newest = existed + 2 * BLOCKS - 2
        self.both_have(newest)
        made = {number: self.chain.block_hash(number) for number in range(1, newest + 1)}

        self.net.start(2)
        self.net.wait_for_answer(self.net.all[2])
        self.net.wait_for_finality(max(made) + BLOCKS)
        kept = {number: self.chain.block_hash(number) for number in made}
        self.assertEqual(kept, made, "blocks from before and during the standstill are part of the final chain")
        self.clock_passes(stuck)
        self.assertTrue(payment.wait(SECONDS), payment.tail())
        self.assertEqual(payment.returncode(), 0, payment.tail())

        self.net.start(3)
        self.net.wait_for_answer(self.net.all[3])
        self.net.wait_for_finality(max(made) + BLOCKS, through=3)
        self.assertEqual(self.net.all[3].chain.block_hash(max(made)), made[max(made)])

    def clock_passes(self, height):
        def passed():
            return self.chain.finality_clock(self.chain.best_hash()) > height

        return wait.until(f"the runtime to know block {height + 1} final", passed, SECONDS, self.supervisor.check)

    def pay_in_background(self):
        """A payment that waits until it is final. It may not be lost."""
        key = self.home / "0.key"
        rpc = f"ws://127.0.0.1:{PORTS.rpc(0)}"
        client = Surety(self.supervisor, binaries() / "surety", self.home / "client", rpc, key)
        to = client_address(client, self.home / "new.key")
        process = client.start("payment", "account", "fund", "--to", to, "--amount", "7 SURE")
        self.supervisor.forget(process)
        self.addCleanup(process.stop)
        return process


def client_address(client, key):
    return Surety(client.supervisor, client.binary, client.home, client.rpc, key).run("account", "new")["address"]


if __name__ == "__main__":
    unittest.main()
