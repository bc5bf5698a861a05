"""`docker/compose.yml` and `docker/testnet.yml`: what they start is started, without containers.

Services have their machine's network and its usual ports: so here they get one that nobody else is in.
"""

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import namespace
import support
from compose import READY_SECONDS, Stack, read
from devnet_lib import wait
from devnet_lib.devnet import MODEL
from devnet_lib.folders import binaries, cache_dir, write_secret
from devnet_lib.validators import raw_spec


@unittest.skipUnless(shutil.which("docker-compose"), "scripts/setup --test installs docker-compose")
class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        namespace.enter()
        cls.programs = binaries()

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="surety-compose-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def stack(self, name, files=None):
        stack = Stack(name, self.folder / "stack", self.programs, files)
        self.addCleanup(stack.stop)
        return stack

    def surety(self, stack, name, *args):
        """What `surety` prints in the home of a service."""
        env = {"HOME": str(stack.home(name)), "PATH": "/usr/bin:/bin"}
        argv = [self.programs / "surety", *args, "--json"]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=READY_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_provider_works_on_a_development_chain_that_was_nothing_before(self):
        stack = self.stack("compose.yml")
        # What is downloaded.
        models = stack.volume("provider") / "surety" / "models"
        models.mkdir(parents=True)
        (models / MODEL).symlink_to(cache_dir() / "models" / MODEL)
        stack.up()
        stack.wait_until_healthy("provider")
        self.assertNotIn("not registered", stack.log("provider"))
        # `docker compose up` the next time.
        for name in ("model", "init"):
            stack.start(name)
        for name in ("model", "init"):
            stack.wait_for_end(name)
        status = lambda: self.surety(stack, "provider", "provider", "status")  # noqa: E731
        wait.until("the provider to be registered", lambda: status()["last_sign_of_life"] is not None, READY_SECONDS)
        self.assertEqual(status()["bonded"], "1000000000000000")
        self.assertEqual(stack.log("init").count("bonding"), 1)

    def test_an_operators_node_and_faucet_answer_on_a_test_network(self):
        key = write_secret(self.folder / "faucet.key", "//Surety//testnet//0")
        spec = raw_spec(self.programs / "surety-node", "testnet")
        stack = self.stack("testnet.yml", {"/etc/surety/chain.json": spec, "/run/secrets/faucet_key": key})
        stack.up()
        stack.wait_until_healthy("faucet")
        self.assertTrue((stack.volume("node") / "node.key").exists())

    def test_every_service_that_goes_on_is_started_again_and_says_how_it_is(self):
        for name in ("compose.yml", "testnet.yml"):
            for service, config in read(name)["services"].items():
                goes_on = service in ("node", "faucet", "provider")
                self.assertEqual("healthcheck" in config, goes_on, f"{service} of {name}")
                self.assertEqual(config.get("restart") == "on-failure", goes_on, f"{service} of {name}")

    def test_a_provider_with_devices_is_the_same_but_for_them(self):
        plain, cuda = read("compose.yml")["services"], read("compose.yml", "cuda.yml")["services"]
        provider = cuda["provider"]
        self.assertEqual({**cuda, "provider": None}, {**plain, "provider": None})
        self.assertEqual(provider["build"]["target"], "worker-cuda")
        dockerfile = (support.REPO / "docker" / "Dockerfile").read_text()
        [compiler] = re.findall(r"nvidia-cuda-nvrtc\S*==\S+", dockerfile)
        checked = re.search(r'^COMPILERS="(.*)"', (support.REPO / "scripts" / "check-cuda").read_text(), re.MULTILINE)
        self.assertIn(compiler, checked[1].split(), "another compiler than those whose kernels were checked")
        [device] = provider["deploy"]["resources"]["reservations"]["devices"]
        self.assertEqual((device["driver"], device["capabilities"]), ("nvidia", ["gpu"]))
        # One device is given, and the first of those is chosen.
        self.assertEqual(len(device["device_ids"]), 1)
        self.assertEqual(provider["command"], [*plain["provider"]["command"], "--device", "cuda:0"])
        self.assertEqual(provider["volumes"], plain["provider"]["volumes"])
        self.assertEqual(provider["healthcheck"], plain["provider"]["healthcheck"])


if __name__ == "__main__":
    unittest.main()
