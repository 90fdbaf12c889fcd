"""The inequalities by search: never violated, nearly attained, and violated as soon as they are weakened.

The searches are deterministic (fixed keys), so none of these tests can fail by chance.
"""

import functools

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.measure.lipschitz import (
    EVERY_TERM,
    FLOOR,
    ROUNDING,
    DeepCase,
    HeadCase,
    deep_ratio,
    head_ratio,
    search_ratio,
)
from genscope.models.edelman2022 import Head
from genscope.precision import float64
from tests.reference import edelman2022 as twin

KEY = jr.key(5)
HEADS = functools.partial(HeadCase.draw, context_length=3, dim=4, head_dim=3)
LAYERS = functools.partial(DeepCase.draw, context_length=3, dim=4, head_dim=3, layers=2)


def test_the_head_attains_its_inequality_and_not_more():
    search = functools.partial(search_ratio, head_ratio, HEADS, key=KEY)
    proved = search(softmax_constant=1.0)
    assert proved.drawn < proved.climbed
    assert 0.9 < proved.climbed <= 1 + ROUNDING
    assert search(softmax_constant=0.5).climbed > 1.5  # the planted error


@pytest.mark.slow
def test_the_deep_network_obeys_its_inequality_and_needs_every_term():
    search = functools.partial(search_ratio, deep_ratio, LAYERS, key=KEY)
    assert search(kept=EVERY_TERM).climbed <= 1 + ROUNDING
    for term in EVERY_TERM:
        assert search(kept={**EVERY_TERM, term: 0.0}).climbed > 1, term


def arrays(head):
    return [np.asarray(getattr(head, name)) for name in ("w_q", "w_k", "w_v")]


def test_ratios_agree_with_the_twin():
    """Both sides again, with loops and NumPy."""
    with float64():
        for seed in range(3):
            case = HEADS(jr.key(seed))
            ratio = float(head_ratio(case))
            tokens, z = np.asarray(case.tokens), np.asarray(case.context)
            (q, k, v), (q2, k2, v2) = arrays(case.head), arrays(case.moved)
            left = np.linalg.norm(twin.head(tokens, z, q, k, v)[1] - twin.head(tokens, z, q2, k2, v2)[1])
            scores = max(abs(twin.score(x, z, q, k) - twin.score(x, z, q2, k2)) for x in tokens)
            values = max(np.linalg.norm((v - v2).T @ x) for x in tokens)
            right = np.linalg.norm(v, 2) * max(np.linalg.norm(x) for x in tokens) * scores + values
            assert ratio == pytest.approx(left / (right + FLOOR), rel=1e-9)


def deep_twin(case):
    """Left and right-hand side of the deep inequality, layer by layer, term by term."""
    moved_layers, moved_w = case.moved
    full = [[*arrays(head), np.asarray(head.w_c)] for head in case.layers]
    other = [[*arrays(head), np.asarray(head.w_c)] for head in moved_layers]
    true = moved = np.array([twin.project(x) for x in np.asarray(case.tokens)])
    w, w2 = np.asarray(case.readout), np.asarray(moved_w)
    errors, growths = [], []
    for (q, k, v, c), (q2, k2, v2, c2) in zip(full, other, strict=True):
        active = np.array([twin.head(moved, z, q2, k2, v2, None, twin.relu, twin.project)[1] for z in moved])
        e_c = max(np.linalg.norm((c - c2).T @ u) for u in active)
        e_v = max(np.linalg.norm((v - v2).T @ x) for x in moved)
        e_qk = max(np.linalg.norm((q @ k.T - q2 @ k2.T) @ x) for x in moved)
        b_c, b_v, b_qk = (np.linalg.norm(m, 2) for m in (c, v, q @ k.T))
        errors.append(e_c + b_c * e_v + b_c * b_v * e_qk)
        growths.append(b_c * b_v * (1 + 2 * b_qk))
        true, moved = (
            np.array([twin.project(row) for row in twin.layer(x, [weights], inner=twin.project)])
            for x, weights in ((true, (q, k, v, c)), (moved, (q2, k2, v2, c2)))
        )
    right = sum(error * np.prod(growths[i + 1 :]) for i, error in enumerate(errors))
    return abs(w @ true[-1] - w2 @ moved[-1]), np.linalg.norm(w) * right + abs((w - w2) @ moved[-1])


def test_deep_ratios_agree_with_the_twin():
    with float64():
        for seed in range(3):
            case = LAYERS(jr.key(seed))
            left, right = deep_twin(case)
            assert float(deep_ratio(case)) == pytest.approx(left / (right + FLOOR), rel=1e-8)


def test_softmax_constant_one_is_sharp():
    """Two tokens x and -x with scores near 0: the limit of equality, by hand."""
    with float64():
        tokens, one = jnp.array([[1.0], [-1.0]]), jnp.ones((1, 1))
        ratios = [
            float(
                head_ratio(
                    HeadCase(
                        Head(0.0 * one, one, one, sigma=lambda x: x),
                        Head(step * one, one, one, sigma=lambda x: x),
                        tokens,
                        jnp.ones(1),
                    )
                )
            )
            for step in (1.0, 0.1, 0.01)
        ]
    assert ratios == sorted(ratios)
    assert ratios[-1] == pytest.approx(1.0, abs=2e-4)


def test_draws_vary_and_an_unmoved_case_has_ratio_zero():
    with float64():
        one, other = HEADS(jr.key(0)), HEADS(jr.key(1))
        assert not np.allclose(one.tokens, other.tokens)
        still = eqx.tree_at(lambda case: case.moved, one, one.head)
        assert float(head_ratio(still)) < 1e-8


def test_refusals():
    with pytest.raises(ValueError, match=r"starts=0, .* Increase the one that is not"):
        search_ratio(head_ratio, HEADS, key=KEY, starts=0)
    with float64():
        case = LAYERS(KEY)
        bare = eqx.tree_at(lambda c: c.layers[0].w_c, case, None)
        with pytest.raises(ValueError, match=r"without w_c: .* Give heads with w_c"):
            deep_ratio(bare)
