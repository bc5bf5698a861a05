"""JSON-RPC over HTTP."""

import itertools
import json
import urllib.error
import urllib.request

from .errors import RpcError

# A node that shares its machine with many others may be slow.
TIMEOUT_SECONDS = 30.0
# Proxies of the environment are for the internet, not for a node on this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Rpc:
    """A node's RPC."""

    def __init__(self, url, timeout=TIMEOUT_SECONDS):
        self.url, self.timeout = url, timeout
        self._ids = itertools.count(1)

    def call(self, method, *params):
        """Calls a method and returns its result."""
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with _OPENER.open(request, timeout=self.timeout) as response:
                answer = json.load(response)
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise RpcError(f"{method} at {self.url}: {error}") from error
        if "error" in answer:
            raise RpcError(f"{method} at {self.url}: {answer['error']}")
        return answer["result"]

    def get(self, path):
        """Fetches a path by plain HTTP, for example `/health`."""
        try:
            with _OPENER.open(self.url + path, timeout=self.timeout) as response:
                return json.load(response)
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise RpcError(f"{self.url}{path}: {error}") from error

    def answers(self):
        """Whether the node answers at all."""
        try:
            self.call("system_chain")
        except RpcError:
            return False
        return True
