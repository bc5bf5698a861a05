"""The programs that are shipped cannot cheat: nothing in them reads how, or names it."""

import mmap
import re
import subprocess
import unittest

import support
from devnet_lib import call_cheats, cheats
from devnet_lib.folders import CHEAT, binaries

SHIPPED = ("surety", "surety-node")
SWITCHES = ("SURETY_CHEAT", "SURETY_CRASH_AT", "crash-at", "as --cheat demands")
POINTS = ("after-journal-commit", "mid-generation", "after-audit", "after-move")
# Words that any program may have: only their switch tells.
COMMON = ("lazy", "abort", "crowding")
KINDS = (*cheats.CHEATS, *call_cheats.PLAYED)


def found_in(name, words):
    """Which of the words are among a program's bytes."""
    with open(binaries(CHEAT) / name, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        return [word for word in words if held.find(word.encode()) >= 0]


def telling():
    """Whatever only a program that can cheat has."""
    return [*SWITCHES, *POINTS, *(kind for kind in KINDS if kind not in COMMON)]


class Shipped(unittest.TestCase):
    def test_what_is_looked_for_is_in_the_program_that_cheats(self):
        self.assertEqual(found_in(CHEAT, telling()), telling())

    def test_no_shipped_program_has_any_of_it(self):
        for name in SHIPPED:
            self.assertEqual(found_in(name, telling()), [], name)

    def test_the_cheats_and_points_are_all_that_there_are(self):
        said = subprocess.run([binaries(CHEAT) / CHEAT, "--help"], capture_output=True, text=True, check=True).stdout
        for flag, known in (("--cheat <KIND>", list(KINDS)), ("--crash-at <POINT>", list(POINTS))):
            described = re.split(r"\n +-[-\w]", said[said.index(flag) :])[0]
            listed = re.findall(r"^ +- ([a-z-]+):", described, re.MULTILINE)
            self.assertEqual(sorted(listed), sorted(known))

    def test_no_product_crate_depends_on_a_tool(self):
        tools = {path.parent.name for path in support.REPO.glob("tools/*/Cargo.toml")}
        self.assertIn("cheat", tools)
        argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*/Cargo.toml"]
        listed = subprocess.run(argv, cwd=support.REPO, capture_output=True, check=True)
        manifests = [path for path in listed.stdout.decode().split() if not path.startswith("tools/")]
        self.assertGreater(len(manifests), len(tools))
        for path in manifests:
            for tool in tools:
                self.assertNotIn(f"surety-{tool}", (support.REPO / path).read_text(), path)


if __name__ == "__main__":
    unittest.main()
