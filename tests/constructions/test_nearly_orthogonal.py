"""Nearly orthonormal vectors: crosstalk against its bound by coherence, and networks by brute force on all inputs."""

import itertools
import math

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.constructions import (
    SparseFunction,
    coherence_at,
    coherence_limits,
    construct,
    promised_dimension,
    verify,
    weight_norms,
)
from genscope.constructions import random_bag_any_function as bag_of
from genscope.constructions import random_threshold as threshold_of
from genscope.constructions._crosstalk import crosstalk
from genscope.fourier import table_of_number
from genscope.models.encoding import Bag, Positional
from genscope.precision import float64
from genscope.refusal import Refusal

KEY = jr.key(5)


def brute_force(model, bag):
    """The network on all inputs, token by token, in plain NumPy; it shares no code with the model."""
    vectors = np.asarray(model.encoding.vectors)
    head = model.heads.heads[0]
    w_q, w_k, w_v, w_c = (np.asarray(part) for part in (head.w_q, head.w_k, head.w_v, head.w_c))
    found = []
    specials = 1 if bag else 3
    for bits in itertools.product((0, 1), repeat=len(vectors) - specials):
        places = vectors[specials:]
        tokens = [b * v if bag else vectors[1 + b] + v for b, v in zip(bits, places, strict=True)] + [vectors[0]]
        scores = np.array([vectors[0] @ w_q @ w_k.T @ token for token in tokens])
        weights = np.exp(scores - scores.max())
        y = np.maximum(w_v.T @ (weights @ np.array(tokens) / weights.sum()), 0) @ w_c
        for layer in model.readout.hidden:
            y = np.maximum(np.asarray(layer.weight).T @ y + np.asarray(layer.bias), 0)
        found.append(float(y @ np.asarray(model.readout.w)))
    return np.array(found), np.array(list(itertools.product((0, 1), repeat=len(vectors) - specials)), bool)


def wanted(function, inputs):
    patterns = inputs[:, list(function.support)] @ (1 << np.arange(function.support_size))
    return function.values[patterns]


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_thresholds_err_by_no_more_than_is_promised(least, seed):
    function = SparseFunction.threshold((6, 0, 3), least, context_length=8)
    built = threshold_of(function, epsilon=0.02, dimension=96, key=jr.key(seed))
    assert built.constants["beta"] < 1
    outputs, inputs = brute_force(built.model, bag=False)
    errors = np.abs(outputs - wanted(function, inputs))
    assert 0 < built.error <= 0.02 + 1e-15
    assert errors.max() <= built.error + 1e-12
    assert errors[wanted(function, inputs) == 0].max() < 1e-12  # below r the output is 0
    checked = verify(built, function, key=KEY)
    assert (checked.kept, checked.exhaustive) == (True, True)
    assert checked.max_error == pytest.approx(errors.max(), abs=1e-12)
    assert not verify(threshold_of(function, dimension=96, gamma=1.0, key=jr.key(seed)), function, key=KEY).verified


def test_every_function_of_three_bits_of_a_bag_exactly():
    for number in range(0, 256, 5):
        function = SparseFunction((5, 0, 2), table_of_number(number, 3).astype(float), 6)
        built = construct(function, encoding="random-bag", dimension=64, key=jr.key(number))
        assert built.constants["beta"] < 1
        outputs, inputs = brute_force(built.model, bag=True)
        assert outputs == pytest.approx(wanted(function, inputs), abs=1e-10)
        assert verify(built, function, key=KEY).exact


def test_long_contexts_in_few_dimensions():
    function = SparseFunction((2, 300, 900), np.random.default_rng(0).normal(size=8), 1000)
    built = bag_of(function, dimension=256, key=KEY)
    assert verify(built, function, key=KEY).exact
    half = bag_of(function, dimension=256, gamma=built.gamma / 4, key=KEY)
    assert half.error == math.inf
    assert not verify(half, function, key=KEY).verified
    majority = SparseFunction.threshold((2, 300, 900), 2, context_length=1000)
    close = threshold_of(majority, epsilon=1e-3, dimension=256, key=KEY)
    found = verify(close, majority, key=KEY)
    assert found.kept
    assert 0 < found.max_error <= 1e-3
    for each in (built, close):
        norms = weight_norms(each.model)
        assert all(norms[name] <= promised * (1 + 1e-9) for name, promised in each.norms.items())


