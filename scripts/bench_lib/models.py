"""The models that are measured, made once and kept in the cache: the same weights for everybody."""

import json
import shutil

from devnet_lib.folders import REPO, cache_dir

from . import programs
from .contestant import Contestant
from .install import PEERS, command

TEXT = REPO / "examples" / "text" / "moby-dick.txt"
# Made-up weights of this shape: 197 million parameters, more than a processor's own caches hold.
SHAPE = {
    "hidden": 1024,
    "inner": 2816,
    "layers": 16,
    "heads": 16,
    "kv_heads": 8,
    "vocabulary": 8192,
    "context": 2048,
}
# The part of the text that the demonstration model has not seen: it keeps back the last twentieth.
HELD_OUT_PART = 24
TRAINING_SECONDS_MAX = 3600


def program():
    """Our own side of the bench: an example of the engine."""
    return programs.program("exact", "examples", "bench_exact")


class Models:
    """Everything that has weights, below the bench's folder."""

    def __init__(self, peers, console, decoder=None):
        self.peers, self.console, self.home = peers, console, peers.folder
        self.decoder_source = decoder or self.home / "decoder-source"
        self.published = cache_dir() / "models" / "all-MiniLM-L6-v2"
        self.onnx = self.home / "onnx"
        self.gguf = self.home / "decoder.gguf"

    def make(self):
        """Makes what is not there. Our own are always made anew: the converter may have changed."""
        if not (self.decoder_source / "config.json").is_file():
            self.console.step("training the demonstration model: minutes, once")
            command([program(), "train", TEXT, self.decoder_source], TRAINING_SECONDS_MAX)
        self.console.step("converting all-MiniLM-L6-v2 and the demonstration model to the exact form")
        shutil.rmtree(self.home / "models", ignore_errors=True)
        command([program(), "prepare", self.home, self.decoder_source])
        self._once("ONNX models", "onnx_bert.py", "onnx.made", self.published, self.onnx)
        self._once("a GGUF model of random weights", "gguf_llama.py", "gguf.made", json.dumps(SHAPE), self.gguf)

    def _once(self, what, script, marker, *arguments):
        """Runs a script unless it has run like this before."""
        said = "\n".join(map(str, [*arguments, (PEERS / script).read_text(), self.peers.versions()]))
        made = self.home / marker
        if made.is_file() and made.read_text() == said:
            return
        self.console.step(f"making {what}")
        self.peers.script(script, *arguments)
        made.write_text(said)

    def held_out(self, path):
        """Writes the text that tells how good a decoder is."""
        text = TEXT.read_text(encoding="utf-8")
        # From an empty line on.
        start = text.index("\n\n", len(text) - len(text) // HELD_OUT_PART)
        path.write_text(text[start:], encoding="utf-8")

    def embedder(self, home, model, sentences, threads):
        """An engine of ours, from text to vectors."""
        argv = [program(), "embed", home, model, sentences, threads]
        return Contestant(model, argv, {"RAYON_NUM_THREADS": str(threads)})

    def onnxruntime(self, name, sentences, threads):
        """The same with onnxruntime."""
        argv = [self.peers.python, PEERS / "ort_embed.py", self.onnx / f"{name}.onnx"]
        return Contestant(f"onnxruntime {name}", [*argv, self.published / "tokenizer.json", sentences, threads])

    def encoder(self, sentences, threads):
        """Our forward pass alone."""
        return Contestant("encoder", [program(), "encoder", self.home, "encoder", sentences, threads])

    def decoder(self, threads):
        """Our decoder with weights that are made up."""
        return Contestant("exact", [program(), "decoder", json.dumps(SHAPE), threads])

    def serving(self, threads):
        """The same, many generations side by side."""
        return Contestant("serving", [program(), "serving", json.dumps(SHAPE), threads])

    def llama_cpp(self, threads):
        """The same with llama.cpp."""
        argv = [
            self.peers.program("node"),
            PEERS / "llama_cpp.mjs",
            self.peers.node / "node_modules",
            self.gguf,
            threads,
        ]
        return Contestant("llama.cpp", argv)

    def perplexity(self, text):
        """Of the demonstration model's two forms."""
        said = command([program(), "perplexity", self.home, "decoder", self.decoder_source, text])
        return json.loads(said)
