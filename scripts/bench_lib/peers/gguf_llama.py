"""Writes a Llama model of random Q8_0 weights as GGUF, for benches' peers: speed does not depend on their values.

    gguf_llama.py SHAPE_JSON OUTPUT_FILE

Any Python does: where a device is there may be no `gguf`, nor a way to get it.
"""

import json
import math
import random
import struct
import sys
from pathlib import Path

MAGIC, VERSION, ALIGNMENT = b"GGUF", 3, 32
# How values and tensors are stored, by their numbers in GGUF.
U32, I32, FLOAT, STRING, ARRAY = 4, 5, 6, 8, 9
F32, Q8_0 = 0, 8
MOSTLY_Q8_0 = 7
# What a token is.
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
# A Q8_0 block: an f16 scale and 32 weights.
BLOCK, BLOCK_BYTES = 32, 34
# So many random blocks come again and again: a prime, so that no two neighboring rows are the same.
BLOCKS = 30_011


def text(string):
    """A string as it is stored."""
    string = string.encode()
    return struct.pack("<Q", len(string)) + string


def value(kind, it):
    """What is stored of one value."""
    return text(it) if kind == STRING else struct.pack({U32: "<I", I32: "<i", FLOAT: "<f"}[kind], it)


def entry(name, kind, it):
    """A named value. Of a list, `kind` is that of its items."""
    if isinstance(it, list):
        items = b"".join(value(kind, item) for item in it)
        return text(name) + struct.pack("<IIQ", ARRAY, kind, len(it)) + items
    return text(name) + struct.pack("<I", kind) + value(kind, it)


def vocabulary(size):
    """Bytes and made-up words: nothing is ever tokenised with it."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256
    tokens += [f"w{index}" for index in range(size - len(tokens))]
    kinds += [NORMAL] * (size - len(kinds))
    prefix = "tokenizer.ggml."
    yield entry(prefix + "model", STRING, "llama")
    yield entry(prefix + "tokens", STRING, tokens)
    yield entry(prefix + "scores", FLOAT, [0.0] * size)
    yield entry(prefix + "token_type", I32, kinds)
    yield entry(prefix + "bos_token_id", U32, 1)
    yield entry(prefix + "eos_token_id", U32, 2)


def dimensions(shape):
    """What a Llama of this shape says of itself."""
    yield entry("general.architecture", STRING, "llama")
    yield entry("general.alignment", U32, ALIGNMENT)
    yield entry("general.file_type", U32, MOSTLY_Q8_0)
    numbers = {
        "context_length": shape["context"],
        "embedding_length": shape["hidden"],
        "block_count": shape["layers"],
        "feed_forward_length": shape["inner"],
        "attention.head_count": shape["heads"],
        "attention.head_count_kv": shape["kv_heads"],
        "rope.dimension_count": shape["hidden"] // shape["heads"],
        "vocab_size": shape["vocabulary"],
    }
    for name, number in numbers.items():
        yield entry(f"llama.{name}", U32, number)
    yield entry("llama.rope.freq_base", FLOAT, 10000.0)
    yield entry("llama.attention.layer_norm_rms_epsilon", FLOAT, 1e-5)


def tensors(shape):
    """Names and sizes, in the order of the file: rows and columns of a matrix, or columns of a norm."""
    hidden, inner = shape["hidden"], shape["inner"]
    kv = hidden // shape["heads"] * shape["kv_heads"]
    yield "token_embd.weight", (shape["vocabulary"], hidden)
    yield "output_norm.weight", (hidden,)
    # Without it the table is the head as well.
    if shape.get("untied"):
        yield "output.weight", (shape["vocabulary"], hidden)
    for layer in range(shape["layers"]):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", (hidden,)
        yield block + "ffn_norm.weight", (hidden,)
        yield block + "attn_q.weight", (hidden, hidden)
        yield block + "attn_k.weight", (kv, hidden)
        yield block + "attn_v.weight", (kv, hidden)
        yield block + "attn_output.weight", (hidden, hidden)
        yield block + "ffn_gate.weight", (inner, hidden)
        yield block + "ffn_up.weight", (inner, hidden)
        yield block + "ffn_down.weight", (hidden, inner)


def stored(size):
    """Bytes of a tensor."""
    return 4 * size[0] if len(size) == 1 else size[0] * (size[1] // BLOCK) * BLOCK_BYTES


def padded(length):
    return -length % ALIGNMENT


def weights(rng, columns):
    """Blocks of random weights, of about the size that keeps the states' size."""
    scale = struct.pack("<e", 1 / (73 * math.sqrt(columns)))
    return memoryview(b"".join(scale + rng.randbytes(BLOCK) for _ in range(BLOCKS)))


def write(shape, out):
    """Writes the model to an open file."""
    listed = list(tensors(shape))
    entries = [*dimensions(shape), *vocabulary(shape["vocabulary"])]
    header = [MAGIC, struct.pack("<IQQ", VERSION, len(listed), len(entries)), *entries]
    offset = 0
    for name, size in listed:
        kind = F32 if len(size) == 1 else Q8_0
        header += [text(name), struct.pack(f"<I{len(size)}QIQ", len(size), *reversed(size), kind, offset)]
        offset += stored(size) + padded(stored(size))
    out.write(b"".join(header))
    out.write(bytes(padded(out.tell())))
    rng = random.Random(1)
    blocks = {columns: weights(rng, columns) for columns in (shape["hidden"], shape["inner"])}
    for _, size in listed:
        left = stored(size)
        if len(size) == 1:
            out.write(struct.pack("<f", 1.0) * size[0])
        else:
            # Not every matrix begins with the same.
            start = rng.randrange(BLOCKS) * BLOCK_BYTES
            while left:
                part = blocks[size[1]][start : start + left]
                out.write(part)
                left, start = left - len(part), 0
        out.write(bytes(padded(stored(size))))


def main():
    shape, path = json.loads(sys.argv[1]), Path(sys.argv[2])
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as out:
        write(shape, out)
    unfinished.rename(path)


if __name__ == "__main__":
    main()
