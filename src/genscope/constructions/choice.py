"""The smallest construction that represents a function exactly, for each encoding; thresholds also within an error.

Source: edelman2022, Section 5.
Guarantee: exact constructions unless an error is allowed; random vectors are as good as their draw.
"""

from typing import Literal

from jaxtyping import Array, Key

from genscope.constructions._base import Construction
from genscope.constructions.bag_of_vectors import bag_any_function, bag_symmetric, bag_threshold
from genscope.constructions.nearly_orthogonal import random_bag_any_function, random_threshold
from genscope.constructions.random_encoding import random_any_function, random_constant
from genscope.constructions.sparse_function import SparseFunction
from genscope.constructions.sparse_variable import any_function, symmetric, threshold_sum
from genscope.refusal import Refusal

Encoding = Literal["positional", "bag", "random", "random-bag"]
RANDOM = ("random", "random-bag")


def construct(
    function: SparseFunction,
    *,
    encoding: Encoding = "positional",
    dimension: int | None = None,
    gamma: float | None = None,
    within: float | None = None,
    key: Key[Array, ""],
) -> Construction:
    """Thresholds and constants without a perceptron where that is exact, then symmetric functions, then all.

    `key` draws the random vectors, and `dimension` is theirs. With `within`, a threshold by attention alone that errs
    by at most so much.

    >>> import jax.random as jr
    >>> built = construct(SparseFunction.parse("maj(x3, x14, x15)", context_length=92), key=jr.key(0))
    >>> built.source
    'edelman2022, Section 5 (i), positional embeddings, tf-scalar'
    """
    if dimension is not None and encoding not in RANDOM:
        raise Refusal(
            f"construct got {dimension=} with encoding={encoding!r}: coordinate vectors determine their own dimension. "
            "Leave the dimension out, or choose the encoding 'random'."
        )
    if within is not None:
        return _threshold(function, encoding, dimension, gamma, within, key)
    if encoding == "random-bag":
        return random_bag_any_function(function, dimension=dimension, gamma=gamma, key=key)
    if encoding == "random":
        if not function.support:
            return random_constant(function, dimension=dimension, gamma=gamma, key=key)
        return random_any_function(function, dimension=dimension, gamma=gamma, key=key)
    if encoding == "bag":
        return (bag_any_function if function.levels is None else bag_symmetric)(function, gamma=gamma)
    if function.levels is None:
        return any_function(function, gamma=gamma)
    simple = not function.support or function.least_ones is not None
    return (threshold_sum if simple else symmetric)(function, gamma=gamma)


def _threshold(
    function: SparseFunction,
    encoding: Encoding,
    dimension: int | None,
    gamma: float | None,
    within: float,
    key: Key[Array, ""],
) -> Construction:
    if function.least_ones is None or encoding == "random-bag":
        raise Refusal(
            f"construct got an error tolerance of {within:g} with encoding={encoding!r}: attention alone computes "
            "thresholds only (such as AND, OR and majority), and not for bags of random vectors. Leave the error out "
            "for an exact construction."
        )
    if encoding == "random":
        return random_threshold(function, epsilon=within, dimension=dimension, gamma=gamma, key=key)
    if encoding == "bag":
        return bag_threshold(function, epsilon=within, gamma=gamma)
    return threshold_sum(function, gamma=gamma)  # exact
