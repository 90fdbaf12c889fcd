r"""Which Fourier components the rows of a matrix show: rows and components matched one to one, then compared.

Source: lintilhac2026, Section 2.4 (rows of the attention read by eye).
Departures: read automatically. A row is read as its k largest columns, k the size of the component it is compared
with; rows and components are paired so that they share as many columns as possible in total (Hungarian method).
Guarantee: exact; among pairings with the same total the lowest component of a tie gets the lowest row that the solver
finds, which does not change precision and recall.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from genscope.refusal import Refusal


class Matching(NamedTuple):
    """Row of each component, None where rows ran out; shares of right columns."""

    rows: tuple[int | None, ...]
    precision: float  # mean over the matched rows
    recall: float  # mean over all components; one without a row has 0


def match_rows(
    strengths: Float[np.ndarray, "rows columns"],
    supports: Sequence[Sequence[int]],
    *,
    candidates: Sequence[int] | None = None,
) -> Matching:
    """Pair the components with rows, all or the `candidates`; nothing to pair gives precision and recall 0.

    >>> match_rows(np.array([[0.1, 0.5, 0.4], [0.8, 0.1, 0.1]]), [(0,), (0, 1)])
    Matching(rows=(1, 0), precision=0.75, recall=0.75)
    """
    from scipy.optimize import linear_sum_assignment  # slow to load, and every command that lists studies loads this

    rows = list(range(len(strengths)) if candidates is None else candidates)
    columns = strengths.shape[1]
    outside = [support for support in supports if not support or not 0 <= min(support) <= max(support) < columns]
    if outside or not all(0 <= row < len(strengths) for row in rows):
        raise Refusal(
            f"match_rows got supports {list(supports)} and candidates {rows} for a matrix of shape {strengths.shape}: "
            "supports must be non-empty sets of columns, and candidates must be rows. Correct those out of range."
        )
    if not rows or not supports:
        return Matching((None,) * len(supports), 0.0, 0.0)
    order = np.argsort(-strengths[rows], axis=1, kind="stable")
    shares = np.array([[len({*row[: len(s)].tolist()} & {*s}) / len(s) for row in order] for s in supports])
    sizes = np.array([len(support) for support in supports])
    matched, places = linear_sum_assignment(shares * sizes[:, None], maximize=True)
    found: list[int | None] = [None] * len(supports)
    for component, place in zip(matched.tolist(), places.tolist(), strict=True):
        found[component] = int(rows[place])
    right = shares[matched, places]
    return Matching(tuple(found), float(right.mean()), float(right.sum() / len(supports)))
