"""Sentences to vectors with onnxruntime, measured: see `contestant.py` for how it is asked.

    ort_embed.py MODEL.onnx TOKENIZER.json SENTENCES THREADS

Runs in the bench's virtual environment. `{"mode": "alone" | "batches" | "side by side", "stride": N}` measures with
every Nth sentence; `{"vectors": FILE}` writes all vectors.
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Tokenising, too, gets no more threads than what is measured.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import onnxruntime
from safetensors.numpy import save_file
from tokenizers import Tokenizer

BATCH = 8


class Model:
    def __init__(self, model, tokenizer, threads):
        self.threads = threads
        self.session = self._session(model, threads)
        self.one_thread = self._session(model, 1) if threads > 1 else None
        self.tokenizer = Tokenizer.from_file(tokenizer)
        self.tokenizer.no_padding()

    def _session(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def one(self, sentence, session):
        ids = np.array([self.tokenizer.encode(sentence).ids], dtype=np.int32)
        return session.run(None, {"ids": ids, "mask": np.ones_like(ids)})[0]

    def alone(self, sentences):
        return np.concatenate([self.one(sentence, self.session) for sentence in sentences])

    def side_by_side(self, sentences):
        with ThreadPoolExecutor(self.threads) as pool:
            return np.concatenate(list(pool.map(lambda sentence: self.one(sentence, self.one_thread), sentences)))

    def batches(self, sentences):
        """Sentences of about the same length together: as little padding as can be."""
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch(sentences)]
        order = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
        found = [None] * len(tokens)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            ids = np.zeros((len(batch), max(len(tokens[index]) for index in batch)), dtype=np.int32)
            mask = np.zeros_like(ids)
            for row, index in enumerate(batch):
                ids[row, : len(tokens[index])] = tokens[index]
                mask[row, : len(tokens[index])] = 1
            for index, vector in zip(batch, self.session.run(None, {"ids": ids, "mask": mask})[0], strict=True):
                found[index] = vector
        return np.stack(found)


def say(**answer):
    print(json.dumps(answer), flush=True)


def main():
    path, tokenizer, sentences, threads = sys.argv[1:]
    sentences = Path(sentences).read_text(encoding="utf-8").splitlines()
    begun = time.perf_counter()
    model = Model(path, tokenizer, int(threads))
    say(ready=True, load_seconds=time.perf_counter() - begun, version=onnxruntime.__version__)
    modes = {"alone": model.alone, "batches": model.batches, "side by side": model.side_by_side}
    for line in sys.stdin:
        command = json.loads(line)
        if "vectors" in command:
            save_file({"embeddings": model.alone(sentences)}, command["vectors"])
            say(units=len(sentences))
            continue
        chosen = sentences[:: command["stride"]]
        begun, processor = time.perf_counter(), time.process_time()
        modes[command["mode"]](chosen)
        processor = time.process_time() - processor
        say(units=len(chosen), seconds=time.perf_counter() - begun, processor_seconds=processor)


if __name__ == "__main__":
    main()
