"""NVIDIA's compiler and disassembler, without a toolkit and without a device."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

from .errors import Failure
from .kernels import OPTIONS, SOURCE

DISASSEMBLE_SECONDS_MAX = 300


class Compiler:
    """One libnvrtc."""

    def __init__(self, path):
        # It looks for its other half by name.
        for library in sorted(Path(path).parent.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = f"{major.value}.{minor.value}"

    def ptx(self, target, group, options=OPTIONS):
        """What it writes for all devices from one on."""
        return self._compiled(f"compute_{target}", ["PTX"], SOURCE, [f"--define-macro=GROUP={group}", *options])[0]

    def assembled(self, target, group, options=OPTIONS):
        """A program for one kind of devices, and what the assembler says of it."""
        options = ["--ptxas-options=-v", f"--define-macro=GROUP={group}", *options]
        program, said = self._compiled(f"sm_{target}", ["CUBIN", "ProgramLog"], SOURCE, options)
        return program, said.decode()

    def assembled_source(self, target, source, options=OPTIONS):
        """A program of another source."""
        return self._compiled(f"sm_{target}", ["CUBIN"], source, options)[0]

    def _compiled(self, target, wanted, source, options):
        program = ctypes.c_void_p()
        self._check(
            self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        )
        words = [f"--gpu-architecture={target}", *options]
        array = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        if self.library.nvrtcCompileProgram(program, len(words), array):
            raise Failure(self._read(program, "ProgramLog").decode())
        found = [self._read(program, what) for what in wanted]
        self._check(self.library.nvrtcDestroyProgram(ctypes.byref(program)))
        return found

    def _check(self, status):
        if status:
            self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise Failure(self.library.nvrtcGetErrorString(status).decode())

    def _read(self, program, what):
        size = ctypes.c_size_t()
        self._check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        data = ctypes.create_string_buffer(size.value)
        self._check(getattr(self.library, f"nvrtcGet{what}")(program, data))
        # A program may end with zeros; texts are ended by one.
        return data.raw if what == "CUBIN" else data.raw.rstrip(b"\0")


def disassembled(nvdisasm, program):
    """The instructions of a program as text (SASS)."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(program)
        file.flush()
        argv = [nvdisasm, "--print-code", file.name]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=DISASSEMBLE_SECONDS_MAX, check=False)
    if done.returncode:
        raise Failure(f"the disassembler: {done.stderr.strip()}")
    return done.stdout
