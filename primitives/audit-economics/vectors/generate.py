#!/usr/bin/env python3
"""Writes the golden vectors beside this file. Independent of the Rust code: hashlib's BLAKE2b and the formulas."""

import json
import pathlib
from decimal import Decimal, localcontext
from hashlib import blake2b

HERE = pathlib.Path(__file__).parent


def blake2_256(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def named(name: str) -> bytes:
    """A hash to put into a vector."""
    return blake2_256(name.encode())


def exp_minus():
    """exp(-x) for x in units of 10^-18, in the same units, with digits enough to see half a unit's error."""
    one = 10**18
    cases = [0, 1, 2, one // 1000, one // 10, one // 5, one // 2, one, 2 * one, 3 * one, 10 * one, 41 * one]
    # Around n ln 2, where the reduction goes over to the next n.
    cases += [693147180559945309 * n + step for n in (1, 2, 7, 31, 60) for step in (-1, 0, 1, 2)]
    cases += [45 * one - 1, 45 * one, 46 * one, 2**128 - 1]
    # Scattered over the range by a hash.
    cases += [int.from_bytes(named(f"exponent {i}")[:16], "little") % (46 * one) for i in range(200)]
    cases += [int.from_bytes(named(f"small exponent {i}")[:16], "little") % (4 * one) for i in range(200)]
    with localcontext() as context:
        context.prec = 60
        for x in cases:
            # Beyond what decimals can hold is beyond what is asked for.
            exact = (-Decimal(x) / one).exp() * one if x < 1000 * one else Decimal(0)
            yield {"x": str(x), "exp_minus": f"{exact:.6f}"}


def main():
    (HERE / "exp_minus.json").write_text(json.dumps(list(exp_minus()), indent=1) + "\n")


if __name__ == "__main__":
    main()
