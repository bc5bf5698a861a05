"""One bench at a time: two would measure each other, and their networks take the same ports."""

import contextlib
import fcntl
import os
import sys

from devnet_lib.folders import cache_dir

from .errors import AnotherRuns, BenchError


@contextlib.contextmanager
def alone():
    """While this lasts no other bench of this user begins. However the process ends, it keeps nobody out after that."""
    path = cache_dir() / "bench.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise AnotherRuns(lock.read() or "one that has just begun") from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()}, scripts/bench {' '.join(sys.argv[1:])}")
        lock.flush()
        yield


def main():
    """Before anything is built: is there another?"""
    try:
        with alone():
            return 0
    except BenchError as error:
        print(f"FAILED: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
