"""Runs the commands that documents show, as they stand there.

Every block that begins with ```sh or ```js is run, those of one document one after the other in one shell, in a folder
that has this checkout's examples; JavaScript by Node, where `tests/js` has its libraries. Every block says what it is:
one that says nothing, or a shell by another name, would be commands that nobody tries. A comment right before a block
says what is different about it:

    <!-- commands: not run, WHY -->
    <!-- commands: the last goes on, what follows waits for "TEXT" -->
    <!-- commands: waits until `COMMAND` says "TEXT" -->
"""

import contextlib
import os
import re
import shlex
import subprocess
from dataclasses import dataclass

import support
from devnet_lib.processes import child_options, end_of

FENCE = re.compile(r"^( *)(`{3,})([^\n]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
RUN = ("sh", "js")
# Looked at, not typed; Rust's are run by its own tools.
SHOWN = ("text", "json", "toml", "yaml", "rust", "rust,ignore", "no_run")
COMMENT = re.compile(r"<!-- commands: (.*) -->\n\Z")
NOT_RUN = re.compile(r"not run, (.+)")
GOES_ON = re.compile(r'the last goes on, what follows waits for "(.+)"')
WAITS = re.compile(r'waits until `(.+)` says "(.+)"')
# What JavaScript imports is there.
JS = support.REPO / "tests" / "js"
# For the whole of a document.
SECONDS_MAX = 1500
SAID_SECONDS = 300

PROLOGUE = f"""
set -Eeuo pipefail
trap 'echo "FAILED: $BASH_COMMAND" >&2' ERR
# What goes on leads no session of its own: all of this one is asked to end.
trap 'trap "" TERM; kill 0; wait' EXIT
comes() {{
  local left={SAID_SECONDS}
  until bash -c "$1" | grep -- "$2" >/dev/null; do
    (( left-- > 0 )) || {{ echo "waited in vain for $2 of: $1"; return 1; }}
    sleep 1
  done
}}
said() {{ grep -qm1 -- "$2" <(timeout {SAID_SECONDS} tail -n +1 --pid=$! -f "$1") || {{ cat "$1"; false; }}; }}
"""


class Unreadable(Exception):
    """A document says of a block what nobody understands."""


@dataclass
class Block:
    """Commands that a reader is told to type."""

    place: str
    text: str
    # Why it is not run.
    why: str | None = None
    # What its last command says once it does what it is for. It does not end by itself.
    said: str | None = None
    # A command, and what it says once this can begin.
    comes: tuple[str, str] | None = None

    def script(self):
        """What bash is to do."""
        begin = f"echo {shlex.quote('### ' + self.place)}\n"
        if self.comes:
            begin += f"comes {shlex.join(self.comes)}\n"
        if self.said is None:
            return begin + self.text
        *commands, last = re.split(r"(?<!\\)\n", self.text.strip())
        log = shlex.quote(f"{self.place.replace('/', '-')}.log")
        goes_on = f"touch {log}\n{{ {last}\n}} >{log} 2>&1 &\nsaid {log} {shlex.quote(self.said)}\n"
        return begin + "\n".join([*commands, goes_on])


def documents():
    """All of the checkout's."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=support.REPO, capture_output=True, text=True, check=True)
    return [support.REPO / path for path in listed.stdout.split()]


def blocks(document):
    """Those of a document, in order."""
    text = document.read_text()
    return [_block(document, text, found) for found in FENCE.finditer(text) if found[3] not in SHOWN]


def _block(document, text, found):
    name = document.relative_to(support.REPO) if document.is_relative_to(support.REPO) else document.name
    place = f"{name}:{text.count(chr(10), 0, found.start()) + 1}"
    indent, _, language, code = found.groups()
    if language not in RUN:
        raise Unreadable(f"{place}: a block is one of {', '.join(RUN + SHOWN)}, not `{language}`")
    if indent:
        raise Unreadable(f"{place}: commands begin at the first column")
    if language == "js":
        code = f"(cd {shlex.quote(str(JS))} && node --input-type=module --eval {shlex.quote(code)})\n"
    block = Block(place, code)
    comment = COMMENT.search(text[: found.start()])
    if comment is None:
        return block
    why, said, comes = (of.fullmatch(comment[1]) for of in (NOT_RUN, GOES_ON, WAITS))
    if not (why or said or comes):
        raise Unreadable(f"{block.place}: what is `{comment[1]}` to mean?")
    block.why, block.said, block.comes = why and why[1], said and said[1], comes and comes.groups()
    return block


def run(document_blocks, home, path, log):
    """Runs blocks, where `home` is a reader's home and `path` has the programs. Returns bash's exit code."""
    home.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (home / "examples").symlink_to(support.REPO / "examples")
    script = PROLOGUE + "".join(block.script() for block in document_blocks)
    env = {"HOME": str(home), "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    with open(log, "wb") as out:
        options = child_options(env) | {"cwd": home, "stdout": out, "stderr": subprocess.STDOUT}
        code, late = end_of(subprocess.Popen(["bash", "-c", script], **options), SECONDS_MAX)
    if late:
        with open(log, "a", encoding="utf-8") as out:
            out.write(f"FAILED: all of it took more than {SECONDS_MAX} s\n")
    return code
