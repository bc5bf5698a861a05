"""The commands that documents show, run from the documents against a network of their own.

Clients and providers listen where the documents say, and the documents' provider would take tasks of other tests: so
this network is out of everybody's reach.
"""

import os
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import commands
import namespace
import support
from devnet_lib import wait
from devnet_lib.devnet import MODEL
from devnet_lib.folders import cache_dir

# They take minutes, and share no port, file or account with any other: so they are run beside them.
BESIDE = ("docs/guides/validator.md",)


def prepare_home(home):
    """What a reader has in the same place after `scripts/devnet`, and what a fetch has fetched."""
    cache = home / ".cache" / "surety"
    cache.mkdir(parents=True)
    for name in ("models", "demo-source"):
        (cache / name).symlink_to(cache_dir() / name)
    for worker in ("surety-provider", "surety-verifier"):
        fetched = home / worker / "models"
        fetched.mkdir(parents=True)
        (fetched / MODEL).symlink_to(cache_dir() / "models" / MODEL)


def is_gone(group):
    """Whether no process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


class Blocks(unittest.TestCase):
    """How documents say what is run."""

    def written(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "page.md"
            path.write_text(text)
            return commands.blocks(path)

    def ends_with(self, text):
        with tempfile.TemporaryDirectory() as folder:
            home, log = Path(folder) / "home", Path(folder) / "log"
            return commands.run(self.written(text), home, "/nowhere", log), log.read_text()

    def test_a_block_that_fails_is_named(self):
        code, said = self.ends_with("```sh\ntrue\n```\n\n```sh\nfalse\necho never\n```\n")
        self.assertNotEqual(code, 0)
        self.assertIn("FAILED: false", said)
        self.assertNotIn("never", said)

    def test_the_last_command_of_a_block_can_go_on(self):
        comment = '<!-- commands: the last goes on, what follows waits for "here" -->\n'
        pages = "```sh\nA=1\necho here $A $$; sleep 1000\n```\n```sh\necho after $A $$\n```\n"
        code, said = self.ends_with(comment + pages)
        after, one, session = said.splitlines()[-1].split()
        self.assertEqual((code, after, one), (0, "after", "1"))
        # And has ended with it.
        wait.until("its end", lambda: is_gone(int(session)), 60)

    def test_what_ends_before_it_says_what_is_waited_for_fails(self):
        comment = '<!-- commands: the last goes on, what follows waits for "here" -->\n'
        self.assertNotEqual(self.ends_with(comment + "```sh\necho gone\n```\n")[0], 0)

    def test_a_block_can_wait_until_a_command_says_something(self):
        comment = '<!-- commands: waits until `cat said` says "here" -->\n'
        before = "```sh\n(sleep 1; echo here >said) & touch said\n```\n"
        code, said = self.ends_with(before + comment + "```sh\necho then $(cat said)\n```\n")
        self.assertEqual((code, said.splitlines()[-1]), (0, "then here"), said)

    def test_a_block_that_is_not_run_says_why(self):
        block = self.written("<!-- commands: not run, it takes an hour -->\n```sh\nfalse\n```\n")[0]
        self.assertEqual(block.why, "it takes an hour")
        with self.assertRaises(commands.Unreadable):
            self.written("<!-- commands: not run -->\n```sh\nfalse\n```\n")

    def test_every_block_says_what_it_is(self):
        self.assertEqual(self.written("```text\nfalse\n```\n"), [])
        for language in ("", "bash", "console"):
            with self.assertRaisesRegex(commands.Unreadable, "page.md:2"):
                self.written(f"A page.\n```{language}\nfalse\n```\n")


class Documents(unittest.TestCase):
    """Every document of the checkout."""

    def test_every_block_runs(self):
        namespace.enter()
        net = support.devnet()
        home = net.run_dir / "reader"
        prepare_home(home)
        count, not_run, shown = 0, [], {}
        for document in commands.documents():
            blocks = commands.blocks(document)
            not_run += [f"{block.place}: {block.why}" for block in blocks if block.why]
            blocks = [block for block in blocks if not block.why]
            if blocks:
                shown[str(document.relative_to(support.REPO))] = blocks
            count += len(blocks)
        log = {name: net.logs / f"{name.replace('/', '-')}.log" for name in shown}
        with ThreadPoolExecutor(len(BESIDE)) as pool:
            run = lambda name: commands.run(shown[name], home, net.bin, log[name])  # noqa: E731
            codes = {name: pool.submit(run, name).result for name in BESIDE}
            # Others one after the other: ports and files of one are those of the next.
            for name in [name for name in shown if name not in BESIDE] + list(BESIDE):
                with self.subTest(name):
                    code = codes[name]() if name in codes else run(name)
                    self.assertEqual(code, 0, log[name].read_text())
        told = "\n  ".join([f"{count} blocks were run, {len(not_run)} were not:", *not_run])
        print(told, file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
