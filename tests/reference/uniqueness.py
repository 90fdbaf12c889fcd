"""Rivals by trying every placement of a truth table, one example at a time."""

import itertools


def fits(table, positions, x, y, errors=0):
    values = [table[sum(int(row[p]) << j for j, p in enumerate(positions))] for row in x]
    return sum(value != label for value, label in zip(values, y, strict=True)) <= errors


def same_function(table, positions, others):
    """Whether two placements agree at every input of the positions that occur in either."""
    union = sorted({*positions, *others})
    for bits in itertools.product([0, 1], repeat=len(union)):
        x = dict(zip(union, bits, strict=True))
        if not fits(table, positions, [x], [table[sum(x[p] << j for j, p in enumerate(others))]]):
            return False
    return True


def rivals(table, support, context_length, x, y, errors=0):
    """All placements with at most so many labels wrong that are another function than at the support."""
    return [
        placed
        for placed in itertools.permutations(range(context_length), len(support))
        if fits(table, placed, x, y, errors) and not same_function(table, placed, support)
    ]
