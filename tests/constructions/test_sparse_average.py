"""One head averages: within its promise on hostile tokens, and not with a query that is the sum of the codes."""

import itertools
import math
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from genscope.constructions.sparse_average import average_query, query_gap, sparse_average
from genscope.precision import float64
from genscope.refusal import Refusal

N, D, Q, CODED = 8, 3, 3, 64


def codes(number=0):
    return np.random.default_rng(number).choice([-1.0, 1.0], (N, CODED)) / math.sqrt(CODED)


SETS = list(itertools.combinations(range(N), Q))
U = np.array([0.6, 0.0, 0.8])


def errors(built, trials=40):
    chance, found = np.random.default_rng(1), []
    for _ in range(trials):
        x = chance.normal(size=(N, D))
        x *= built.token_norm / np.linalg.norm(x, axis=1, keepdims=True)  # as long as is allowed
        if chance.random() < 0.5:
            x = np.outer(chance.choice([-1.0, 1.0], N), U) * built.token_norm  # along the direction
        chosen = [SETS[i] for i in chance.integers(len(SETS), size=N)]
        with float64():
            found.append(np.asarray(built.model(jnp.asarray(built.embed(x, chosen)))))
        found[-1] = found[-1] - [x[list(each)].mean(axis=0) @ U for each in chosen]
    return np.abs(found)


def test_one_head_averages_every_set():
    built = sparse_average(codes(), U, SETS, token_norm=5.0, error=0.01)
    assert built.model.w_qk.shape[0] == 1 < Q
    assert built.error == pytest.approx(0.01)
    assert 0.3 < built.gap < 1
    worst = errors(built).max()
    assert 1e-6 < worst <= 0.01


def test_scores_are_equal_in_a_set_and_lower_outside():
    encoding = codes()
    for chosen in SETS[::7]:
        scores = encoding @ average_query(encoding, chosen)
        assert scores[list(chosen)] == pytest.approx(1)
        assert np.delete(scores, chosen).max() <= 1 - query_gap(encoding, SETS) + 1e-12


def test_the_sum_of_the_codes_is_no_such_query(monkeypatch):
    """Random codes are not orthogonal: with their sum as query, sharp attention prefers one token of the set."""
    built = sparse_average(codes(), U, SETS, token_norm=5.0, error=0.01)
    monkeypatch.setattr(
        sys.modules[sparse_average.__module__],
        "average_query",
        lambda encoding, chosen: encoding[list(chosen)].sum(axis=0),
    )
    assert errors(built).max() > 0.5


def test_all_tokens_and_refusals():
    whole = sparse_average(codes(), U, [tuple(range(N))], token_norm=5.0)
    assert whole.error == 0
    with pytest.raises(Refusal, match="Name each token once"):
        average_query(codes(), [1, 1, 2])
    with pytest.raises(Refusal, match="Draw codes"):
        sparse_average(np.vstack([codes()[:7], codes()[:1]]), U, [(0, 1)], token_norm=1.0)
    with pytest.raises(Refusal, match="must have one size"):
        sparse_average(codes(), U, [(0, 1), (2,)], token_norm=1.0)
