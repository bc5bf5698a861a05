"""Everybody measured as on an older processor."""

import os

from .errors import BenchError
from .install import PEERS, command

# What is hidden of a processor that has all of them, by the newest instructions for integer products that it keeps.
HIDDEN = {
    "avx2": "amx,avx512,avx512-later,avx-vnni",
    "avx-vnni": "amx,avx512,avx512-later",
    # As Ice Lake has them.
    "avx512-vnni": "amx,avx512-later,avx-vnni",
}
# What a compiler says of a processor that has them.
SEEN = {"amx": "__AMX_TILE__", "avx512": "__AVX512F__", "avx512-later": "__AVX512BF16__", "avx-vnni": "__AVXVNNI__"}
# The C library has looked before anything can be hidden from it.
TUNABLES = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD"


def only(isa, folder):
    """Hides later instruction sets from all processes that are started from now on."""
    library, hidden = folder / "cpuid.so", HIDDEN[isa]
    command(["cc", "-O2", "-shared", "-fPIC", "-o", library, PEERS / "cpuid.c"])
    os.environ |= {"LD_PRELOAD": str(library), "CPUID_WITHOUT": hidden}
    if "avx512" in hidden.split(","):
        os.environ["GLIBC_TUNABLES"] = TUNABLES
    said = command(["cc", "-march=native", "-dM", "-E", "-x", "c", "/dev/null"])
    left = [name for name in hidden.split(",") if f"{SEEN[name]} " in said]
    if left or "__AVX2__ " not in said:
        raise BenchError(f"this processor cannot be measured as one with {isa}: programs still see {left or 'nothing'}")
