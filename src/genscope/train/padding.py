"""Padded sample sizes: few shapes, so that few programs are compiled.

Guarantee: above the smallest shape, at most a quarter as many rows again as were asked for.
"""

import numpy as np
from jaxtyping import Float

from genscope.refusal import Refusal


def padded_size(size: int, *, smallest: int = 32) -> int:
    """The next of the doublings of `smallest`, and of the three sizes that divide each doubling evenly.

    >>> [padded_size(size) for size in (1, 32, 33, 49, 70, 200)]
    [32, 32, 40, 56, 80, 224]
    >>> [padded_size(size, smallest=128) for size in (1, 128, 129)]
    [128, 128, 160]
    >>> [padded_size(size, smallest=2) for size in (1, 3, 5)]
    [2, 3, 5]
    """
    if size < 1:
        raise Refusal(f"padded_size got {size=}: a sample holds at least one example. Give 1 or more.")
    power = smallest
    while 2 * power < size:
        power *= 2
    quarter = max(power // 4, 1)
    return max(power, -(-size // quarter) * quarter)


def example_weights(size: int, padded: int) -> Float[np.ndarray, " padded"]:
    """1 for the first `size` examples, 0 for the padding."""
    return (np.arange(padded) < size).astype(np.float32)
