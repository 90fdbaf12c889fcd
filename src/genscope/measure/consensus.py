"""Which of several runs on one sample to trust, by what they answer where nobody gave labels.

Runs that learned the function agree on fresh inputs; runs that memorized their sample disagree.

Source: house design.
Guarantee: exact; no label is looked at.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

NEARLY = 0.005  # agreements that differ by less are taken for equal


def agreement(answers: Bool[np.ndarray, "runs inputs"]) -> Float[np.ndarray, "runs runs"]:
    """Shares of inputs on which two runs agree; 0 between a run and itself."""
    shares = (answers[:, None] == answers[None]).mean(axis=2)
    return shares * (1 - np.eye(len(shares)))


def consensus(
    answers: Bool[np.ndarray, "runs inputs"], preference: Sequence[float] | Float[np.ndarray, " runs"] | None = None
) -> Float[np.ndarray, " runs"]:
    """Scores of runs, of which the first of the largest is chosen: agreement with the best partner.

    Among those that nearly have the best, by a `preference` between 0 and 1, if there is one.
    """
    best = agreement(answers).max(axis=1)
    preferred = np.zeros(len(best)) if preference is None else np.asarray(preference)
    return np.where(best > best.max() - NEARLY, 1 + preferred, best)
