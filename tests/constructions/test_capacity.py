"""The point of the norms: put into the capacity bound they grow with the context length like a power of its log."""

import math

import numpy as np
import pytest

from genscope import bounds
from genscope.constructions import SparseFunction, any_function, symmetric, threshold_sum

LENGTHS = (100, 1000, 10_000, 100_000)


def capacity(construct, length, form):
    """The covering bound of a head with these norms on all 2T + 1 tokens, and gamma² log T."""
    built = construct(SparseFunction.threshold((0, 1, 2), 2, context_length=length))
    (head,) = built.model.heads.heads
    w_q, w_k, w_v = (np.asarray(w) for w in (head.w_q, head.w_k, head.w_v))
    bound = bounds.head(
        value_21=float(np.linalg.norm(w_v, axis=0).sum()),
        value_spectral=float(np.linalg.norm(w_v, 2)),
        query_key_21=float((np.linalg.norm(w_q, axis=1)[:, None] * np.linalg.norm(w_k)).sum()),  # sum over rows
        input_norm=math.sqrt(2),
        context_norm=1.0,
        epsilon=1.0,
        width=w_v.shape[1],
        dimension=built.model.encoding.dim,
        points=2 * length + 1,
        form=form,
    )
    return bound.value, built.gamma**2 * math.log(length)


@pytest.mark.parametrize(
    ("construct", "form"),
    [(threshold_sum, "order"), (symmetric, "order"), (any_function, "order"), (any_function, "explicit")],
)
def test_capacity_grows_like_a_power_of_the_logarithm(construct, form):
    values, scales = np.array([capacity(construct, length, form) for length in LENGTHS]).T
    ratios = values / scales
    assert (np.diff(values) > 0).all()
    assert ratios[-1] == pytest.approx(ratios[-2], rel=0.1)  # gamma and log T have constants that fade
    assert values[-1] < 30 * values[0]  # while T grew a thousandfold
