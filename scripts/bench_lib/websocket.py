"""JSON-RPC with subscriptions over a WebSocket (RFC 6455): as much of it as a node on this machine needs."""

import base64
import itertools
import json
import os
import socket

from devnet_lib.errors import RpcError

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
FINAL, MASKED = 0x80, 0x80


class Connection:
    """To a node."""

    def __init__(self, port, seconds=60.0):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self._read, self._ids = self._socket.makefile("rb"), itertools.count(1)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        self._socket.sendall(head.encode())
        status = self._read.readline()
        while self._read.readline().strip():
            pass
        if b" 101 " not in status:
            raise RpcError(f"no WebSocket at port {port}: {status.decode(errors='replace').strip()}")

    def _send(self, kind, payload):
        size = len(payload)
        if size < 126:
            head = bytes([FINAL | kind, MASKED | size])
        elif size < 1 << 16:
            head = bytes([FINAL | kind, MASKED | 126]) + size.to_bytes(2, "big")
        else:
            head = bytes([FINAL | kind, MASKED | 127]) + size.to_bytes(8, "big")
        # Any mask will do, and this one changes nothing.
        self._socket.sendall(head + bytes(4) + payload)

    def _take(self, count):
        taken = self._read.read(count)
        if len(taken) != count:
            raise RpcError("the node has closed the connection")
        return taken

    def _frame(self):
        first, size = self._take(2)
        if size >= 126:
            size = int.from_bytes(self._take(2 if size == 126 else 8), "big")
        return first, self._take(size)

    def receive(self):
        """The next message, whatever it is about."""
        message = b""
        while True:
            first, payload = self._frame()
            kind = first & 0xF
            if kind == PING:
                self._send(PONG, payload)
            elif kind == CLOSE:
                raise RpcError("the node has closed the connection")
            elif kind != PONG:
                message += payload
                if first & FINAL:
                    return json.loads(message)

    def ask(self, method, *params):
        """Sends a request, and returns its number. Its answer comes with the other messages."""
        number = next(self._ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._send(TEXT, json.dumps(request).encode())
        return number

    def close(self):
        """Whoever waits for a message is told that there is none."""
        # The one who reads it has it still.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
