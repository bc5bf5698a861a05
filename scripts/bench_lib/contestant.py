"""Those who are measured: each a process that loads its model once and then does what it is told, line by line.

A process prints `{"ready": true, ...}` when its model is loaded, then one line of JSON for each line of JSON that it
gets, and ends when there are no more.
"""

import contextlib
import json
import select
import subprocess
import tempfile
import time

from devnet_lib.processes import child_options, memory_of

from .errors import ContestantFailed

LOAD_SECONDS_MAX = 120.0
STOP_SECONDS = 5.0


class Contestant:
    """A process that is measured."""

    def __init__(self, name, argv, env=None, load_seconds_max=LOAD_SECONDS_MAX):
        self.name, self.failure = name, None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in stop()
        options = child_options(env) | {"stdin": subprocess.PIPE}
        begun = time.monotonic()
        try:
            self._process = subprocess.Popen(
                [str(part) for part in argv], stdout=subprocess.PIPE, stderr=self._errors, bufsize=0, **options
            )
        except OSError as error:
            self._errors.close()
            raise ContestantFailed(f"{name} does not start: {error}") from None
        self._unread = b""
        try:
            self.ready = self._answer(load_seconds_max)
        except ContestantFailed:
            self.stop()
            raise
        # From nothing to a model that could answer.
        self.ready["start_seconds"] = time.monotonic() - begun

    def ask(self, seconds_max=60.0, **command):
        """Has it do something, and returns what it says of it."""
        if self.failure:
            raise ContestantFailed(self.failure)
        try:
            self._process.stdin.write((json.dumps(command) + "\n").encode())
        except BrokenPipeError:
            self._fail("ended")
        return self._answer(seconds_max)

    def _answer(self, seconds_max):
        deadline = time.monotonic() + seconds_max
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                self._process.kill()
                self._fail(f"took more than {seconds_max:.0f} s")
            part = self._process.stdout.read(65536)
            if not part:
                self._process.wait()
                self._fail(f"ended with {self._process.returncode}")
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            return json.loads(line)
        except ValueError:
            self._fail(f"said {line[:200]!r}, which is no JSON")

    def _fail(self, what):
        self._errors.seek(0)
        said = self._errors.read().strip()[-1500:]
        self.failure = f"{self.name} {what}: {said}" if said else f"{self.name} {what}"
        raise ContestantFailed(self.failure)

    def peak_memory_mib(self):
        """The most memory it has had until now, in MiB. None when it has ended."""
        memory = memory_of(self._process.pid)
        return memory and memory[1]

    def stop(self):
        """Ends it."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()


@contextlib.contextmanager
def all_of(starters, console):
    """Starts contestants, given as functions, and ends them. Those that cannot be started are left out, and named."""
    running = {}
    try:
        for name, start in starters.items():
            try:
                running[name] = start()
            except ContestantFailed as error:
                console.detail(f"left out: {error}")
        yield running
    finally:
        for contestant in running.values():
            contestant.stop()
