"""The `surety` command: one call each, with its result as JSON; and other commands in the same way."""

import json
import subprocess
import threading
from pathlib import Path

from . import wait
from .errors import CommandFailed
from .processes import LOOK_SECONDS, child_options


def attempt(supervisor, argv, *, on_line=None, on_output=None, timeout=600, env=None):
    """Runs a command to its end, whatever that is; it is killed when it takes too long, and what it said says so.

    `on_line` gets each line of standard error as it is said, `on_output` each of standard output.
    """
    said = []

    def read(stream):
        for line in stream:
            said.append(line)
            if on_line:
                on_line(line.rstrip())

    argv = [str(part) for part in argv]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **child_options(env))
    # Leaving it closes the pipes.
    with process, supervisor.watched(process):
        reader = threading.Thread(target=read, args=(process.stderr,), daemon=True)
        reader.start()
        over, late = threading.Event(), threading.Event()
        timer = threading.Thread(target=_end_late, args=(process, wait.Limit(timeout), over, late), daemon=True)
        timer.start()
        try:
            printed = []
            for line in process.stdout:
                printed.append(line)
                if on_output:
                    on_output(line.rstrip("\n"))
            code = process.wait()
        finally:
            over.set()
        reader.join()
    if code and late.is_set():
        said.append(f"killed: it had not ended after {timeout:.0f} s\n")
    return Outcome(argv, code, "".join(printed), "".join(said))


def _end_late(process, limit, over, late):
    """Kills a command whose time is over before its end."""
    while not over.wait(max(0.0, min(limit.left, LOOK_SECONDS))):
        if limit.is_over():
            late.set()
            process.kill()
            return


class Surety:
    """`surety` with a home, a key and a node, or several."""

    def __init__(self, supervisor, binary, home, rpc, key_file=None):
        self.supervisor, self.binary = supervisor, binary
        self.home, self.rpc, self.key_file = Path(home), rpc, key_file

    def played_by(self, binary):
        """The same home, key and node with another program."""
        return Surety(self.supervisor, binary, self.home, self.rpc, self.key_file)

    def argv(self, *args):
        """The whole command line. Secrets are never part of it: they are in files."""
        argv = [self.binary, *args, "--home", self.home]
        for rpc in [self.rpc] if isinstance(self.rpc, str) else self.rpc:
            argv += ["--rpc", rpc]
        if self.key_file:
            argv += ["--key-file", self.key_file]
        return [str(part) for part in argv]

    def attempt(self, *args, **options):
        """Runs a command to its end, whatever that is; with options of `attempt`."""
        return attempt(self.supervisor, self.argv(*args, "--json"), **options)

    def run(self, *args, on_line=None, timeout=600, env=None):
        """Runs a command that must succeed, and returns what its JSON says."""
        return self.attempt(*args, on_line=on_line, timeout=timeout, env=env).json()

    def follow(self, *args, on_event=None, **options):
        """Runs a command that prints one event a line, must succeed, and ends with its report. Returns that."""

        def read(line):
            if on_event:
                on_event(json.loads(line))

        outcome = self.attempt(*args, on_output=read, **options)
        return outcome.events()[-1]["report"]

    def start(self, name, *args, env=None):
        """Starts a command that runs until it is stopped."""
        return self.supervisor.start(name, self.argv(*args), env)


class Outcome:
    """How a command ended."""

    def __init__(self, argv, code, stdout, stderr):
        self.argv, self.code, self.stdout, self.stderr = argv, code, stdout, stderr

    def json(self):
        """What it printed; raises when it failed."""
        if self.code:
            raise CommandFailed(self.argv, self.code, self.stdout, self.stderr)
        return json.loads(self.stdout)

    def events(self):
        """What it printed, where that is one event a line; raises when it failed."""
        if self.code:
            raise CommandFailed(self.argv, self.code, self.stdout, self.stderr)
        return [json.loads(line) for line in self.stdout.splitlines()]
