"""Network namespaces, and a network between them that takes its time.

Every namespace has a TUN device, and a process here passes packets on between them, each after the delay: what netem
does in the kernel, where the kernel has it. Connections are the nodes' own TCP over that, so that whatever waits for an
answer waits for both ways.
"""

import collections
import contextlib
import ctypes
import fcntl
import multiprocessing
import os
import select
import signal
import socket
import struct
import time

from .errors import BenchError

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x1, 0x1000
SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS, IFF_UP = 0x8916, 0x891C, 0x8914, 0x1
PR_SET_PDEATHSIG = 1
NETWORK, MASK = "10.213.0.{}", "255.255.255.0"
PACKET_BYTES = 64 * 1024
# Of an IPv4 packet.
DESTINATION = slice(16, 20)
# More packets than that are on their way only when something is wrong: those that come then are lost.
PACKETS_MAX = 100_000
_LIBC = ctypes.CDLL(None, use_errno=True)


def _must(what, code):
    if code:
        raise BenchError(f"{what}: {os.strerror(ctypes.get_errno())}; network namespaces need root and /dev/net/tun")


def _own():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def _configure(request, name, payload):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, request, struct.pack("16s", name) + payload)


def _inet(address):
    return struct.pack("H2x4s8x", socket.AF_INET, socket.inet_aton(address))


def _tap(address):
    """A device of this namespace with an address, as what it sends."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"delay", IFF_TUN | IFF_NO_PI))
    _configure(SIOCSIFADDR, b"delay", _inet(address))
    _configure(SIOCSIFNETMASK, b"delay", _inet(MASK))
    for name in (b"lo", b"delay"):
        _configure(SIOCSIFFLAGS, name, struct.pack("H14x", IFF_UP))
    return tap


def _pass_on(taps, seconds):
    """Packets from each device to whom they are for, for good."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Ctrl-C is for who started us, and ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    poll = select.epoll()
    for tap in taps.values():
        poll.register(tap, select.EPOLLIN)
    # All wait as long, so that who came first goes first.
    waiting = collections.deque()
    while True:
        first = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for source, _ in poll.poll(first):
            with contextlib.suppress(BlockingIOError):
                while packet := os.read(source, PACKET_BYTES):
                    to = taps.get(packet[DESTINATION]) if packet[0] >> 4 == 4 else None
                    if to is not None and len(waiting) < PACKETS_MAX:
                        waiting.append((time.monotonic() + seconds, to, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, to, packet = waiting.popleft()
            # Whose queue is full loses it, as everywhere.
            with contextlib.suppress(BlockingIOError):
                os.write(to, packet)


class Namespaces:
    """So many of them, each one delay away from every other."""

    def __init__(self, count, delay_seconds):
        self._home, self._spaces, taps = _own(), [], {}
        try:
            for place in range(count):
                address = self.address(place)
                _must("no network namespace can be made", _LIBC.unshare(CLONE_NEWNET))
                self._spaces.append(_own())
                taps[socket.inet_aton(address)] = _tap(address)
        except OSError as error:
            raise BenchError(f"no device for a network of our own: {error}; it needs root and /dev/net/tun") from None
        finally:
            if self._spaces:
                self._return()
        process = multiprocessing.get_context("fork").Process(target=_pass_on, args=(taps, delay_seconds), daemon=True)
        process.start()
        self._process = process
        # The devices are there as long as that process.
        for tap in taps.values():
            os.close(tap)

    def _return(self):
        _must("a network namespace cannot be left", _LIBC.setns(self._home, CLONE_NEWNET))

    def address(self, place):
        """Of a namespace, for the others."""
        return NETWORK.format(place + 1)

    @contextlib.contextmanager
    def inside(self, place):
        """What this thread starts and opens meanwhile belongs to a namespace."""
        _must("a network namespace cannot be entered", _LIBC.setns(self._spaces[place], CLONE_NEWNET))
        try:
            yield
        finally:
            self._return()

    def close(self):
        """Ends the network. The namespaces go with the last process in each."""
        self._process.kill()
        self._process.join()
        for space in (*self._spaces, self._home):
            os.close(space)
