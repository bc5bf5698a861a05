"""A network of this process's own: loopback, and nothing else."""

import ctypes
import fcntl
import os
import socket
import struct
import unittest
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1


def enter():
    """Moves this process, and what it starts from now on, into a network namespace that it makes.

    A test that needs one is skipped where the system lets nobody make any.
    """
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET if uid == 0 else CLONE_NEWUSER | CLONE_NEWNET
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        raise unittest.SkipTest(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}")
    if uid != 0:
        for name, text in [("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")]:
            Path(f"/proc/self/{name}").write_text(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
