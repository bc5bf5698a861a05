"""What is brought to the machine with the device: two programs, two models and the chain's genesis, packed."""

import hashlib
import json
import lzma
import re
import shutil
import subprocess
import tarfile
import tempfile
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devnet_lib.folders import REPO, binaries, cache_dir
from devnet_lib.models import GENERATOR, TRAINING_TEXT
from devnet_lib.processes import Supervisor
from devnet_lib.surety import Surety
from devnet_lib.validators import changed_spec

from .. import gpu_proofs, machine
from ..errors import BenchError

FOLDER = REPO / "target" / "on-device-chain"
PROGRAMS = ("surety-node", "surety")
MODELS, MANIFEST = "models.tar.xz", "manifest.json"
# Worked out here: that takes longer than a node takes to start.
SPEC = "raw.json"
# all-MiniLM-L6-v2 in int8, with the vectors of those tokens alone that the text has: others are zero, and packed
# they are nothing. What it makes of the text is what the whole model makes of it.
SOURCE, EMBEDDER = "all-MiniLM-L6-v2", "all-MiniLM-L6-v2-few-tokens"
EMBEDDINGS = "embeddings.word_embeddings.weight"
PARAPHRASES = REPO / "examples/text/paraphrases.txt"
# Lines of the text: the paraphrases, and so many of a book's.
BOOK_LINES = 300
CONVERT_SECONDS_MAX = 600
CHUNK = 1 << 20


def text(book_lines=BOOK_LINES):
    """The lines that are embedded: paraphrases come first."""
    book = [line.strip() for line in TRAINING_TEXT.read_text().splitlines() if line.strip()]
    return PARAPHRASES.read_text().splitlines() + book[:book_lines]


def build(folder, console):
    """Packs what `binaries` finds and the models of the cache."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    programs = binaries()
    with tempfile.TemporaryDirectory(prefix="surety-chain-") as made:
        home = Path(made) / "home"
        console.step(f"{EMBEDDER} and {GENERATOR}")
        _embedder(Surety(Supervisor(made), programs / "surety", home, "ws://127.0.0.1:9944"), Path(made))
        shutil.copytree(cache_dir() / "models" / GENERATOR, home / "models" / GENERATOR)
        with tarfile.open(Path(made) / "models.tar", "w") as tar:
            tar.add(home / "models", "models")
        for name in PROGRAMS:
            subprocess.run(["strip", "--strip-all", "-o", Path(made) / name, programs / name], check=True)
        changed_spec(programs / "surety-node", "local", gpu_proofs.rooted, Path(made))
        console.step("packing")
        files = [Path(made) / name for name in (*PROGRAMS, "models.tar", SPEC)]
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda path: _pack(path, folder / f"{path.name}.xz"), files))
        hashes = {name: _hash(Path(made) / name) for name in PROGRAMS}
    (folder / MANIFEST).write_text(json.dumps({"commit": machine.commit(), "blake2b": hashes}, indent=2) + "\n")
    sizes = [(path.name, path.stat().st_size) for path in sorted(folder.iterdir())]
    console.table([(name, f"{size / 2**20:.1f} MiB") for name, size in sizes])
    console.step(f"{folder}: {sum(size for _, size in sizes) / 2**20:.1f} MiB")


def manifest_of(folder):
    """What is known of what was packed."""
    try:
        return json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        raise BenchError(f"there is no {folder / MANIFEST}: run scripts/on-device-chain build") from None


def unpack(folder, work, manifest):
    """Unpacks into a folder: programs into `bin`, models into the `cache`."""
    (work / "bin").mkdir(parents=True)
    with ThreadPoolExecutor() as pool:
        models = pool.submit(shutil.unpack_archive, folder / MODELS, work / "cache" / "surety", "xztar")
        list(pool.map(lambda name: _unpack(folder / f"{name}.xz", work / "bin" / name), (*PROGRAMS, SPEC)))
        models.result()
    hashes = {name: _hash(work / "bin" / name) for name in PROGRAMS}
    if hashes != manifest["blake2b"]:
        raise BenchError(f"the programs in {folder} are not those that were packed")


def _pack(path, packed):
    with open(path, "rb") as source, lzma.open(packed, "wb", preset=9 | lzma.PRESET_EXTREME) as target:
        shutil.copyfileobj(source, target, CHUNK)


def _unpack(packed, path):
    with lzma.open(packed) as source, open(path, "wb") as target:
        shutil.copyfileobj(source, target, CHUNK)
    path.chmod(0o755)


def _hash(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def _embedder(surety, folder):
    """Converts the published weights, with zeros for what the text does not need."""
    source, made = cache_dir() / "models" / SOURCE, folder / "source"
    made.mkdir()
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(source / name, made)
    vocabulary = json.loads((source / "tokenizer.json").read_text())["model"]["vocab"]
    kept = {vocabulary[token] for token in _tokens(vocabulary)}
    weights = bytearray((source / "model.safetensors").read_bytes())
    first = 8 + int.from_bytes(weights[:8], "little")
    tensor = json.loads(weights[8:first])[EMBEDDINGS]
    begin, end = (first + offset for offset in tensor["data_offsets"])
    rows = tensor["shape"][0]
    size = (end - begin) // rows
    for row in set(range(rows)) - kept:
        weights[begin + row * size : begin + (row + 1) * size] = bytes(size)
    (made / "model.safetensors").write_bytes(weights)
    surety.run("model", "convert", made, "--name", EMBEDDER, "--precision", "int8", timeout=CONVERT_SECONDS_MAX)


def _tokens(vocabulary):
    """The tokens of the text, and all that are a sign or special."""
    found = {token for token in vocabulary if re.fullmatch(r"\[[A-Z]+\]|(##)?[!-~]", token)}
    plain = unicodedata.normalize("NFD", "\n".join(text()).lower())
    for word in set(re.findall(r"\w+", "".join(sign for sign in plain if not unicodedata.combining(sign)))):
        at = 0
        while at < len(word):
            ends = range(len(word), at, -1)
            pieces = (("##" if at else "") + word[at:end] for end in ends)
            piece = next((piece for piece in pieces if piece in vocabulary), None)
            if piece is None:
                break
            found.add(piece)
            at += len(piece.removeprefix("##"))
    return found
