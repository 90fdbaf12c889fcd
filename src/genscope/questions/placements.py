"""The class of a question: all functions that an expression becomes when its variables are placed at other bits.

Guarantee: exact up to 8 variables, and beyond where variables of one kind are all exchangeable; else a number not above
the true one, so that a bound from below stays one.
"""

import itertools
import math

import numpy as np
from jaxtyping import Bool

from genscope.questions.question import Question

_MOST_PERMUTATIONS = 50_000


def placements(question: Question, context_length: int) -> int:
    """How many different functions the placements of an expression are."""
    if question.expression is None or question.fixed_support:
        return 1
    _, table = question.expression.reduced
    size = len(table).bit_length() - 1
    return math.perm(context_length, size) // symmetries(table)


def symmetries(table: Bool[np.ndarray, " entries"]) -> int:
    """Permutations of the variables that leave a truth table as it is; where they are too many to try, no fewer."""
    size = len(table).bit_length() - 1
    cube = table.reshape((2,) * size)  # axis -1-j belongs to variable j
    weight = [
        (int((cube.take(1, axis)).sum()), int((cube.take(0, axis) != cube.take(1, axis)).sum())) for axis in range(size)
    ]
    groups = [[axis for axis in range(size) if weight[axis] == kind] for kind in sorted(set(weight))]
    most = math.prod(math.factorial(len(group)) for group in groups)
    if all(_is_symmetric(cube, pair) for group in groups for pair in itertools.pairwise(group)):
        return most
    if most > _MOST_PERMUTATIONS:
        return most
    found = 0
    for choice in itertools.product(*(itertools.permutations(group) for group in groups)):
        axes = [0] * size
        for group, images in zip(groups, choice, strict=True):
            for axis, image in zip(group, images, strict=True):
                axes[axis] = image
        found += bool((cube.transpose(axes) == cube).all())
    return found


def _is_symmetric(cube: np.ndarray, pair: tuple[int, int]) -> bool:
    return bool((cube.swapaxes(*pair) == cube).all())
