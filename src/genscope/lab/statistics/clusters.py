r"""Shares of several outcomes that are not independent, as counts of so many outcomes that are.

Runs that share a sample succeed or fail together more often than others. If the mean share of a group of outcomes at a
size is $p$, one outcome has the variance $p(1-p)$ and the share of a group a variance $v\,p(1-p)$: a group is worth
$1/v$ independent outcomes. One $v$ is taken for all sizes.

Source: Kish (1965), the design effect; McCullagh and Nelder (1989), Section 4.5: likelihoods divided by it.
Guarantee: estimate; intervals of thresholds from such counts cover in simulation (tests/lab/test_clusters.py). A single
outcome is worth itself, exactly.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from genscope.refusal import Refusal

FREEDOM = 8  # groups beyond the first at their size, below which each counts as one outcome
LEAST = 0.1  # of v: a group is never worth more than ten outcomes


def worth(shares: Mapping[float, Sequence[float]]) -> float:
    """How many independent outcomes a group is worth, from the shares of the groups at each size."""
    for size, values in shares.items():
        if not all(0 <= value <= 1 for value in values):
            raise Refusal(
                f"a success curve got the outcomes {', '.join(map(str, values))} at size {size}: an outcome must be "
                "true or false, or a share of successes from 0 to 1. Let the trial return one of these."
            )
    groups = [np.asarray(values, float) for values in shares.values() if len(values) > 1]
    freedom = np.array([len(group) - 1 for group in groups])
    if freedom.sum() < FREEDOM:
        return 1.0
    between = np.array([group.var(ddof=1) for group in groups])
    means = np.array([group.mean() for group in groups])
    alone = means * (1 - means) + between / (freedom + 1)  # whose mean is p (1 - p)
    return 1.0 if not alone.any() else float(1 / np.clip(freedom @ between / (freedom @ alone), LEAST, 1))


def counts_of(shares: Mapping[float, Sequence[float]]) -> dict[float, tuple[float, float]]:
    """Successes and trials by size, as many as the groups are worth."""
    each = worth(shares)
    return {size: (each * float(sum(values)), each * len(values)) for size, values in sorted(shares.items())}
