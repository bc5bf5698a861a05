"""Real sentences to measure with: always the same ones, from a text of the repository."""

import re
from pathlib import Path

CHARACTERS_MIN, CHARACTERS_MAX = 30, 400

_HEADING = re.compile(r"^(CHAPTER|ETYMOLOGY|EXTRACTS|EPILOGUE)\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def paragraphs(text):
    """Paragraphs as one line each, without headings."""
    for block in re.split(r"\n\s*\n", text):
        line = " ".join(block.split())
        if line and not _HEADING.match(line):
            yield line


def sentences(path, count):
    """`count` sentences, evenly spread over the text, no two the same. Fewer when the text has no more."""
    found = {}
    for paragraph in paragraphs(Path(path).read_text(encoding="utf-8")):
        for sentence in _SENTENCE_END.split(paragraph):
            if CHARACTERS_MIN <= len(sentence) <= CHARACTERS_MAX:
                found.setdefault(sentence)
    found = list(found)
    if len(found) <= count:
        return found
    return [found[index * len(found) // count] for index in range(count)]
