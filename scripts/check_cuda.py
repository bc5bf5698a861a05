"""Compiles the CUDA kernels with each libnvrtc given, and checks the instructions.

Usage: check_cuda.py LIBNVRTC...

A kernel gives the bits of primitives/exact only if every operation on floats is rounded once, correctly, with
subnormals kept. The compiler's output (PTX) says of each instruction how it rounds; this looks at all of them. What
the assembler makes of that (SASS) is not read: only that it takes all of it, and keeps all numbers in registers.
"""

import ctypes
import pathlib
import re
import sys

CRATE = pathlib.Path(__file__).parent.parent / "offchain-worker" / "cuda"
BACKEND = (CRATE / "src" / "backend.rs").read_text()
# As backend.rs has them.
SOURCE = "".join((CRATE / "src" / name).read_text() for name in re.findall(r'include_str!\("([^"]+)"\)', BACKEND))
EXACT = re.findall(r'"(--[^"]+)"', BACKEND.split("OPTIONS", 1)[1].split(";")[1])
# What the crate asks for, and what it runs on.
TARGETS = ("75", "80", "86", "89", "90")
GROUPS = (64, 128)

# Operations that round, and how they have to.
ROUNDING = re.compile(r"^(add|sub|mul|div|sqrt)\.(.*\.)?f32$")
# Fused, approximate or of another precision. Integers may be multiplied and added at once.
FORBIDDEN = re.compile(
    r"^(fma\.|mad\.(.*\.)?f|ex2|lg2|sin|cos|tanh|rcp|rsqrt|.*\.(ftz|approx|full|sat|f16|bf16|f64)\b)"
)
# If these are missing, it was not the kernels that were read.
EXPECTED = ("add.rn.f32", "sub.rn.f32", "mul.rn.f32", "div.rn.f32", "sqrt.rn.f32", "dp4a.s32.s32", "cvt.rn.f32.s32")
# Integers on tensor cores, which wrap.
TENSOR = {
    "75": "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
    **{target: "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" for target in TARGETS if target >= "80"},
}
# The assembler tells what it could not keep in registers.
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


class Failure(Exception):
    """The kernels do not compile."""


class Compiler:
    """One libnvrtc."""

    def __init__(self, path):
        # It looks for its other half by name.
        builtins = sorted(pathlib.Path(path).parent.glob("libnvrtc-builtins.so*"))
        for library in builtins:
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.check(self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = f"{major.value}.{minor.value}"

    def check(self, status):
        if status != 0:
            self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise Failure(self.library.nvrtcGetErrorString(status).decode())

    def compile(self, target, group, options):
        """PTX for a virtual target (`compute_90`), what the assembler says for a real one (`sm_90`)."""
        program = ctypes.c_void_p()
        source, name = SOURCE.encode(), b"kernels.cu"
        self.check(self.library.nvrtcCreateProgram(ctypes.byref(program), source, name, 0, None, None))
        words = [f"--gpu-architecture={target}", f"--define-macro=GROUP={group}", *options]
        array = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        status = self.library.nvrtcCompileProgram(program, len(words), array)
        if status != 0:
            raise Failure(self.read(program, "ProgramLog").decode())
        result = self.read(program, "ProgramLog" if target.startswith("sm_") else "PTX")
        self.check(self.library.nvrtcDestroyProgram(ctypes.byref(program)))
        return result

    def read(self, program, what):
        size = ctypes.c_size_t()
        self.check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        data = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.library, f"nvrtcGet{what}")(program, data))
        return data.raw.rstrip(b"\0")


def instructions(ptx):
    """The operations of a program: the first word of a line after a predicate, if it is no directive."""
    for line in ptx.splitlines():
        found = re.match(r"^\s*(?:@!?%\w+\s+)?([a-z][a-z0-9_.:]*)\s[^:]*;", line)
        if found:
            yield found.group(1)


def faults(ptx):
    """Instructions that could give other bits than the definition."""
    for instruction in instructions(ptx):
        rounds = ROUNDING.match(instruction)
        if FORBIDDEN.match(instruction) or (rounds and ".rn." not in instruction):
            yield instruction


def check(compiler):
    """All targets and group sizes; returns how many instructions were looked at."""
    kernels = set(re.findall(r"__global__\s+void (\w+)\(", SOURCE))
    count = 0
    for target in TARGETS:
        for group in GROUPS:
            ptx = compiler.compile(f"compute_{target}", group, EXACT).decode()
            bad = sorted(set(faults(ptx)))
            if bad:
                raise Failure(f"sm_{target}, groups of {group}: {', '.join(bad)}")
            entries = set(re.findall(r"\.entry (\w+)\(", ptx))
            missing = (kernels - entries) | ({*EXPECTED, TENSOR[target]} - set(instructions(ptx)))
            if ".extern .func" in ptx:
                raise Failure(f"sm_{target}, groups of {group}: it calls a function that nobody gives it")
            if missing:
                raise Failure(f"sm_{target}, groups of {group}: not found: {', '.join(sorted(missing))}")
            count += sum(1 for _ in instructions(ptx))
            # The assembler takes it, and says so of each kernel.
            said = compiler.compile(f"sm_{target}", group, ["--ptxas-options=-v", *EXACT]).decode()
            spills = SPILLS.findall(said)
            if len(spills) < len(kernels) or set(spills) != {("0", "0")}:
                raise Failure(f"sm_{target}, groups of {group}: registers are spilled, or the assembler is silent")
    # The check has teeth: other options are found out.
    if not any(faults(compiler.compile("compute_80", 128, ["--ftz=true"]).decode())):
        raise Failure("flushed subnormals were not noticed")
    return count


def main():
    """Checks every compiler given."""
    if not sys.argv[1:] or len(EXACT) != 4:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        compiler = Compiler(path)
        try:
            count = check(compiler)
        except Failure as failure:
            sys.exit(f"check-cuda: CUDA {compiler.version}: {failure}")
        on = ", ".join(f"sm_{target}" for target in TARGETS)
        print(
            f"check-cuda: CUDA {compiler.version}: {on}: {count} PTX instructions, none fused, flushed or "
            "approximate; assembled, no register spilled"
        )


if __name__ == "__main__":
    main()
