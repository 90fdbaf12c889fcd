"""Padded sample sizes: few shapes, so that few programs are compiled.

Guarantee: above the smallest shape, with the four steps of default, at most a quarter as many rows again as were asked
for.
"""

import numpy as np
from jaxtyping import Float

from genscope.refusal import Refusal


def padded_size(size: int, *, smallest: int = 32, steps: int = 4) -> int:
    """The next of the doublings of `smallest`, and of the sizes that divide each doubling into so many equal steps.

    >>> [padded_size(size) for size in (1, 32, 33, 49, 70, 200)]
    [32, 32, 40, 56, 80, 224]
    >>> [padded_size(size, smallest=128) for size in (1, 128, 129)]
    [128, 128, 160]
    >>> [padded_size(size, smallest=2) for size in (1, 3, 5)]
    [2, 3, 5]
    >>> [padded_size(size, smallest=512, steps=1) for size in (1, 512, 513)]
    [512, 512, 1024]
    """
    if size < 1:
        raise Refusal(f"padded_size got {size=}: a sample must hold at least one example. Give 1 or more.")
    power = smallest
    while 2 * power < size:
        power *= 2
    step = max(power // steps, 1)
    return max(power, -(-size // step) * step)


def example_weights(size: int, padded: int) -> Float[np.ndarray, " padded"]:
    """1 for the first `size` examples, 0 for the padding."""
    return (np.arange(padded) < size).astype(np.float32)
