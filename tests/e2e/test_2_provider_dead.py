"""A provider is killed in the middle of a task. The chain waits out its commit window (90 s), and settles.

Another client meanwhile serves an input that is not what its hash says. What else happens in that time has to work as
ever, so the tests of bad input and of other people's libraries run in it.
"""

import functools
import os
import signal
import subprocess
import unittest

import bad_input
import support
from devnet_lib.devnet import MODEL

DEAD = 0
PAGE = "http://localhost:5173"
# What is generated and compiled for them, and a life.
LIBRARIES_SECONDS = support.LIFE_SECONDS + 600


@functools.cache
def begin():
    """Posts the tasks, and kills a spare provider when it has got to work for one of them."""
    net = support.devnet()
    support.begin_happy_life()
    spare = support.start_spare(DEAD, MODEL)
    args = net.task_args(text=support.short_text(), **support.SPARE_TASK)
    life = support.Life("client-kill", "//Two", 10, args)
    damaged = serve_damaged_input(net)
    libraries = support.waiting().submit(run_libraries, start_helper(net))
    # Ahead of finality: providers start when the assignment is final.
    life.wait_for_state("Running", best=True)
    net.supervisor.forget(spare.process)
    spare.process.kill()
    return life, damaged, libraries


def setUpModule():
    begin()


def serve_damaged_input(net):
    """Posts a task, damages its input in the client's store, and serves that.

    For all three providers: with reserves it would take two commit windows to end. A text of this length is too dear
    for spares.
    """
    client = support.client("damaging-client", "//Eve//stash")
    text = client.home / "text.txt"
    text.write_text("One line.\nAnother line.\n" * 40)
    posted = client.run(*support.at_port(net.task_args(text=text), 1), "--detach")
    name = posted["input_hash"].removeprefix("0x")
    blob = client.home / "blobs" / name[:2] / name
    data = bytearray(blob.read_bytes())
    data[0] ^= 1
    blob.write_bytes(data)
    out = client.home / "out.safetensors"
    process = client.start("client-damaged", "task", "watch", posted["task"], "--out", out)
    net.supervisor.forget(process)
    return {"task": posted["task"], "process": process, "out": out}


def start_helper(net):
    """Starts `surety serve` for a web page. Returns its address once it answers."""
    data, http = (f"127.0.0.1:{net.ports.client() + place}" for place in (11, 12))
    helper = support.client("page-helper", "//Alice//stash")
    process = helper.start("serve", "serve", "--http", http, "--listen", data, "--allow-origin", PAGE)
    said = lambda: "serving" in process.log.read_text()  # noqa: E731
    support.wait.until("`surety serve` to listen", said, support.SOON_SECONDS, net.supervisor.check)
    return f"http://{http}"


def run_libraries(helper):
    """Other people's libraries, and a web page that has its own input computed. Returns what they said."""
    argv = ["npm", "test", "--silent"]
    settled = {"SURETY_TASK": str(support.happy_life()["task"])}
    served = {"SURETY_HTTP": helper, "SURETY_ORIGIN": PAGE}
    environment = {**os.environ, "SURETY_WS": support.devnet().ws, **settled, **served}
    options = {"cwd": support.REPO / "tests/js", "env": environment, "capture_output": True, "text": True}
    try:
        return subprocess.run(argv, timeout=LIBRARIES_SECONDS, check=False, **options)
    except subprocess.TimeoutExpired as late:
        # What it had said by then is bytes, whatever was asked for.
        said = "".join(part.decode(errors="replace") for part in (late.stdout, late.stderr) if part)
        return subprocess.CompletedProcess(late.cmd, -signal.SIGKILL, said, f"\n{late}")


class BadInput(bad_input.BadInput):
    """Here, so that the module is set up before."""


class JavaScript(unittest.TestCase):
    """polkadot.js posts and follows a task; PAPI and smoldot follow the chain; a page has its own input computed."""

    def test_polkadot_js_papi_smoldot_and_a_page_with_a_wallet(self):
        done = begin()[2].result()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("skipped 0", done.stdout)


class ProviderKilledMidTask(unittest.TestCase):
    """One of four."""

    def test_an_input_that_is_not_what_its_hash_says_costs_the_client_its_lock(self):
        net, damaged = support.devnet(), begin()[1]

        def over():
            view = net.chain.task(damaged["task"])
            return view if view and view["state"]["name"] in ("Settled", "Failed") else None

        view = support.wait.until("the damaged task's end", over, support.LIFE_SECONDS, net.supervisor.check)
        self.assertEqual(view["state"]["name"], "Failed")
        self.assertEqual(view["state"]["reason"], "InputWithheld")
        self.assertEqual(view["escrow"], 0)
        self.assertEqual(net.chain.account(view["client"])["held"], 0)
        process = damaged["process"]
        self.assertTrue(process.wait(support.SOON_SECONDS), "the client is still waiting")
        self.assertEqual(process.returncode(), 5, process.tail())
        self.assertIn("damaged", process.log.read_text())
        self.assertIn("the client's lock is lost", process.tail())
        self.assertFalse(damaged["out"].exists())

    def test_the_task_settles_and_the_other_three_are_paid(self):
        net, life = support.devnet(), begin()[0]
        view = life.wait_for_state("Settled", "Failed")
        self.assertEqual(view["state"]["name"], "Settled")
        alive = {provider.stash for provider in net.providers}
        self.assertEqual(set(support.paid(view)), alive)
        self.assertEqual(support.money_out(view), view["cap"])
        self.assertEqual(view["escrow"], 0)
        self.assertEqual(life.finish(), 0, life.process.tail())
        self.assertTrue(life.out.exists())


if __name__ == "__main__":
    unittest.main()
