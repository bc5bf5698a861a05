"""Starting, watching and stopping processes so that none is ever left behind.

Each process leads a session of its own: Ctrl-C in the terminal reaches only us, and we stop the others in order.
Should we be killed ourselves, the kernel kills them (PR_SET_PDEATHSIG).
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from . import wait
from .errors import CommandFailed, DevnetError

PR_SET_PDEATHSIG = 1
# How long a process may take to end by itself before it is killed.
STOP_SECONDS = 20.0
# Between two looks at how much time a process has left.
LOOK_SECONDS = 1.0
LOG_TAIL_LINES = 15

# Loaded before any fork: the child must not run the dynamic linker.
_LIBC = ctypes.CDLL(None, use_errno=True)


def _die_with_parent(parent):
    def in_child():
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # It died before we could ask.
            os._exit(1)

    return in_child


def child_options(env=None):
    """How every process is started."""
    return {
        "stdin": subprocess.DEVNULL,
        "env": {**os.environ, **(env or {})},
        "start_new_session": True,
        "preexec_fn": _die_with_parent(os.getpid()),
    }


def _signal_group(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def end_of(popen, seconds_max, stop_seconds=3 * STOP_SECONDS):
    """Waits for the end of a process that was started with `child_options`. Returns its code and whether it was late.

    Who is late is asked to end, with time to stop what it has started, and killed when it does not.
    """
    if has_ended(popen, seconds_max):
        return popen.returncode, False
    end(popen, stop_seconds)
    return popen.returncode, True


def has_ended(popen, seconds_max):
    """Waits for the end of a process. Returns whether it came."""
    limit = wait.Limit(seconds_max)
    while not limit.is_over():
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(min(limit.left, LOOK_SECONDS))
            return True
    return popen.poll() is not None


def end(popen, stop_seconds=3 * STOP_SECONDS):
    """Ends such a process."""
    popen.terminate()
    try:
        popen.wait(stop_seconds)
    except subprocess.TimeoutExpired:
        _signal_group(popen.pid, signal.SIGKILL)
        popen.wait()


def run(argv, seconds_max, **options):
    """Runs a command that must succeed. Returns it with what it said."""
    argv = [str(part) for part in argv]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds_max, check=False, **options)
    except subprocess.TimeoutExpired:
        raise DevnetError(f"`{' '.join(argv)}` took more than {seconds_max:.0f} s") from None
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stdout, done.stderr)
    return done


def memory_of(pid):
    """Resident and peak resident memory of a process, in MiB. Nothing when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.partition(":")[::2] for line in lines)
    # A process that has ended and that nobody has waited for has none.
    if "VmRSS" not in fields:
        return None
    return tuple(int(fields[key].split()[0]) // 1024 for key in ("VmRSS", "VmHWM"))


class Process:
    """A process that we started, with its log."""

    def __init__(self, name, argv, log, env=None):
        # The kernel takes the end of the thread that forked for the end of the parent.
        assert threading.current_thread() is threading.main_thread(), "start processes from the main thread"
        self.name, self.argv, self.log = name, [str(part) for part in argv], Path(log)
        self.started = time.monotonic()
        with open(self.log, "ab") as out:
            self._popen = subprocess.Popen(self.argv, stdout=out, stderr=subprocess.STDOUT, **child_options(env))

    @property
    def pid(self):
        return self._popen.pid

    def returncode(self):
        """None while it runs."""
        return self._popen.poll()

    def check(self):
        """Raises when it has ended."""
        code = self.returncode()
        if code is not None:
            raise DevnetError(f"{self.name} ended with {code}. The end of {self.log}:\n{self.tail()}")

    def tail(self, lines=LOG_TAIL_LINES):
        """The last lines of its log."""
        try:
            text = self.log.read_text(errors="replace").splitlines()[-lines:]
        except OSError as error:
            text = [str(error)]
        return "\n".join("    " + line for line in text)

    def signal(self, number):
        """Sends a signal to it and to whatever it started."""
        if self.returncode() is None:
            _signal_group(self.pid, number)

    def wait(self, seconds):
        """Waits for its end. Returns whether it has ended."""
        return has_ended(self._popen, seconds)

    def kill(self):
        """Ends it the hard way, as a power cut would."""
        self.signal(signal.SIGKILL)
        self._popen.wait()

    def stop(self):
        """Asks it to end, and kills it when it does not."""
        self.signal(signal.SIGTERM)
        if not self.wait(STOP_SECONDS):
            self.kill()

    def memory(self):
        """Resident and peak resident memory, in MiB. Nothing when it has ended."""
        return memory_of(self.pid)


class Supervisor:
    """All processes of a run."""

    def __init__(self, log_dir):
        self.log_dir = Path(log_dir)
        self.processes = []
        self._commands = set()

    @contextlib.contextmanager
    def watched(self, command):
        """Ends a short command, too, when it is left before its end."""
        self._commands.add(command)
        try:
            yield
        finally:
            if command.poll() is None:
                _signal_group(command.pid, signal.SIGKILL)
                command.wait()
            self._commands.discard(command)

    def start(self, name, argv, env=None):
        """Starts a process that `stop` will end. Its log goes to `NAME.log`."""
        process = Process(name, argv, self.log_dir / f"{name}.log", env)
        self.processes.append(process)
        return process

    def check(self):
        """Raises when a process that should run has ended."""
        for process in self.processes:
            process.check()

    def forget(self, process):
        """It may end from now on (a test killed it)."""
        self.processes.remove(process)

    def stop(self):
        """Ends all of them: asks all first, so that they end side by side."""
        for command in list(self._commands):
            _signal_group(command.pid, signal.SIGKILL)
        for process in reversed(self.processes):
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for process in reversed(self.processes):
            if not process.wait(max(0.0, deadline - time.monotonic())):
                process.kill()
        self.processes.clear()
