"""What the compiler's own assembler writes (SASS) for one kind of devices.

There is no instruction that divides or takes a root: the assembler writes a sequence of others, fused and approximate
ones among them, whose result is rounded correctly, and calls a function of its own for operands that these do not do
for. So what such an operation takes is read off a program that does nothing else, and a kernel may have as many of
these instructions as its divisions and roots take, and not one more.
"""

import re
from collections import Counter

from .errors import Failure
from .kernels import NAMES

INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*(.*?)\s*;")
# A kernel, or a function of the assembler's own, whose name may have a number and the kernel's name before it.
FUNCTION = re.compile(r"^(?:\$\S+\$(?P<own>__cuda\w+)|(?P<kernel>[A-Za-z_]\w*)):$")
# All that has to do with floats, whatever it is called; `FLO` finds a leading one, `FENCE` and `DEPBAR` are none.
FLOATS = re.compile(
    r"^(U?F(?!LO|ENCE)|D(?!EPBAR)|H|MUFU|U?I2F|TEX|TLD|IPA)|\.(FTZ|F16|F32|F64|BF16|TF32|SAT|R[ZMPN])\b"
)
# These give one result, whatever the device: rounded to the nearest once, or not at all.
ALLOWED = re.compile(r"^(FADD|FMUL|FSEL|FMNMX(\.NAN)?|FSETP(\.[A-Z]+)?\.(AND|OR|XOR)|I2FP?(\.F32)?(\.[SU]32)?)$")
NUMBER = r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?"
# How the assembler writes a number into a register, now and then.
CONSTANT = re.compile(rf"^HFMA2(\.MMA)? R\d+, -RZ, RZ, {NUMBER}, {NUMBER}$")
# Of a division by a number that it knows, the assembler knows where it begins, too.
BEGINS, KNOWN = "MUFU.RCP", re.compile(rf"^FCHK P\d, \S+, {NUMBER}$")

# Each operation that takes several instructions, by the one that every one of them has.
OPERATIONS = {
    "FCHK": "void f(const float *in, float *out) { out[0] = in[0] / in[1]; }",
    "MUFU.RSQ": "void f(const float *in, float *out) { out[0] = sqrtf(in[0]); }",
    "I2F.U32.RP": "void f(const unsigned *in, unsigned *out) { out[0] = in[0] / in[1]; }",
}
# Exchanges numbers within a warp, and changes none.
SHUFFLE = "__cuda_sm70_shflsync_bfly_p"
# Those of longer integers have none of their own in a kernel: it calls a function.
LONG = (
    "void f(const unsigned long long *in, unsigned long long *out) { out[0] = in[0] / in[1]; out[1] = in[0] % in[2]; }"
)


def functions(sass):
    """Of each function of a program, with its name: its instructions that have to do with floats, and how many it has
    in all. Kernels have the names that they have in the source; of a function of the assembler's own there may be
    several."""
    found = []
    for line in sass.splitlines():
        if begins := FUNCTION.match(line.strip()):
            found.append([begins["own"] or begins["kernel"], Counter(), 0])
        elif (is_one := INSTRUCTION.match(line)) and found:
            operation, operands = is_one.groups()
            whole = f"{operation} {operands}"
            found[-1][2] += 1
            if FLOATS.search(operation) and not CONSTANT.match(whole):
                found[-1][1][operation] += 1
            if KNOWN.match(whole):
                # As if it were there.
                found[-1][1][BEGINS] += 1
    return found


class Assembler:
    """What divisions and roots take, as an assembler writes them for one kind of devices."""

    def __init__(self, disassembled):
        """`disassembled` gives the instructions of a source."""
        self.takes, self.own = {}, {}
        for sign, source in [*OPERATIONS.items(), (None, LONG)]:
            for name, floats, _ in functions(disassembled(f'extern "C" __global__ {source}')):
                if name != "f":
                    self.own[name] = floats
                elif sign:
                    self.takes[sign] = floats
                    if floats[sign] != 1:
                        raise Failure(f"SASS: {sign} does not stand for an operation: {dict(floats)}")

    def left(self, name, floats):
        """What a function has beyond what it may have."""
        if name in self.own:
            # Where a number is known the assembler leaves out what is for others.
            return dict(floats - self.own[name])
        rest = Counter(floats)
        for sign, takes in self.takes.items():
            for operation, each in takes.items():
                rest[operation] -= floats[sign] * each
        # Nor fewer: what is missing would have been taken for another operation's.
        return {operation: count for operation, count in rest.items() if count and not ALLOWED.match(operation)}

    def check(self, sass):
        """Returns how many instructions were looked at."""
        found = functions(sass)
        missing = NAMES - {name for name, _, _ in found}
        if missing:
            raise Failure(f"SASS: not found: {', '.join(sorted(missing))}")
        strange = sorted({name for name, _, _ in found} - NAMES - set(self.own) - {SHUFFLE})
        if strange:
            raise Failure(f"SASS: functions that nobody has asked for: {', '.join(strange)}")
        bad = {name: left for name, floats, _ in found if (left := self.left(name, floats))}
        if bad:
            raise Failure(f"SASS: instructions that are part of no division and no root: {bad}")
        return sum(count for _, _, count in found)
