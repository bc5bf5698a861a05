"""Ed25519 signatures (RFC 8032), for accounts of the bench's own: it floods pools and upgrades the runtime.

Not in constant time: for keys that everybody may know.
"""

import functools
import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BASE_Y = 4 * pow(5, P - 2, P) % P


def _x_of(y):
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return x if x % 2 == 0 else P - x


def _add(one, other):
    """Of points in extended coordinates: X, Y, Z, T."""
    (x, y, z, t), (u, v, w, s) = one, other
    a, b = (y - x) * (v - u) % P, (y + x) * (v + u) % P
    c, d = 2 * t * s * D % P, 2 * z * w % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


@functools.cache
def _powers():
    """The base point times 1, 2, 4 and so on."""
    x = _x_of(BASE_Y)
    points = [(x, BASE_Y, 1, x * BASE_Y % P)]
    for _ in range(255):
        points.append(_add(points[-1], points[-1]))
    return points


def _times_base(scalar):
    """The base point times a number, as 32 bytes."""
    found = (0, 1, 1, 0)
    for bit, point in enumerate(_powers()):
        if scalar >> bit & 1:
            found = _add(found, point)
    x, y, z, _ = found
    inverse = pow(z, P - 2, P)
    return (y * inverse % P | (x * inverse % P & 1) << 255).to_bytes(32, "little")


def _number(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


class Key:
    """A key pair from 32 bytes."""

    def __init__(self, seed):
        digest = hashlib.sha512(seed).digest()
        clamped = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | 1 << 254
        self._scalar, self._prefix = clamped, digest[32:]
        self.public = _times_base(clamped)

    def sign(self, message):
        """64 bytes."""
        nonce = _number(self._prefix, message) % ORDER
        point = _times_base(nonce)
        challenge = _number(point, self.public, message) % ORDER
        return point + ((nonce + challenge * self._scalar) % ORDER).to_bytes(32, "little")
