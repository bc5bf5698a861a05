"""Writes a Llama model of random Q8_0 weights as GGUF, for the bench's peer: speed does not depend on their values.

    gguf_llama.py SHAPE_JSON OUTPUT_FILE

Runs in the bench's virtual environment.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf.constants import GGMLQuantizationType, LlamaFileType, TokenType

# A Q8_0 block: an f16 scale and 32 weights.
BLOCK, BLOCK_BYTES = 32, 34


def random_q8(rng, rows, columns):
    """Blocks of random weights, of about the size that keeps the states' size."""
    blocks = rng.integers(0, 256, (rows, columns // BLOCK, BLOCK_BYTES), dtype=np.uint8)
    scale = np.array([1 / (73 * np.sqrt(columns))], dtype=np.float16).view(np.uint8)
    blocks[..., :2] = scale
    return blocks.reshape(rows, columns // BLOCK * BLOCK_BYTES)


def vocabulary(writer, size):
    """Bytes and made-up words: nothing is ever tokenised with it."""
    tokens = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{byte:02X}>".encode() for byte in range(256)]
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL] + [TokenType.BYTE] * 256
    tokens += [f"w{index}".encode() for index in range(size - len(tokens))]
    types += [TokenType.NORMAL] * (size - len(types))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * size)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def main():
    shape, path = json.loads(sys.argv[1]), Path(sys.argv[2])
    hidden, inner, layers = shape["hidden"], shape["inner"], shape["layers"]
    kv = hidden // shape["heads"] * shape["kv_heads"]
    rng = np.random.default_rng(1)
    unfinished = path.with_suffix(".part")
    writer = gguf.GGUFWriter(str(unfinished), "llama")
    writer.add_context_length(shape["context"])
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_rope_dimension_count(hidden // shape["heads"])
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape["vocabulary"])
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    vocabulary(writer, shape["vocabulary"])

    def matrix(name, rows, columns):
        writer.add_tensor(name, random_q8(rng, rows, columns), raw_dtype=GGMLQuantizationType.Q8_0)

    def ones(name):
        writer.add_tensor(name, np.ones(hidden, dtype=np.float32))

    # Tied: the table is the head as well.
    matrix("token_embd.weight", shape["vocabulary"], hidden)
    ones("output_norm.weight")
    for layer in range(layers):
        block = f"blk.{layer}."
        ones(block + "attn_norm.weight")
        ones(block + "ffn_norm.weight")
        for name, rows, columns in (
            ("attn_q", hidden, hidden),
            ("attn_k", kv, hidden),
            ("attn_v", kv, hidden),
            ("attn_output", hidden, hidden),
            ("ffn_gate", inner, hidden),
            ("ffn_up", inner, hidden),
            ("ffn_down", hidden, inner),
        ):
            matrix(f"{block}{name}.weight", rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.rename(path)


if __name__ == "__main__":
    main()
