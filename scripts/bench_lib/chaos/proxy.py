"""TCP proxies that do to connections what networks do: drop, freeze, delay, slow down, and damage them."""

import asyncio
import contextlib
import threading
import time

from ..errors import BenchError

CHUNK = 16 * 1024
# What a connection may be made to do.
PASS, REFUSE, FREEZE, DELAY, TRICKLE, DAMAGE = "pass", "refuse", "freeze", "delay", "trickle", "damage"
DELAY_SECONDS = 3.0
TRICKLE_BYTES = 512
TRICKLE_SECONDS = 0.25
SET_SECONDS = 60.0


class Proxies:
    """All proxies, in one thread."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.all = []

    def add(self, name, port, target):
        """Starts a proxy from a port of this machine to another."""
        proxy = Proxy(name, port, target, self._loop)
        asyncio.run_coroutine_threadsafe(proxy.listen(), self._loop).result(SET_SECONDS)
        self.all.append(proxy)
        return proxy

    def close(self):
        """Ends all of them."""
        for proxy in self.all:
            proxy.set(REFUSE)
            self._loop.call_soon_threadsafe(proxy.server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)


class Proxy:
    """One port, passed on to another."""

    def __init__(self, name, port, target, loop):
        self.name, self.port, self.target = name, port, target
        self._loop, self._mode, self._changed = loop, PASS, None
        self._writers, self._tasks = set(), set()
        # When it kept answers from arriving: [(from, to)], by the clock of `time.time`; the last one may go on.
        self.outages = []

    async def listen(self):
        self._changed = asyncio.Event()
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    def set(self, mode):
        """Makes it do something else, to connections there are as well."""
        if self.outages and self.outages[-1][1] is None:
            self.outages[-1] = (self.outages[-1][0], time.time())
        if mode not in (PASS, DELAY):
            self.outages.append((time.time(), None))
        done = threading.Event()
        self._loop.call_soon_threadsafe(self._set, mode, done)
        if not done.wait(SET_SECONDS):
            raise BenchError(f"the proxy {self.name} does not get to {mode}: its thread is stuck, or has ended")

    def _set(self, mode, done):
        self._mode = mode
        self._changed.set()
        self._changed = asyncio.Event()
        if mode == REFUSE:
            for writer in self._writers:
                writer.transport.abort()
        done.set()

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        # Kept, or it might be collected.
        self._tasks.add(task)
        try:
            await self._join(reader, writer)
        finally:
            self._tasks.discard(task)

    async def _join(self, reader, writer):
        if self._mode == REFUSE:
            writer.transport.abort()
            return
        try:
            onward, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        ends = (writer, back)
        self._writers.update(ends)
        try:
            pumps = [asyncio.ensure_future(self._pump(reader, back)), asyncio.ensure_future(self._pump(onward, writer))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            for end in ends:
                self._writers.discard(end)
                end.transport.abort()

    async def _pump(self, reader, writer):
        with contextlib.suppress(OSError, ConnectionError):
            while data := await reader.read(TRICKLE_BYTES if self._mode == TRICKLE else CHUNK):
                while self._mode == FREEZE:
                    await self._changed.wait()
                writer.write(await self._spoil(data))
                await writer.drain()

    async def _spoil(self, data):
        if self._mode == DELAY:
            await asyncio.sleep(DELAY_SECONDS)
        elif self._mode == TRICKLE:
            await asyncio.sleep(TRICKLE_SECONDS)
        elif self._mode == DAMAGE:
            return bytes([data[0] ^ 1]) + data[1:]
        return data
