"""Which port is whose, and whether it is free."""

import socket
from dataclasses import dataclass

from .errors import DevnetError


@dataclass(frozen=True)
class Ports:
    """The ports of a network. `offset` moves all of them, so that two networks fit on one machine."""

    offset: int = 0

    def rpc(self, validator):
        return 9944 + self.offset + validator

    def prometheus(self, validator):
        return 9615 + self.offset + validator

    def p2p(self, validator):
        return 30333 + self.offset + validator

    def p2p_ws(self, validator):
        """Where light clients in browsers connect."""
        return 31333 + self.offset + validator

    def data(self, provider):
        """QUIC and TCP."""
        return 4001 + self.offset + provider

    def client(self):
        """Where the client serves its input: QUIC and TCP."""
        return 4101 + self.offset

    def gateway(self, place=0):
        """Where a gateway answers, by HTTP."""
        return 4091 + self.offset + place

    def check_gateway(self):
        """Raises when a port that a gateway needs is taken."""
        _check(self.gateway(), "HTTP of the gateway")
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            _check(self.client() + 1, "data plane of the gateway", kind)

    def check_validators(self, count):
        """Raises when a port that `count` validators need is taken."""
        for i in range(count):
            _check(self.rpc(i), f"RPC of validator {i + 1}")
            _check(self.prometheus(i), f"Prometheus of validator {i + 1}")
            _check(self.p2p(i), f"network of validator {i + 1}")
            _check(self.p2p_ws(i), f"light client port of validator {i + 1}")

    def check_workers(self, providers):
        """Raises when a port that providers and the client need is taken."""
        for port, what in [(self.data(i), f"provider {i + 1}") for i in range(providers)] + [
            (self.client(), "the client")
        ]:
            _check(port, f"data plane of {what}")
            _check(port, f"data plane of {what}", socket.SOCK_DGRAM)


def _check(port, what, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind == socket.SOCK_STREAM:
            # As servers do: a connection that is closing does not hold the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError as error:
            name, options = ("TCP", "-ltpn") if kind == socket.SOCK_STREAM else ("UDP", "-lupn")
            raise DevnetError(
                f"{name} port {port} ({what}) is taken: {error.strerror}.\n"
                f"`ss {options} 'sport = :{port}'` shows by whom; end that, or use --port-offset."
            ) from error
