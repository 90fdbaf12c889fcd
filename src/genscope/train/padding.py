"""Padded sample sizes: few shapes, so that few programs are compiled.

Source: None (house convention).
Departures: None.
Guarantee: at most half as many rows again as were asked for, above the smallest shape.
"""

import numpy as np
from jaxtyping import Float

SMALLEST = 32


def padded_size(size: int) -> int:
    """The next of 32, 48, 64, 96, 128, 192, ...

    >>> [padded_size(size) for size in (1, 32, 33, 49, 70, 200)]
    [32, 32, 48, 64, 96, 256]
    """
    if size < 1:
        raise ValueError(f"padded_size got {size=}: a sample holds at least one example. Give 1 or more.")
    power = SMALLEST
    while power < size:
        if size <= power * 3 // 2:
            return power * 3 // 2
        power *= 2
    return power


def example_weights(size: int, padded: int) -> Float[np.ndarray, " padded"]:
    """1 for the first `size` examples, 0 for the padding."""
    return (np.arange(padded) < size).astype(np.float32)
