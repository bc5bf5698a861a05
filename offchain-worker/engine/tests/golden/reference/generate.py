#!/usr/bin/env python3
"""Writes the small models beside this file, and what their authors' code makes of some texts.

Each folder is a model as it is published, with random weights, half precision and a vocabulary of its own; its
`expected.json` is what `transformers` and `sentence-transformers` give in float32 for these very files: the vectors of
an encoder, the last position's logits of a decoder and what it goes on with when it takes the likeliest token.

Installs what it needs into an environment of its own below the user's cache: that takes some GB and minutes.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
ENVIRONMENT = CACHE / "surety" / "reference" / "venv"
PACKAGES = ["torch==2.15.0", "transformers==5.23.0", "sentence-transformers==6.2.0"]

TEXTS = [
    "A man is eating food.",
    "the cat sat on the mat",
    "Rain, rain; and then more rain in the evening.",
    "x",
    "prices fell in march 2021 by 3 percent",
    "what is the name of that river?",
]
WORDS = [
    "a",
    "the",
    "of",
    "and",
    "in",
    "to",
    "is",
    "on",
    "it",
    "that",
    "what",
    "name",
    "man",
    "cat",
    "food",
    "rain",
    "river",
    "fell",
    "more",
    "then",
    "by",
    "one",
    "two",
]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CONTINUED = 24


def install() -> None:
    """Runs this file again with what it needs."""
    python = ENVIRONMENT / "bin" / "python"
    if pathlib.Path(sys.prefix) == ENVIRONMENT:
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    os.execv(python, [python, __file__])


# --- Tokenizers -------------------------------------------------------------------------------------------------------
def word_pieces():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), ".", ",", ";", "?"]
    pieces += [word for word in WORDS if word not in pieces]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


# What a tokenizer of Qwen 2 splits text by.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def bytes_of(begin: bool):
    """A token for each byte, a few for more, and four special ones; `begin`: prompts begin with one."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("i", "n"), ("Ġ", "the")]
    pieces = [*alphabet, *("".join(merge) for merge in merges), "<s>", "</s>", "<|end|>", "<pad>"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=begin)
    if begin:
        tokenizer.pre_tokenizer = whole
        start = ("<s>", vocabulary["<s>"])
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[start])
    else:
        split = pre_tokenizers.Split(Regex(SPLIT), behavior="isolated")
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, whole])
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", pad_token="<pad>")


# --- Models -----------------------------------------------------------------------------------------------------------
def randomized(model, seed: int):
    """Weights of the size that trained ones have, so that heads look at something: those of a fresh model do not."""
    import torch

    stream = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, values in sorted(model.named_parameters()):
            noise = torch.randn(values.shape, generator=stream)
            if "norm" in name.lower() and name.endswith("weight"):
                noise = 1 + 0.2 * noise
            elif values.dim() == 1:
                noise = 0.3 * noise
            elif "embed" not in name:
                noise = 1.5 * noise / values.shape[1] ** 0.5
            values.copy_(noise)
    return model.half()


def kept(made: pathlib.Path, name: str, expected: dict) -> None:
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    for file in [
        "config.json",
        "generation_config.json",
        "modules.json",
        "1_Pooling/config.json",
        "tokenizer.json",
        "model.safetensors",
    ]:
        if (made / file).exists():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made / file, folder / file)
    items = ",\n".join("  " + json.dumps(item) for item in expected.pop("items"))
    head = "".join(f' "{key}": {json.dumps(value)},\n' for key, value in expected.items())
    (folder / "expected.json").write_text(f'{{\n{head} "items": [\n{items}\n ]\n}}\n')


def rounded(values) -> list:
    return [float(f"{value:.7g}") for value in values.tolist()]


def encoder(name: str, pooling: str, seed: int) -> None:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from transformers import BertConfig, BertModel

    tokenizer = word_pieces()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=64,
    )
    with tempfile.TemporaryDirectory() as temporary:
        bare, made = pathlib.Path(temporary) / "bare", pathlib.Path(temporary) / "made"
        randomized(BertModel(config), seed).save_pretrained(bare)
        tokenizer.save_pretrained(bare)
        parts = [modules.Transformer(str(bare)), modules.Pooling(64, pooling), modules.Normalize()]
        SentenceTransformer(modules=parts).save(str(made))
        model = SentenceTransformer(str(made), device="cpu", model_kwargs={"dtype": torch.float32})
        # One by one: nothing is padded.
        items = [
            {"text": text, "ids": tokenizer(text)["input_ids"], "embedding": rounded(model.encode(text))}
            for text in TEXTS
        ]
        kept(made, name, {"made_with": made_with(), "pooling": pooling, "items": items})


def decoder(name: str, config, seed: int, begin: bool, stop: list) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = bytes_of(begin)
    with tempfile.TemporaryDirectory() as temporary:
        made = pathlib.Path(temporary)
        model = randomized(AutoModelForCausalLM.from_config(config), seed)
        model.generation_config.eos_token_id = stop[0] if len(stop) == 1 else stop
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        model = AutoModelForCausalLM.from_pretrained(made, dtype=torch.float32).eval()
        items = []
        for text in TEXTS:
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            with torch.no_grad():
                logits = model(ids).logits[0, -1]
                greedy = model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    do_sample=False,
                    max_new_tokens=CONTINUED,
                    output_logits=True,
                    return_dict_in_generate=True,
                )
            likeliest = [step[0].topk(2).values for step in greedy.logits]
            items.append(
                {
                    "text": text,
                    "ids": ids[0].tolist(),
                    "logits": rounded(logits),
                    "continuation": greedy.sequences[0, ids.shape[1] :].tolist(),
                    # How far the likeliest is before the next one.
                    "margins": [float(f"{first - second:.4g}") for first, second in likeliest],
                }
            )
        expected = {"made_with": made_with(), "stop": stop, "items": items}
        kept(made, name, expected)


def made_with() -> str:
    return ", ".join([*PACKAGES, "float32, CPU"])


def main() -> None:
    from transformers import LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

    size = {
        "vocab_size": 264,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "eos_token_id": 261,
        "pad_token_id": 263,
    }
    stretched = {
        "rope_type": "llama3",
        "rope_theta": 500_000.0,
        "factor": 4.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    }
    encoder("bert-mean", "mean", 1)
    encoder("bert-cls", "cls", 2)
    decoder("llama", LlamaConfig(**size, bos_token_id=260, rope_parameters=stretched), 3, True, [261])
    qwen = Qwen2Config(**size, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    # The second of what ends it is a token that one of the texts leads to.
    decoder("qwen2", qwen, 4, False, [261, 173])
    # Heads that are wider together than a state.
    mistral = MistralConfig(**size, bos_token_id=260, head_dim=32, sliding_window=None)
    decoder("mistral", mistral, 5, True, [261])
    # Heads that are normed, each wider than its part of a state.
    rope = {"rope_type": "default", "rope_theta": 1e6}
    qwen3 = Qwen3Config(**size, head_dim=24, tie_word_embeddings=True, rope_parameters=rope)
    decoder("qwen3", qwen3, 6, False, [261])


if __name__ == "__main__":
    install()
    main()
