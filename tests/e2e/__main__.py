"""Runs all end-to-end tests: `python3 tests/e2e`.

Networks mostly wait for their own blocks, so those of different modules run side by side, and so do all tasks of the
modules that share one network.
"""

import importlib
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]

from devnet_lib.processes import child_options, end, end_of  # noqa: E402

# Each kind of cheat takes minutes: two that the runtime judges, always; all by hand, `scripts/devnet --cheat all`.
CHEATS = [
    "test_4_cheats.Cheats.test_an_altered_activation_is_judged_by_the_runtime",
    "test_4_cheats.Cheats.test_a_token_read_wrong_is_judged_by_the_runtime",
]
# On networks of their own, beside that of the others.
BESIDE = [
    ["test_5_chaos"],
    ["test_6_commands"],
    # The second on the network of the first, which proves what there is without it.
    ["test_6_gateway", "test_7_calls"],
    ["test_0_verdict", "test_0_chaos", "test_0_release", "test_3_finality", "test_0_scripts", "test_6_newcomer"]
    # Last: it goes to a network of its own, and stays there.
    + ["test_6_compose"],
    [CHEATS[0]],
    # What is done over channels comes when there is less beside it.
    [CHEATS[1], "test_8_call_cheats"],
]
# In the order in which their tasks are posted: one spare provider after the other.
LIVES = ["test_1_generation", "test_2_provider_dead", "test_1_lives"]
BESIDE_SECONDS = 1800


def begin_lives():
    """Posts the tasks of all modules, and starts again who was killed."""
    modules = [importlib.import_module(name) for name in LIVES]
    for module in modules:
        module.begin()
    for module in modules:
        getattr(module, "go_on", lambda: None)()


def run_lives():
    """The tests of the network that is shared. Returns what of them failed, in words."""
    begin_lives()
    result = unittest.main(module=None, argv=["e2e", "--verbose", *LIVES], exit=False).result
    failed = [f"FAILED: {test}\n{why}" for test, why in result.failures + result.errors]
    return failed if failed or result.wasSuccessful() else ["FAILED: a test that was to fail passed"]


class Beside:
    """Modules in a process of their own, whose output comes at the end."""

    def __init__(self, modules):
        self.modules, self.late = modules, False
        argv = [sys.executable, "-m", "unittest", "--verbose", *modules]
        with tempfile.NamedTemporaryFile(prefix="surety-e2e-", delete=False) as said:
            self.said = Path(said.name)
            self.process = subprocess.Popen(argv, cwd=HERE, stdout=said, stderr=said, **child_options())

    def passed(self):
        """Waits for its end."""
        code, self.late = end_of(self.process, BESIDE_SECONDS)
        return code == 0 and not self.late

    def end(self):
        """Ends it if it still runs, and shows what it said."""
        if self.process.poll() is None:
            end(self.process)
        sys.stderr.write(self.said.read_text())
        if self.late:
            sys.stderr.write(f"FAILED: {', '.join(self.modules)} took more than {BESIDE_SECONDS} s, and was ended\n")
        self.said.unlink()


def main():
    beside, failed = [Beside(modules) for modules in BESIDE], []
    try:
        failed = run_lives()
        passed = [process.passed() for process in beside]
    finally:
        for process in beside:
            process.end()
        # Last, where whoever reads the end of a long log sees it.
        sys.stderr.write("".join(failed))
    return 0 if all(passed) and not failed else 1


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    sys.exit(main())
