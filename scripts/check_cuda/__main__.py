"""Compiles the CUDA kernels with each libnvrtc given, and checks the instructions.

Usage: check_cuda NVDISASM LIBNVRTC...

A kernel gives the bits of primitives/exact only if every operation on floats is rounded once, correctly, with
subnormals kept. The compiler's output (PTX) says of each instruction how it rounds; its assembler's (SASS) is what such
a device would carry out. Both are read whole. All numbers have to be kept in registers.
"""

import re
import sys

from . import ptx, sass
from .compiler import Compiler, disassembled
from .errors import Failure
from .kernels import GROUPS, NAMES, OPTIONS, TARGETS

# The assembler tells what it could not keep in registers.
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
# With this option the kernels would have other bits; with the others a source that leaves the choice to the compiler.
FLUSHED = "--ftz=true"
WRONG = {
    "--fmad=true": "void f(const float *in, float *out) { out[0] = in[0] * in[1] + in[2]; }",
    "--prec-div=false": sass.OPERATIONS["FCHK"],
    "--prec-sqrt=false": sass.OPERATIONS["MUFU.RSQ"],
}


def check(compiler, nvdisasm):
    """All targets and group sizes; returns how many instructions of each kind were looked at."""
    written, assembled = 0, 0
    for target in TARGETS:
        own = sass.Assembler(lambda source, of=target: disassembled(nvdisasm, compiler.assembled_source(of, source)))
        for group in GROUPS:
            try:
                written += ptx.check(compiler.ptx(target, group).decode(), target)
                program, said = compiler.assembled(target, group)
                stack = STACK.findall(said)
                if len(stack) < len(NAMES) or set(stack) != {("0", "0", "0")}:
                    raise Failure("numbers are kept in memory, or the assembler is silent")
                assembled += own.check(disassembled(nvdisasm, program))
            except Failure as failure:
                raise Failure(f"sm_{target}, groups of {group}: {failure}") from None
        print(f"check-cuda: CUDA {compiler.version}: sm_{target}", flush=True)
    _has_teeth(compiler, nvdisasm, own)
    return written, assembled


def _has_teeth(compiler, nvdisasm, own):
    """What would give other bits is found out."""
    target, group = TARGETS[-1], GROUPS[-1]
    if not any(ptx.faults(compiler.ptx(target, group, [FLUSHED]).decode())):
        raise Failure(f"{FLUSHED} was not noticed in PTX")
    program, _ = compiler.assembled(target, group, [FLUSHED])
    found = {FLUSHED: sass.functions(disassembled(nvdisasm, program))}
    for option, source in WRONG.items():
        program = compiler.assembled_source(target, f'extern "C" __global__ {source}', [option])
        found[option] = sass.functions(disassembled(nvdisasm, program))
    for option, functions in found.items():
        if not any(own.left(name, floats) for name, floats, _ in functions):
            raise Failure(f"{option} was not noticed in SASS")


def main():
    """Checks every compiler given."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if len(OPTIONS) != len(WRONG) + 1:
        sys.exit("check-cuda: backend.rs has other options than this knows: what finds each of them out?")
    nvdisasm, *libraries = sys.argv[1:]
    for library in libraries:
        compiler = Compiler(library)
        try:
            written, assembled = check(compiler, nvdisasm)
        except Failure as failure:
            sys.exit(f"check-cuda: CUDA {compiler.version}: {failure}")
        on = ", ".join(f"sm_{target}" for target in TARGETS)
        print(
            f"check-cuda: CUDA {compiler.version}: {on}: {written} PTX and {assembled} SASS instructions, none fused, "
            "flushed or approximate but what correct divisions and roots are made of; no register spilled"
        )


if __name__ == "__main__":
    main()
