"""The 1,797 scanned digits that ship in scikit-learn, split once and for all into training and held-out images."""

import numpy as np
from sklearn.datasets import load_digits

HELD_OUT = 450
SPLIT_SEED = 20


def load_split():
    """Returns (train images, train labels, held-out images, held-out labels).

    Images are float32 [count, 1, 8, 8] in 0..1; labels are int64 [count].
    """
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(images))
    held_out, train = order[:HELD_OUT], order[HELD_OUT:]
    return images[train], labels[train].astype(np.int64), images[held_out], labels[held_out].astype(np.int64)