@pytest.mark.parametrize("kind", [Positional, Bag])
def test_crosstalk_is_at_most_what_the_coherence_allows(kind):
    for seed, dim in itertools.product(range(5), (40, 100, 400)):
        with float64():
            encoding = kind.draw(jr.key(seed), context_length=30, dim=dim)
        support, specials = (4, 11), kind.specials
        size = specials + 2
        kappa = np.concatenate([np.zeros(specials), np.ones(2)])
        found = crosstalk(encoding, support, kappa, np.eye(size))
        beta, rho, stretch = coherence_limits(vectors=size, attended=2, read=1, coherence=found.coherence)
        assert found.beta <= beta
        assert found.rho <= rho
        vectors = np.asarray(encoding.vectors)
        rows = [*range(specials), specials + 4, specials + 11]
        gram = np.abs(vectors[rows] @ vectors.T)
        gram[np.arange(size), rows] = 0
        assert found.coherence == coherence_at(encoding, support) == pytest.approx(gram.max())
        assert np.linalg.norm(np.linalg.pinv(vectors[rows]), 2) <= stretch
    assert coherence_limits(vectors=4, attended=1, read=1, coherence=0.4) == (math.inf,) * 3


def test_the_bound_by_coherence_is_attained():
    """One special vector e_0, one relevant a with <e_0, a> = -δ, and v at δ to both but for a sign: G⁻¹ is explicit."""
    delta = 0.3
    vectors = np.zeros((3, 3))
    vectors[0, 0] = 1
    vectors[1, :2] = -delta, math.sqrt(1 - delta**2)
    vectors[2, 0] = delta
    vectors[2, 1] = (delta + delta**2) / math.sqrt(1 - delta**2)
    vectors[2, 2] = math.sqrt(1 - np.sum(vectors[2] ** 2))
    with float64():
        encoding = Bag(jnp.asarray(vectors))
    found = crosstalk(encoding, (0,), np.ones(2), np.eye(2))
    assert found.coherence == pytest.approx(delta)
    assert found.beta == pytest.approx(2 * delta / (1 - delta))
    assert found.beta == pytest.approx(coherence_limits(vectors=2, attended=2, read=1, coherence=delta)[0])


def test_the_promised_dimension_keeps_its_promise_and_grows_like_the_logarithm():
    dim = promised_dimension(support_size=2, context_length=40, failure=1e-3)
    assert dim == math.ceil(2 * 64 * math.log(43**2 / 1e-3))
    function = SparseFunction.threshold((1, 30), 2, context_length=40)
    for seed in range(10):
        built = threshold_of(function, dimension=dim, key=jr.key(seed))
        assert built.constants["coherence"] <= 1 / 8
        assert built.constants["beta"] <= built.constants["beta_at_most"] <= 0.5
    steps = [promised_dimension(support_size=2, context_length=10**power) for power in (3, 6, 9)]
    assert steps[2] - steps[1] == pytest.approx(steps[1] - steps[0], rel=1e-2)


def test_constants_of_a_bag_and_refusals():
    for value in (0.0, -3.0):
        function = SparseFunction((), np.array([value]), 9)
        assert verify(construct(function, encoding="random-bag", key=KEY), function, key=KEY).exact
    parity = SparseFunction.parse("x0 ^ x1", context_length=5)
    majority = SparseFunction.threshold((0, 1, 2), 2, context_length=5)
    for call, advice in (
        (lambda: threshold_of(parity, key=KEY), "Use random_any_function"),
        (lambda: threshold_of(majority, epsilon=1.0, key=KEY), "Try 0.01"),
        (lambda: construct(parity, within=0.1, key=KEY), "Leave the error out"),
        (lambda: construct(majority, encoding="random-bag", within=0.1, key=KEY), "Leave the error out"),
        (lambda: promised_dimension(support_size=1, context_length=9, failure=0.0), "Correct the one"),
    ):
        with pytest.raises(Refusal, match=advice):
            call()
    for encoding, error in (("positional", 0.0), ("bag", 0.05), ("random", 0.05)):
        built = construct(majority, encoding=encoding, within=0.05, key=KEY)
        assert built.error <= error
        assert not built.model.readout.hidden
