"""The Boolean cube: its points in the house order, truth tables as numbers, and the one conversion of bits to signs.

Guarantee: exact. `points` serves up to 24 bits; `signs` and `bits` take NumPy and JAX arrays, inside jit too.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool

from genscope.refusal import Refusal

LARGEST = 24  # 2^24 points of 24 bits are 400 MB


def points(dim: int) -> Bool[np.ndarray, "points dim"]:
    """All points of {0,1}^dim, bit 0 varying fastest: bit j of point i is `(i >> j) & 1`.

    >>> points(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    if not 0 <= dim <= LARGEST:
        raise Refusal(
            f"points got {dim=}: all 2^dim points are listed, so dim must be 0 to {LARGEST}. Sample the cube instead, "
            "or fix some of the bits."
        )
    octets = np.arange(2**dim, dtype="<u4")[:, None].view(np.uint8)
    return np.unpackbits(octets, axis=1, count=dim, bitorder="little").view(bool)


def table_of_number(number: int, dim: int) -> Bool[np.ndarray, " points"]:
    """The truth table over 2^dim points whose value at point i is bit i of the number."""
    if not 0 <= dim <= LARGEST or number < 0 or number >> 2**dim:
        raise Refusal(
            f"table_of_number got a number of {number.bit_length()} bits and {dim=}: the number must be nonnegative "
            f"with one bit for each of the 2^dim points, and dim must be 0 to {LARGEST}. Correct the number or "
            "increase dim."
        )
    octets = np.frombuffer(number.to_bytes(max(1, 2**dim // 8), "little"), np.uint8)
    return np.unpackbits(octets, bitorder="little")[: 2**dim].astype(bool)


def number_of_table(table: Bool[np.ndarray, " points"]) -> int:
    """The number whose bit i is the value of the table at point i.

    >>> hex(number_of_table(points(3).sum(axis=1) % 2 == 1))
    '0x96'
    """
    return int.from_bytes(np.packbits(table, bitorder="little").tobytes(), "little")


def signs(bits: Any, dtype: Any = np.float32) -> Any:
    """Signs (-1)^b of an array of bits: 0 becomes 1, 1 becomes -1; the result has the given signed `dtype`."""
    if np.issubdtype(dtype, np.unsignedinteger) or np.issubdtype(dtype, np.bool_):
        raise Refusal(
            f"signs got dtype={np.dtype(dtype).name}, which cannot hold -1: signs need a signed integer or "
            "floating-point type. Leave dtype out for float32, or use int8."
        )
    return 1 - 2 * bits.astype(dtype)


def bits(signs: Any) -> Any:
    """Bits of an array of signs: 1 becomes False, -1 becomes True; the inverse of `signs`."""
    return signs < 0


def check_bits(x: Any, what: str) -> None:
    """Refuse an array that holds no bits; `what` got it. Values of integers are checked in NumPy arrays only."""
    integral = np.issubdtype(x.dtype, np.integer)
    outside = isinstance(x, np.ndarray) and integral and bool(((x != 0) & (x != 1)).any())
    if outside or not (integral or np.issubdtype(x.dtype, np.bool_)):
        raise Refusal(
            f"{what} got values {'other than 0 and 1' if outside else f'of type {x.dtype}'}: bits must be Booleans or "
            "the integers 0 and 1. Convert signs with genscope.fourier.bits, and 0.0, 1.0 with `x == 1`."
        )
