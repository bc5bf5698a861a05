"""The two models of the devnet, in the cache: made once, checked every time."""

import fcntl
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from .console import Console
from .errors import DevnetError
from .folders import REPO, binaries, cache_dir
from .processes import Supervisor
from .surety import Surety

# Embeds sentences: published weights, converted to the exact tier.
EMBEDDER = "all-MiniLM-L6-v2-exact"
# Continues text: a small decoder that is trained here, since no published one is both small and free of conditions.
GENERATOR = "surety-demo-exact"
GENERATOR_CONTEXT = 256
TRAINING_TEXT = REPO / "examples/text/moby-dick.txt"
# Conversations with it are written as ChatML; what it makes of them is no better than what it makes of other text.
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TEMPLATE_FILE = "chat_template.jinja"
SOURCE_FILES = ("config.json", "model.safetensors", "tokenizer.json")
TRAINING_SECONDS_MAX = 3600
TELL_SECONDS = 30


def prepare(surety, console, quick=False):
    """Both models' files in the home of `surety`. Returns their ids by name. `quick` trains for less time."""
    surety.home.mkdir(parents=True, exist_ok=True)
    # Two runs at once would train twice, and write the same files.
    with open(surety.home / "models.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        console.step(f"fetching the model {EMBEDDER} (kept in {surety.home / 'models'})")
        fetched = surety.run("model", "fetch", EMBEDDER, on_line=console.detail, timeout=1800)
        console.step(f"{EMBEDDER} is here: {fetched['weights_bytes']:,} bytes, every hash checked")
        try:
            known = talking(surety, GENERATOR)
        except DevnetError:
            # Not here, or as another version of the program, or of its template, has kept it.
            known = make(surety, console, quick)
    ids = {EMBEDDER: fetched["id"], GENERATOR: known["id"]}
    console.step(f"{GENERATOR} is here, too")
    return ids


def shown(surety, name):
    """What is known of a model whose files are here."""
    return surety.run("model", "show", name)


def talking(surety, name):
    """The same of one that takes conversations as they are written here."""
    template = surety.home / "models" / name / TEMPLATE_FILE
    if not template.exists() or template.read_text() != CHAT_TEMPLATE:
        raise DevnetError(f"{name} has another chat template")
    return shown(surety, name)


def make(surety, console, quick):
    """Converts the demonstration model to the exact tier, trained first if it was not before."""
    source = cache_dir() / "demo-source"
    if not all((source / name).exists() for name in SOURCE_FILES):
        train(surety, console, source, quick)
    # What is there cannot be used, and no command writes over it.
    shutil.rmtree(surety.home / "models" / GENERATOR, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="surety-models-") as folder:
        # Training replaces a folder of its own files only.
        for name in SOURCE_FILES:
            shutil.copy(source / name, folder)
        Path(folder, TEMPLATE_FILE).write_text(CHAT_TEMPLATE)
        args = (folder, "--name", GENERATOR)
        surety.run("model", "convert", *args, on_line=console.detail, timeout=TRAINING_SECONDS_MAX)
    console.step(f"{GENERATOR} is converted to the exact tier")
    return shown(surety, GENERATOR)


def train(surety, console, source, quick):
    """Trains the demonstration model."""
    console.step(f"training {GENERATOR} on {TRAINING_TEXT.name}: minutes, and only this once")
    with Telling(console, "still training"):
        args = ("--text", TRAINING_TEXT, "--out", source, *(["--quick"] if quick else []))
        trained = surety.run("model", "train-demo", *args, on_line=console.detail, timeout=TRAINING_SECONDS_MAX)
    console.step(
        f"trained in {trained['seconds']:.0f} s; perplexity on text it has not seen: {trained['perplexity']:.1f}"
    )


class Telling:
    """Says now and then that something long is still going on."""

    def __init__(self, console, what):
        self.console, self.what = console, what
        self.started = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._end.wait(TELL_SECONDS):
            self.console.detail(f"{self.what}, for {time.monotonic() - self.started:.0f} s now")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def main():
    """`python3 -m devnet_lib.models`: makes both for tests, which a short training does for."""
    home, console = cache_dir(), Console()
    # Nobody is asked at this address.
    surety = Surety(Supervisor(home), binaries() / "surety", home, "ws://127.0.0.1:9944")
    try:
        prepare(surety, console, quick=True)
    except DevnetError as error:
        console.text(f"\nFAILED: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
