"""How near vectors are to a reference's: `compare.py REFERENCE OTHER...`, all safetensors with a tensor `embeddings`.

Runs in the bench's virtual environment. Prints one JSON object for each, in order.
"""

import json
import sys

import numpy as np
from safetensors.numpy import load_file


def vectors(path):
    found = load_file(path)["embeddings"].astype(np.float64)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def nearest(found):
    """For each vector the index of the nearest of the others."""
    cosines = found @ found.T
    np.fill_diagonal(cosines, -np.inf)
    return cosines.argmax(axis=1)


def main():
    reference = vectors(sys.argv[1])
    compared = []
    for path in sys.argv[2:]:
        found = vectors(path)
        cosines = (found * reference).sum(axis=1)
        kept = nearest(found) == nearest(reference)
        compared.append(
            {
                "mean_cosine": float(cosines.mean()),
                "min_cosine": float(cosines.min()),
                "nearest_kept": float(kept.mean()),
                "count": len(cosines),
            }
        )
    print(json.dumps(compared))


if __name__ == "__main__":
    main()
