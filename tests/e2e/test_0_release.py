"""A release: what is in the archive, and that it installs nothing that was tampered with."""

import hashlib
import os
import re
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

    def install(self, release, prefix, **options):
        argv = [release / "install", "--prefix", prefix]
        return subprocess.run(argv, env=BARE, capture_output=True, text=True, check=False, **options)

    def files(self, folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    def commands(self, program, *words):
        """Every command of a program, by the help that it gives itself."""
        yield words
        argv = [program, *words, "--help"]
        said = subprocess.run(argv, env=BARE, capture_output=True, text=True, check=True).stdout
        listed = re.search(r"^Commands:\n((?:  .*\n)+)", said, re.MULTILINE)
        for line in listed[1].splitlines() if listed else []:
            # Lines that go on are further in.
            word = re.match(r"  ([a-z-]+)", line)
            if word and word[1] != "help":
                yield from self.commands(program, *words, word[1])

    def test_nothing_is_missing_and_nothing_else_is_there(self):
        release = self.unpacked("complete")
        commands = self.commands(release / "bin" / "surety")
        pages = {f"share/man/man1/{'-'.join(('surety', *words))}.1" for words in commands}
        self.assertGreater(len(pages), 30)
        units = {f"lib/systemd/system/surety-{what}.service" for what in ("node", "provider", "verifier")}
        completions = {
            "share/bash-completion/completions/surety",
            "share/zsh/site-functions/_surety",
            "share/fish/vendor_completions.d/surety.fish",
        }
        rest = {"bin/surety", "bin/surety-node", "install", "LICENSE", "README.md", "SHA256SUMS"}
        found = self.files(release)
        # `surety man` has a page for each `help`, too.
        helps = {name for name in found if re.search(r"man1/surety-(.+-)?help(-.+)?\.1$", name)}
        self.assertEqual(found - helps, pages | units | completions | rest)
        for name in found:
            self.assertGreater((release / name).stat().st_size, 0, name)

    def test_every_file_has_a_checksum_and_anybody_may_read_it(self):
        release = self.unpacked("sums")
        sums = (release / "SHA256SUMS").read_text().splitlines()
        named = {line.split("  ./", 1)[1] for line in sums}
        self.assertEqual(named, self.files(release) - {"SHA256SUMS"})
        for path in release.rglob("*"):
            self.assertEqual(path.stat().st_mode & 0o044, 0o044, path)
        argv = ["sha256sum", "--check", "--strict", f"{self.archive.name}.sha256"]
        subprocess.run(argv, cwd=DIST, check=True, capture_output=True)

    def test_it_installs_programs_pages_and_completions_again_too(self):
        release, prefix = self.unpacked("whole"), self.folder / "a prefix"
        for _ in range(2):
            installed = self.install(release, prefix)
            self.assertEqual(installed.returncode, 0, installed.stderr)
        for program in ("surety", "surety-node"):
            said = subprocess.run([prefix / "bin" / program, "--version"], env=BARE, capture_output=True, check=True)
            self.assertTrue(said.stdout.startswith(program.encode()), said.stdout)
        parts = ("share", "lib", "bin")
        shipped = {name for name in self.files(release) if name.split("/")[0] in parts}
        self.assertEqual(self.files(prefix), shipped)
        units = sorted((prefix / "lib" / "systemd" / "system").glob("surety-*.service"))
        for unit in units:
            start = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)[1]
            self.assertTrue(start.startswith(f'"{prefix}/bin/surety'), start)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "scripts/setup --test installs systemd-analyze")
    def test_systemd_takes_the_units(self):
        release, prefix = self.unpacked("units"), self.folder / "for systemd"
        self.assertEqual(self.install(release, prefix).returncode, 0)
        units = sorted((prefix / "lib" / "systemd" / "system").glob("surety-*.service"))
        self.assertEqual(len(units), 3)
        verified = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))

    def test_a_file_that_was_changed_is_not_installed(self):
        release, prefix = self.unpacked("changed"), self.folder / "nowhere"
        with open(release / "bin" / "surety", "ab") as program:
            program.write(b" ")
        refused = self.install(release, prefix)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("not as they were released", refused.stderr)
        self.assertFalse((prefix / "bin").exists())

    def test_a_folder_is_meant_as_it_is_seen_from_where_one_is(self):
        release, here = self.unpacked("relative"), self.folder / "here"
        here.mkdir()
        installed = self.install(release, "there", cwd=here)
        self.assertEqual(installed.returncode, 0, installed.stderr)
        self.assertTrue((here / "there" / "bin" / "surety").is_file())
        nowhere = subprocess.run([release / "install", "--prefix"], env=BARE, capture_output=True, check=False)
        self.assertNotEqual(nowhere.returncode, 0)
        self.assertIn(b"--prefix needs a folder", nowhere.stderr)

    def test_an_install_that_fails_leaves_the_old_programs(self):
        release, prefix = self.unpacked("failing"), self.folder / "old"
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin" / "surety").write_text("the old one")
        # No folder can be made there.
        (prefix / "share").mkdir()
        (prefix / "share" / "man").write_text("")
        failed = self.install(release, prefix)
        self.assertNotEqual(failed.returncode, 0)
        self.assertEqual((prefix / "bin" / "surety").read_text(), "the old one")
        self.assertEqual([path.name for path in (prefix / "bin").iterdir()], ["surety"])

    def test_the_same_programs_give_the_same_archive(self):
        before = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        again = make()
        self.assertEqual(hashlib.sha256(again.read_bytes()).hexdigest(), before)
        self.assertIn(before, Path(f"{again}.sha256").read_text())


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    unittest.main()
