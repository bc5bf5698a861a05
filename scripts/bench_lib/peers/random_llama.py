"""Writes a Llama model of random weights as it would be published: how fast it is does not depend on their values.

    random_llama.py SHAPE_JSON TOKENIZER_JSON OUTPUT_FOLDER

Runs in the bench's virtual environment.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file


def main():
    shape, tokenizer, folder = json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    hidden, inner, layers = shape["hidden"], shape["inner"], shape["layers"]
    head = hidden // shape["heads"]
    kv = head * shape["kv_heads"]
    rng = np.random.default_rng(1)

    def matrix(rows, columns):
        # Of a size that keeps the states' size.
        return rng.standard_normal((rows, columns), dtype=np.float32) / np.float32(np.sqrt(columns))

    tensors = {"model.embed_tokens.weight": matrix(shape["vocabulary"], hidden)}
    tensors["model.norm.weight"] = np.ones(hidden, dtype=np.float32)
    for layer in range(layers):
        block = f"model.layers.{layer}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{block}{name}.weight"] = np.ones(hidden, dtype=np.float32)
        for name, rows, columns in (
            ("self_attn.q_proj", hidden, hidden),
            ("self_attn.k_proj", kv, hidden),
            ("self_attn.v_proj", kv, hidden),
            ("self_attn.o_proj", hidden, hidden),
            ("mlp.gate_proj", inner, hidden),
            ("mlp.up_proj", inner, hidden),
            ("mlp.down_proj", hidden, inner),
        ):
            tensors[f"{block}{name}.weight"] = matrix(rows, columns)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(tokenizer, folder / "tokenizer.json")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "head_dim": head,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "max_position_embeddings": shape["context"],
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": shape["heads"],
        "num_hidden_layers": layers,
        "num_key_value_heads": shape["kv_heads"],
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        "vocab_size": shape["vocabulary"],
    }
    (folder / "config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main()
