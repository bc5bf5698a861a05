"""Builds llama.cpp's side for a device, with NVIDIA's compiler from PyPI: neither a device nor CUDA has to be here."""

import json
import re
import shutil

from devnet_lib.folders import cache_dir

from ..errors import BenchError
from ..install import BUILD_SECONDS_MAX, BUILD_TOOLS, LLAMA_CPP_PYTHON_SHA256, PEERS, PIP_INSTALL, Peers, command
from .programs import LLAMA

SOURCES = PEERS / "llama_cuda"
# A driver takes what is no newer than itself.
CUDA = "cuda-toolkit[cccl,crt,cublas,cudart,nvcc]==13.0.3.0"
LIBRARIES = ("cudart", "cublas", "cublasLt")
# For one kind of device, in code that nothing has to compile there. Without NO_VMM it would have to be linked against
# a library of the driver.
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "OFF",
    "CMAKE_CUDA_ARCHITECTURES": "90-real",
    "GGML_NATIVE": "OFF",
    "GGML_AVX2": "ON",
    "GGML_BMI2": "ON",
    "GGML_F16C": "ON",
    "GGML_FMA": "ON",
    "GGML_CCACHE": "OFF",
    "GGML_OPENMP": "OFF",
    "GGML_CUDA": "ON",
    "GGML_CUDA_GRAPHS": "ON",
    "GGML_CUDA_NCCL": "OFF",
    "GGML_CUDA_NO_VMM": "ON",
    "GGML_CUDA_FA_QUANTS": "f16-f16",
    "LLAMA_BUILD_COMMON": "OFF",
}
# Files of kernels that no Llama asks for.
OTHERS = """
acc argsort col2im-1d conv-transpose-1d conv2d conv2d-dw conv2d-transpose conv3d cross-entropy-loss cumsum diag dsv4-hc
gated_delta_net gla im2col lightning-indexer mean opt-step-adamw opt-step-sgd out-prod pad pad_reflect_1d pool1d pool2d
roll set snake solve_tri ssm-conv ssm-scan sum sumrows top-k tri tsembd upscale wkv
"""
# Of kernels that are made for each kind of weights and size of heads, these: all of them would take hours.
INSTANCES = re.compile(
    r"DECL_(MMQ_CASE\(GGML_TYPE_Q8_0\)|FATTN_(MMA_F16_CASE\(64, 64, .*|TILE_CASE\(64, 64|VEC_CASE\( *64, .*)\));"
)
CASE = re.compile(r" +case GGML_TYPE_(\w+):\n +mul_mat_vec_q_switch_ncols_dst<GGML_TYPE_\1>\n.*?break;\n", re.DOTALL)
MISSING = re.compile(r"undefined reference to `(\w+)'")


def program(console):
    """The program, built when it is not there yet."""
    peers = Peers(cache_dir() / "bench", console)
    texts = [path.read_text() for path in sorted(SOURCES.iterdir())]
    wanted = json.dumps([LLAMA_CPP_PYTHON_SHA256, BUILD_TOOLS, CUDA, OPTIONS, OTHERS, INSTANCES.pattern, texts])
    peers.once(LLAMA, wanted, lambda folder: _build(peers, folder))
    return peers.folder / LLAMA / LLAMA


def _build(peers, folder):
    scratch = folder / "build"
    tree, programs = peers.llama_cpp_sources(scratch)
    _trim(tree / "ggml" / "src" / "ggml-cuda")
    toolkit = _toolkit(scratch, programs)
    peers.console.step("building llama.cpp for a device, once: half an hour of one core")
    made, left_out = scratch / "made", scratch / "left-out"
    left_out.write_text("--warn-unresolved-symbols\n")
    settings = OPTIONS | {
        "CMAKE_CUDA_COMPILER": toolkit / "bin" / "nvcc",
        "CUDAToolkit_ROOT": toolkit,
        "LLAMA_CPP": tree,
        "LEFT_OUT": left_out,
    }
    argv = [f"-D{name}={value}" for name, value in settings.items()]
    command(["cmake", "-G", "Ninja", "-S", SOURCES, "-B", made, *argv], path=programs)
    ninja = ["ninja", "-C", made, LLAMA]
    # What the linker misses is what was left out.
    missing = sorted(set(MISSING.findall(command(ninja, BUILD_SECONDS_MAX, path=programs))))
    left_out.write_text("".join(f"--defsym={name}=left_out\n" for name in missing))
    (made / LLAMA).unlink()
    command(ninja, path=programs)
    command(["strip", "--strip-all", "-o", folder / LLAMA, made / LLAMA])
    shutil.rmtree(scratch)


def _trim(kernels):
    """Takes out what a Llama in Q8_0 with heads of 64 does not run."""
    for name in OTHERS.split():
        (kernels / f"{name}.cu").unlink()
    for path in (kernels / "template-instances").glob("*.cu"):
        lines = path.read_text().splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith("DECL_") or INSTANCES.match(line)]
        if any(line.startswith("DECL_") for line in kept):
            path.write_text("".join(kept))
        else:
            path.unlink()
    path = kernels / "mmvq.cu"
    text, cases = CASE.subn(lambda case: case[0] if case[1] == "Q8_0" else "", path.read_text())
    if cases < 2:
        raise BenchError(f"{path.name} is not what it was")
    path.write_text(text)


def _toolkit(scratch, programs):
    """NVIDIA's compiler and libraries, with the names that CMake looks for."""
    command([programs / "python", *PIP_INSTALL, "--target", scratch / "cuda", CUDA])
    toolkit = next((scratch / "cuda" / "nvidia").glob("cu*"))
    (toolkit / "lib64").symlink_to("lib")
    for name in LIBRARIES:
        found = next((toolkit / "lib").glob(f"lib{name}.so.*"))
        (toolkit / "lib" / f"lib{name}.so").symlink_to(found.name)
    return toolkit
