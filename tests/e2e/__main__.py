"""Runs all end-to-end tests: `python3 tests/e2e`.

The four validators of `test_3_finality` are on ports of their own and mostly wait, as does the devnet of the others:
both run side by side, which saves minutes.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
BESIDE = ["test_3_finality"]
# Each kind of cheat takes minutes: one of them always, all by hand, `python3 -m unittest test_4_cheats` in here.
CHEAT = "test_4_cheats.Cheats.test_an_altered_activation_is_judged_by_the_runtime"
MODULES = ["test_0_scripts", "test_1_lives", "test_1_generation", "test_2_provider_dead", CHEAT]


def main():
    with tempfile.TemporaryFile("w+") as said:
        beside = subprocess.Popen(
            [sys.executable, "-m", "unittest", "--verbose", *BESIDE], cwd=HERE, stdout=said, stderr=said
        )
        try:
            result = unittest.main(module=None, argv=["e2e", "--verbose", *MODULES], exit=False).result
            code = beside.wait(600)
        finally:
            if beside.poll() is None:
                beside.terminate()
                beside.wait()
        said.seek(0)
        sys.stderr.write(said.read())
    return 0 if result.wasSuccessful() and code == 0 else 1


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    sys.exit(main())
