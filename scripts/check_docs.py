"""The step `docs` of `scripts/test`: what the documents name has to be there.

- every crate of the workspace stands in the map of ARCHITECTURE.md, with its folder and name, and nothing else does;
- every path of this repository that a document names, in a link, in back quotes or in a block of commands, exists;
- every document that a source names exists;
- no line of a comment goes beyond 110 columns.

What looks like a path of this repository: it begins with one of its folders (of the document's own, too), or it ends
like a source file. Names of files that are made elsewhere, such as `HOME/config.toml`, are none.
"""

import re
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
MAP = "ARCHITECTURE.md"
# A row of the map: its folder and, where that is a crate, its name.
ROW = re.compile(r"^\| `([^`]+)` \| (?:`([^`]+)`)? *\|", re.MULTILINE)
NAME = re.compile(r'^name = "([^"]+)"', re.MULTILINE)
MEMBERS = re.compile(r"^members = \[(.*?)\]", re.MULTILINE | re.DOTALL)

FENCE = re.compile(r"^( *)(`{3,})[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
BRACES = re.compile(r"\{([^{}]+)\}")
# What stands around a word in commands and prose, and what may follow a path: a line, a Rust path, a heading.
AROUND = "\"'()[],;:<>="
AFTER = re.compile(r"(::|#|:\d).*$")
# Always somebody's source: of this repository, where a document names it.
SOURCES = (".cu", ".mjs", ".py", ".rs", ".service", ".sh")
# Where the documents' JavaScript is run (tests/e2e/commands.py).
JS = "tests/js"
DOCUMENT = re.compile(r"\bdocs/[\w./-]*\w\.md\b")

COLUMNS = 110
# By `benchmark pallet`, and their lines are as long as the names in them.
GENERATED = "runtime/src/weights/"


def tracked():
    """Every file of the repository, whether or not it is committed yet."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPO,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in listed.stdout.splitlines() if (REPO / name).exists()]


class Repository:
    """What there is."""

    def __init__(self, files):
        self.files = set(files)
        self.folders = {str(parent) for name in files for parent in Path(name).parents}
        self.names = {Path(name).name for name in files}

    def documents(self):
        """Every Markdown file."""
        return sorted(name for name in self.files if name.endswith(".md"))

    def has(self, path):
        """Whether there is such a file or folder, or one that a pattern with `*` fits."""
        if "*" in path:
            pattern = re.compile(re.escape(path).replace(r"\*", "[^/]*"))
            return any(pattern.fullmatch(name) for name in self.files | self.folders)
        return path in self.files or path in self.folders


def joined(folder, path):
    """A path as it is seen from the top, or nothing where it leaves the repository."""
    parts = []
    for part in [*Path(folder).parts, *path.split("/")]:
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."


def expanded(word):
    """`a/{b,c}.rs` as `a/b.rs` and `a/c.rs`."""
    found = BRACES.search(word)
    if not found:
        return [word]
    before, after = word[: found.start()], word[found.end() :]
    return [whole for part in found[1].split(",") for whole in expanded(before + part.strip() + after)]


def homes(document, repository):
    """Where a document's paths may begin: at the top, in its own folder, and in a crate's own sources."""
    folder = str(Path(document).parent)
    inner = (joined(folder, name) for name in ("src", "tests"))
    return [".", folder, *(name for name in inner if name in repository.folders)]


def is_named(word, document, repository):
    """Whether a word looks like a path of this repository."""
    if not PATH.fullmatch(word) or word.strip("./") == "":
        return False
    if word.endswith(SOURCES) and not word.startswith("."):
        return True
    first, slash, _ = word.partition("/")
    if not slash or "*" in first:
        return False
    return any(joined(home, first) in repository.folders for home in homes(document, repository))


def exists(word, document, repository):
    """Whether a path that a document names leads somewhere."""
    if "/" not in word:
        # The sentence says in which folder.
        return word in repository.names
    begin = homes(document, repository) + ([JS] if word.endswith(".mjs") else [])
    places = (joined(home, word) for home in begin)
    return any(place and repository.has(place) for place in places)


def words(text):
    """What stands in back quotes and in blocks of commands, word by word."""
    pieces = [found[3] for found in FENCE.finditer(text)]
    pieces += [found[2] for found in QUOTED.finditer(FENCE.sub("", text))]
    for piece in pieces:
        for word in piece.split():
            for whole in expanded(word.strip(AROUND)):
                yield AFTER.sub("", whole).rstrip(".")


def missing_paths(document, repository):
    """Paths that a document names and that do not exist."""
    text = (REPO / document).read_text(encoding="utf-8")
    named = (word for word in words(text) if is_named(word, document, repository))
    missing = {word for word in named if not exists(word, document, repository)}
    for target in LINK.findall(FENCE.sub("", text)):
        path = target.partition("#")[0]
        if path and "://" not in target and not target.startswith("mailto:"):
            place = joined(str(Path(document).parent), path)
            # A crate's documentation links to Rust items the same way.
            if "::" not in path and not (place and repository.has(place)):
                missing.add(target)
    return sorted(missing)


def missing_documents(repository):
    """Documents that sources name and that do not exist, with who names them."""
    sources = (name for name in repository.files if name.endswith((*SOURCES, ".toml")))
    for source in sorted(sources):
        named = set(DOCUMENT.findall((REPO / source).read_text(encoding="utf-8")))
        yield from (f"{source}: there is no {path}" for path in sorted(named - repository.files))


def long_comments(repository):
    """Lines of comments that are longer than they may be. Tables, and words that cannot be cut, may."""
    for source in sorted(name for name in repository.files if name.endswith((".cu", ".rs"))):
        if source.startswith(GENERATED):
            continue
        for number, line in enumerate((REPO / source).read_text(encoding="utf-8").splitlines(), 1):
            text = line.lstrip()
            if text.startswith("//") and len(line) > COLUMNS and not text.startswith(("//! |", "/// |")):
                yield f"{source}:{number}: a comment of {len(line)} columns, more than {COLUMNS}"


def crates(repository):
    """Every crate of the workspace: its folder and its name."""
    members = MEMBERS.search((REPO / "Cargo.toml").read_text(encoding="utf-8"))[1]
    patterns = [re.compile(re.escape(member).replace(r"\*", "[^/]+")) for member in re.findall(r'"([^"]+)"', members)]
    manifests = (name for name in repository.files if name.endswith("/Cargo.toml"))
    folders = (name.removesuffix("/Cargo.toml") for name in manifests)
    found = (folder for folder in folders if any(pattern.fullmatch(folder) for pattern in patterns))
    return {folder: NAME.search((REPO / folder / "Cargo.toml").read_text(encoding="utf-8"))[1] for folder in found}


def wrong_in_map(repository):
    """What the map lacks, and what it should not have."""
    rows = dict(ROW.findall((REPO / MAP).read_text(encoding="utf-8")))
    mapped = {folder: name for folder, name in rows.items() if name}
    there = crates(repository)
    said = [f"{MAP}: no row for {folder} ({name})" for folder, name in there.items() if folder not in mapped]
    for folder, name in mapped.items():
        if there.get(folder) != name:
            said.append(f"{MAP}: {folder} is {there.get(folder, 'no crate')}, not {name}")
    return sorted(said)


def main():
    repository = Repository(tracked())
    said = wrong_in_map(repository)
    documents = repository.documents()
    for document in documents:
        said += [f"{document}: there is no {path}" for path in missing_paths(document, repository)]
    said += missing_documents(repository)
    said += long_comments(repository)
    print("\n".join(said) or f"{len(documents)} documents: what they name is there")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
