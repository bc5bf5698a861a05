"""A release: what is in the archive, and that it installs nothing that was tampered with."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import support

DIST = support.REPO / "target" / "dist"
# Nothing of the machine that it was made on.
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"}


def make():
    """The archive of the programs under test."""
    argv = [support.REPO / "scripts" / "release", "--no-build"]
    made = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return DIST / made.split()[-1]


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.archive = make()
        cls.folder = Path(tempfile.mkdtemp(prefix="surety-release-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def unpacked(self, name):
        folder = self.folder / name
        folder.mkdir()
        subprocess.run(["tar", "-xzf", self.archive, "-C", folder], check=True)
        return next(folder.iterdir())

    def install(self, release, prefix):
        return subprocess.run(
            [release / "install", "--prefix", prefix], env=BARE, capture_output=True, text=True, check=False
        )

    def test_it_installs_programs_pages_and_completions_again_too(self):
        release, prefix = self.unpacked("whole"), self.folder / "prefix"
        for _ in range(2):
            installed = self.install(release, prefix)
            self.assertEqual(installed.returncode, 0, installed.stderr)
        for program in ("surety", "surety-node"):
            said = subprocess.run([prefix / "bin" / program, "--version"], env=BARE, capture_output=True, check=True)
            self.assertTrue(said.stdout.startswith(program.encode()), said.stdout)
        for file in ("man/man1/surety-task-submit.1", "bash-completion/completions/surety"):
            self.assertGreater((prefix / "share" / file).stat().st_size, 0)
        units = sorted((prefix / "lib" / "systemd" / "system").glob("surety-*.service"))
        self.assertEqual(len(units), 3)
        if shutil.which("systemd-analyze"):
            argv = ["systemd-analyze", "verify", *units]
            verified = subprocess.run(argv, capture_output=True, text=True, check=False)
            self.assertEqual((verified.returncode, verified.stderr), (0, ""))

    def test_a_file_that_was_changed_is_not_installed(self):
        release, prefix = self.unpacked("changed"), self.folder / "nowhere"
        with open(release / "bin" / "surety", "ab") as program:
            program.write(b" ")
        refused = self.install(release, prefix)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("not as they were released", refused.stderr)
        self.assertFalse((prefix / "bin").exists())

    def test_the_same_programs_give_the_same_archive(self):
        before = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        again = make()
        self.assertEqual(hashlib.sha256(again.read_bytes()).hexdigest(), before)
        self.assertIn(before, Path(f"{again}.sha256").read_text())


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    unittest.main()
