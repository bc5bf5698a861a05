"""From a release's archive to money earned: two commands for a provider, two for a client, and nothing else.

Each begins on a machine that has nothing but a minimal Debian and the archive. What they type is what the guides say;
where the network is, whose ports are not the usual ones beside other tests, is in their environment. What the model hub
would bring comes from the cache.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import commands
import support
from devnet_lib import wait
from devnet_lib.console import Silent
from devnet_lib.devnet import MODEL, TEXT, Devnet
from devnet_lib.folders import cache_dir, new_run_dir, remove_data, write_secret
from devnet_lib.ports import Ports
from machine import HOME, Account, Machine, why_none
from test_0_release import make

# Beside the other networks of these tests.
PORTS = Ports(1300)
FAUCET = f"127.0.0.1:{PORTS.data(90)}"
GUIDE = support.REPO / "docs" / "guides" / "install.md"
# As many results as a task has unless it says otherwise: the newcomer's is one of them.
PROVIDERS = 2
COMMAND_SECONDS, LIFE_SECONDS = 2 * support.SOON_SECONDS, support.LIFE_SECONDS


def guide():
    """The commands that the guide has after the installation: a provider's and a client's."""
    blocks = [block.text for block in commands.blocks(GUIDE) if "--faucet" in block.text]
    lines = [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line.replace("https://faucet.example", f"http://{FAUCET}") for line in lines]


class Newcomer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run_dir = new_run_dir()
        cls.addClassCleanup(remove_data, run_dir)
        cls.net = Devnet(run_dir, Silent(), providers=PROVIDERS, ports=PORTS, databases=support.scratch())
        cls.addClassCleanup(cls.net.stop)
        cls.net.up()
        cls.start_faucet()
        cls.folder = Path(tempfile.mkdtemp(prefix="surety-newcomer-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.archive = make()

    @classmethod
    def start_faucet(cls):
        home = cls.net.run_dir / "faucet"
        home.mkdir()
        giver = cls.net.surety(home, write_secret(home / "account.key", "//Alice"))
        # All who ask come from this machine.
        faucet = giver.start("faucet", "faucet", "up", "--http", FAUCET, "--amount", "1200 SURE", "--per-client", "9")
        giving = lambda: "giving" in faucet.log.read_text()  # noqa: E731
        wait.until("the faucet", giving, support.SOON_SECONDS, cls.net.supervisor.check)

    def machine(self, name):
        """Where somebody begins who has an archive, and installs it."""
        if why_none():
            print(f"\n{name} has no machine, only an empty home: {why_none()}", file=sys.stderr)
        machine = (Account if why_none() else Machine)(self.folder / name)
        shutil.copy(self.archive, machine.home)
        machine.bring(cache_dir() / "models" / MODEL, f"{HOME}/.local/share/surety/models/{MODEL}")
        self.typed(machine, f"tar -xzf {self.archive.name}")
        # The machine's root needs none.
        prefix = f" --prefix {machine.place(machine.prefix)}" if why_none() else ""
        self.typed(machine, f"bash surety-*-linux/install{prefix}")
        return machine

    def argv(self, machine, command):
        env = {"SURETY_RPC": self.net.ws}
        env["SURETY_PROVIDER_LISTEN"] = f'["127.0.0.1:{PORTS.data(PROVIDERS)}"]'
        env["SURETY_TASK_LISTEN"] = f'["127.0.0.1:{PORTS.client()}"]'
        return machine.argv(command, env)

    def typed(self, machine, command, seconds=COMMAND_SECONDS):
        """What a command printed."""
        done = subprocess.run(self.argv(machine, command), capture_output=True, text=True, timeout=seconds, check=False)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def status(self, machine):
        """What the chain has of its provider."""
        return json.loads(self.typed(machine, "surety provider status --json"))

    def test_a_newcomers_machine_has_nothing_of_this_one(self):
        if why_none():
            self.skipTest(f"no root can be made here: {why_none()}")
        machine = Machine(self.folder / "empty")
        for path in (support.REPO, cache_dir(), Path.home() / ".cargo", self.net.bin):
            self.typed(machine, f"test ! -e {path}")
        self.assertEqual(self.typed(machine, "ls -A /root /usr/local /tmp").split(), ["/root:", "/tmp:", "/usr/local:"])
        self.assertNotEqual(subprocess.run(machine.argv("surety --version"), capture_output=True).returncode, 0)
        self.assertNotEqual(subprocess.run(machine.argv("touch /usr/bin/x"), capture_output=True).returncode, 0)

    def test_two_commands_earn_and_two_buy(self):
        init, up, account, submit = guide()
        provider, client = self.machine("provider"), self.machine("client")
        self.typed(provider, init)
        worker = self.net.supervisor.start("newcomer", self.argv(provider, up))
        check = self.net.supervisor.check
        wait.until("the provider", lambda: "provider is up" in worker.log.read_text(), support.SOON_SECONDS, check)
        # It is asked for work from when the chain knows where it is, and that is final.
        known = lambda: self.status(provider)["last_sign_of_life"] is not None  # noqa: E731
        wait.until("the chain to know the provider", known, support.SOON_SECONDS, check)

        shutil.copy(TEXT, client.home / "text.txt")
        self.typed(client, account)
        self.typed(client, submit, LIFE_SECONDS)
        self.assertGreater((client.home / "vectors.safetensors").stat().st_size, 0)

        # Money moves after the check.
        self.typed(client, "surety task watch", LIFE_SECONDS)
        earned = self.status(provider)
        self.assertEqual(earned["paid_tasks"], 1, earned)
        self.assertGreater(int(earned["paid"]), 0, earned)


if __name__ == "__main__":
    unittest.main()
