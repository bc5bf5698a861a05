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


def similarities(found):
    """Of each vector to each of the others."""
    cosines = found @ found.T
    np.fill_diagonal(cosines, -np.inf)
    return cosines


# Who leads the next by less than this has neighbors that are as good as equal.
CLEAR = 0.01


def neighbors(reference, found):
    """Whether everybody's nearest is still the nearest, and what it means where not.

    The reference's lead is how much nearer its nearest is than its second. What is lost is how much nearer the
    reference's nearest was than the one that is taken for it now, both as the reference sees them.
    """
    right, now = similarities(reference), similarities(found)
    rows = np.arange(len(right))
    nearest, taken = right.argmax(axis=1), now.argmax(axis=1)
    kept = nearest == taken
    first_two = np.sort(right, axis=1)[:, -2:]
    clear = first_two[:, 1] - first_two[:, 0] >= CLEAR
    lost = right[rows, nearest] - right[rows, taken]
    return {
        "nearest_kept": float(kept.mean()),
        "nearest_changed": int((~kept).sum()),
        "nearest_clear": int(clear.sum()),
        "nearest_kept_where_clear": float(kept[clear].mean()) if clear.any() else None,
        "similarity_lost_mean": float(lost.mean()),
        "similarity_lost_most": float(lost.max()),
    }


def main():
    reference = vectors(sys.argv[1])
    compared = []
    for path in sys.argv[2:]:
        found = vectors(path)
        cosines = (found * reference).sum(axis=1)
        compared.append(
            {
                "mean_cosine": float(cosines.mean()),
                "min_cosine": float(cosines.min()),
                **neighbors(reference, found),
                "count": len(cosines),
            }
        )
    print(json.dumps(compared))


if __name__ == "__main__":
    main()
