"""What is wrong must be said, with an exit code of its own, and change nothing.

Not a module of tests by itself: `test_2_provider_dead` runs it while it waits.
"""

import contextlib
import os
import shutil
import subprocess
import unittest
from pathlib import Path

import support
from devnet_lib.devnet import GENERATOR, MODEL, TEXT
from devnet_lib.folders import cache_dir, write_secret
from devnet_lib.models import GENERATOR_CONTEXT

# An account that no other test uses.
CLIENT = "//Bob//stash"
USAGE, NODE, CHAIN, DATA, FILE = 2, 3, 4, 6, 7


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.net = support.devnet()
        cls.home = cls.net.run_dir / "bad-input"
        cls.home.mkdir()
        cls.key = write_secret(cls.home / "account.key", CLIENT)
        cls.surety = cls.net.surety(cls.home, cls.key)
        cls.address = cls.surety.run("account", "show")["address"]

    def folder(self):
        path = self.home / self.id().rsplit(".", 1)[-1]
        path.mkdir()
        return path

    def file(self, name, content):
        path = self.folder() / name
        path.write_bytes(content)
        return path

    def refused(self, code, says, *args, surety=None, env=None):
        """Runs a command that must fail like this, without so much as a transaction."""
        chain = self.net.chain
        before = chain.account(self.address), chain.next_nonce(self.address)
        outcome = (surety or self.surety).attempt(*args, env=env, timeout=support.SOON_SECONDS)
        shown = f"{outcome.code}: {outcome.stderr}{outcome.stdout}"
        self.assertEqual(outcome.code, code, shown)
        last = outcome.stderr[outcome.stderr.find("error:") :]
        self.assertIn(says, last, shown)
        self.assertNotIn("panicked", outcome.stderr)
        self.assertEqual(outcome.stdout, "")
        self.assertEqual((chain.account(self.address), chain.next_nonce(self.address)), before)
        return outcome

    def submit(self, **options):
        """A submission that is all right but for `options`."""
        changes = {"--" + name.replace("_", "-"): value for name, value in options.items()}
        args = self.net.task_args() + ["--out", self.home / "out.safetensors"]
        for flag, value in changes.items():
            if flag in args:
                args[args.index(flag) + 1] = value
            else:
                args += [flag, value]
        # The port of the others is taken.
        args[args.index("--listen") + 1] = f"127.0.0.1:{self.net.ports.client() + 2}"
        return args

    # --- the task ---------------------------------------------------------------------------------------------------

    def test_an_unknown_model(self):
        self.refused(CHAIN, 'unknown model "gpt-9"', *self.submit(model="gpt-9"))
        unknown = "0x" + "77" * 32
        self.refused(CHAIN, f'unknown model "{unknown}"', *self.submit(model=unknown))

    def test_a_redundancy_of_zero_or_too_much(self):
        for wrong in (0, 17):
            self.refused(USAGE, f"{wrong} is not in 1..=16", *self.submit(redundancy=wrong))

    def test_a_cap_below_the_fee(self):
        self.refused(CHAIN, "does not cover the fee", *self.submit(cap="1 planck"))

    def test_a_cap_below_what_the_work_is_worth(self):
        # The fee, and a planck for each provider.
        self.refused(CHAIN, "the chain takes no less than", *self.submit(cap="10000000003 planck"))

    def test_a_cap_that_is_no_amount(self):
        outcome = self.surety.attempt(*self.submit(cap="much"))
        self.assertEqual(outcome.code, USAGE)
        self.assertIn('unknown unit "much"; amounts are in SURE or planck', outcome.stderr)

    def test_an_oversized_spec_is_refused_by_the_chain_for_a_fee_and_nothing_more(self):
        chain = self.net.chain
        before, next_task = chain.account(self.address), chain.next_task()
        outcome = self.surety.attempt(*self.generation("--units-max", 40_001))
        self.assertEqual(outcome.code, CHAIN, outcome.stderr)
        self.assertIn("TaskAuction.TooManyUnits", outcome.stderr)

        # Until then a reorganisation can give the fee back, and take it again during another test.
        def charged():
            account = chain.account(self.address)
            is_all = account["nonce"] >= chain.next_nonce(self.address)
            return account if is_all and account["nonce"] > before["nonce"] else None

        after = support.wait.until("the fee to be final", charged, support.SOON_SECONDS, self.net.supervisor.check)
        self.assertEqual(after["held"], before["held"])
        fee = before["free"] - after["free"]
        self.assertTrue(0 < fee < 10**12, f"{fee} plancks are no fee")
        posted = (chain.task(task) for task in range(next_task, chain.next_task()))
        self.assertNotIn(self.address, [view["client"] for view in posted if view], "others may post meanwhile")

    def test_an_unknown_task(self):
        out = ("--out", self.home / "never")
        self.refused(CHAIN, "the chain knows no task 999999", "task", "watch", "999999", *out)
        self.refused(CHAIN, "the chain knows no task 999999", "task", "result", "999999", *out)

    # --- the input --------------------------------------------------------------------------------------------------

    def test_an_input_that_is_no_text(self):
        path = self.file("binary", b"good line\n\xff\xfe\n")
        self.refused(FILE, "not UTF-8 from byte 10 on", *self.submit(file=path))

    def test_an_input_with_more_lines_than_are_to_be_paid_for(self):
        self.refused(FILE, "more than 79 items", *self.submit(units_max=79))

    def test_an_empty_input(self):
        path = self.file("empty", b"\n\n")
        self.refused(FILE, "there is no item in it", *self.submit(file=path))

    def test_a_missing_input(self):
        self.refused(FILE, "/nowhere/text", *self.submit(file="/nowhere/text"))

    def test_an_input_that_is_too_long(self):
        path = self.file("large", b"a line like any other\n" * 60_000)
        says = "it takes more than the 1024 KiB that a task may have: cut it into several"
        self.refused(USAGE, says, *self.submit(file=path, units_max=60_000))

    # --- generation -------------------------------------------------------------------------------------------------

    def generation(self, *flags, prompt="It is", model=GENERATOR):
        args = ["task", "submit", "--raw", "--prompt", prompt, "--model", model, "--cap", "1 SURE", *flags]
        return [*args, "--listen", f"127.0.0.1:{self.net.ports.client() + 2}"]

    def test_a_request_out_of_range(self):
        self.refused(
            USAGE, "max_tokens is 5000, but must be between 1 and 4096", *self.generation("--max-tokens", 5000)
        )
        self.refused(USAGE, "must be between 0 and 10", *self.generation("--temperature", "10.1"))
        self.refused(USAGE, "must be between 0.001 and 1", *self.generation("--top-p", 0))
        self.refused(USAGE, "there is no token in it", *self.generation(prompt=""))

    def test_a_prompt_that_is_no_text(self):
        path = self.file("prompt", b"good\xff")
        args = self.generation()
        args[args.index("--prompt") : args.index("--prompt") + 2] = ["--prompt-file", path]
        self.refused(FILE, "not UTF-8 from byte 4 on", *args)

    def test_a_model_without_the_operation(self):
        self.refused(USAGE, f"{MODEL} does not offer to generate text", *self.generation(model=MODEL))
        self.refused(USAGE, f"{GENERATOR} does not offer to embed text", *self.submit(model=GENERATOR))

    def test_a_prompt_over_the_models_context(self):
        says = f"is over the model's {GENERATOR_CONTEXT}"
        self.refused(USAGE, says, *self.generation("--max-tokens", GENERATOR_CONTEXT))

    def test_flags_that_an_output_has_no_use_for(self):
        task = support.happy_life()["task"]
        self.refused(USAGE, "there is nothing for --follow", "task", "watch", task, "--follow")
        self.refused(USAGE, "--out FILE says where the vectors go", "task", "result", task)

    # --- addresses, keys, the node ----------------------------------------------------------------------------------

    def test_a_malformed_multiaddr(self):
        for wrong in ("/ip4/300.0.0.1/tcp/1", "/ip4/127.0.0.1/sctp/1", "nonsense"):
            self.refused(USAGE, f'task.external: cannot listen on "{wrong}"', *self.submit(external=wrong))

    def test_a_file_that_holds_no_key(self):
        surety = self.net.surety(self.home, write_secret(self.folder() / "key", "these are not the words"))
        outcome = self.refused(FILE, "key", *self.submit(), surety=surety)
        self.assertNotIn("not the words", outcome.stderr, "a secret is never shown")

    def test_a_key_that_others_can_read(self):
        path = write_secret(self.folder() / "key", CLIENT)
        path.chmod(0o644)
        self.refused(FILE, f"chmod 600 {path}", *self.submit(), surety=self.net.surety(self.home, path))

    def test_a_missing_key(self):
        surety = self.net.surety(self.home, "/nowhere/key")
        self.refused(FILE, "surety account new", *self.submit(), surety=surety)

    def test_a_key_without_money(self):
        surety = self.net.surety(self.home, write_secret(self.folder() / "key", "//Nobody//knows//this"))
        self.refused(CHAIN, "has 0 SURE free, and this task needs", *self.submit(), surety=surety)

    def test_a_key_that_is_nobodys_agent(self):
        self.refused(USAGE, "is nobody's agent yet", *self.provider_up(self.home), surety=self.worker(self.home))

    def test_a_node_that_is_down(self):
        surety = self.net.surety(self.home, self.key, rpc="ws://127.0.0.1:1")
        self.refused(NODE, "no node answers at ws://127.0.0.1:1", *self.submit(), surety=surety)

    def test_an_address_of_a_node_that_is_none(self):
        surety = self.net.surety(self.home, self.key, rpc="http://127.0.0.1:9944")
        self.refused(USAGE, "must start with ws:// or wss://", *self.submit(), surety=surety)

    def test_a_configuration_that_cannot_be_read(self):
        path = self.file("config.toml", b"[provider]\nthreads = 'many'\n")
        self.refused(USAGE, "threads", *self.submit(), "--config", path)

    # --- the disk ---------------------------------------------------------------------------------------------------

    def worker(self, home, key=None):
        """`surety` with the models' files at hand."""
        if not (home / "models").exists():
            (home / "models").symlink_to(cache_dir() / "models")
        return self.net.surety(home, key or self.key)

    def provider_up(self, home):
        return ["provider", "up", "--listen", f"127.0.0.1:{self.net.ports.client() + 3}", "--threads", "1"]

    @contextlib.contextmanager
    def tiny_disk(self, kib):
        """A file system with hardly any room."""
        if os.geteuid():
            self.skipTest("only root can mount a file system")
        path = self.folder()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", path]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            self.skipTest("no file system can be mounted here")
        try:
            yield path
        finally:
            subprocess.run(["umount", path], check=True)

    def test_a_disk_too_full_for_the_input(self):
        text = self.home / "large.txt"
        text.write_bytes(b"a line like any other\n" * 10_000)
        with self.tiny_disk(64) as home:
            surety = self.net.surety(home, self.key)
            args = self.submit(file=text, units_max=10_000)
            outcome = self.refused(DATA, "disk is full", *args, surety=surety)
            self.assertIn(str(home), outcome.stderr)
            self.assertEqual(list((home / "blobs").glob("??/*")), [], "nothing half written is left")

    def test_a_disk_too_full_for_the_journal(self):
        with self.tiny_disk(64) as home:
            surety = self.worker(home)
            (home / "filler").write_bytes(bytes(60 * 1024))
            self.refused(FILE, "no space left for the journal", *self.provider_up(home), surety=surety)
            # With room it goes on from there: what stops it now is the key.
            subprocess.run(["mount", "-o", "remount,size=8m", home], check=True)
            self.refused(USAGE, "is nobody's agent yet", *self.provider_up(home), surety=surety)

    def test_a_corrupt_journal(self):
        home = self.folder()
        dead = self.net.spares[0]
        for source, damage in ((b"not a journal" * 1000, 0), (None, 3000)):
            journal = bytearray(source or (dead.surety.home / "journal.redb").read_bytes())
            if damage:
                journal = journal[:damage]
            (home / "journal.redb").write_bytes(journal)
            surety = self.worker(home, dead.surety.key_file)
            self.refused(FILE, "journal.redb is damaged", *self.provider_up(home), surety=surety)
            # It is evidence, and may be restorable: nobody may write to it.
            self.assertEqual((home / "journal.redb").read_bytes(), bytes(journal))

    def test_a_corrupt_model(self):
        home = self.folder()
        shutil.copytree(cache_dir() / "models" / MODEL, home / "models" / MODEL)
        weights = home / "models" / MODEL / "model.safetensors"
        with open(weights, "r+b") as file:
            middle = weights.stat().st_size // 2
            file.seek(middle)
            byte = file.read(1)[0]
            file.seek(middle)
            file.write(bytes([byte ^ 1]))
        says = f"{weights} has the hash"
        dead = self.net.spares[0]
        self.refused(FILE, says, *self.provider_up(home), surety=self.net.surety(home, dead.surety.key_file))
        self.refused(FILE, says, "model", "register", MODEL, surety=self.net.surety(home, self.key))

    def test_an_output_that_is_not_of_this_text(self):
        out = Path(support.happy_life()["output_path"])
        text = self.file("short", b"one line\n")
        self.refused(USAGE, "do not belong together", "task", "nearest", "--input", text, "--output", out)
        self.refused(DATA, "cannot be read", "task", "nearest", "--input", text, "--output", TEXT)
