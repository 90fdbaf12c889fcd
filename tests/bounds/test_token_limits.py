"""Lower bounds against the best predictors that their settings allow: identities, least squares, exact ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genscope.bounds.token_limits import ffn_lower, heads_lower, oracle_lower
from tests.chance import assert_at_least, assert_mean
from tests.seeds import seed


@pytest.mark.parametrize(("sparsity", "heads", "risk"), [(4, 1, 0.75), (4, 3, 0.25), (8, 5, 0.375)])
def test_the_block_form_is_the_risk_of_the_best_predictor(sparsity, heads, risk):
    generator = np.random.default_rng(seed(1))
    directions = np.linalg.qr(generator.normal(size=(sparsity, heads)))[0].T
    x = generator.normal(size=(200_000, sparsity))
    label = np.sum(x**2 - 1, axis=1) / np.sqrt(sparsity)
    best = (np.sum((x @ directions.T) ** 2, axis=1) - heads) / np.sqrt(sparsity)
    losses = (label - best) ** 2 / 2  # half of the positions
    bound = heads_lower(heads=heads, sparsity=sparsity, form="block").value
    assert bound == pytest.approx(risk)
    assert_mean(losses, bound, planted=1.15 * bound)
    one_head_more = np.linalg.qr(np.vstack([directions, generator.normal(size=sparsity)]).T)[0].T
    better = (np.sum((x @ one_head_more.T) ** 2, axis=1) - heads - 1) / np.sqrt(sparsity)
    less = heads_lower(heads=heads + 1, sparsity=sparsity, form="block").value
    if less:
        assert_mean((label - better) ** 2 / 2, less, planted=bound)
    else:
        assert np.abs(label - better).max() < 1e-12


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def quadratic(outputs):
    """All monomials up to degree two."""
    rows, columns = np.triu_indices(outputs.shape[1])
    return np.column_stack([np.ones(len(outputs)), outputs, outputs[:, rows] * outputs[:, columns]])


def held_out_losses(outputs, label):
    """Half the squared errors on the second half of least squares on the first."""
    features, half = quadratic(outputs), len(label) // 2
    weights = np.linalg.lstsq(features[:half], label[:half])[0]
    return (features[half:] @ weights - label[half:]) ** 2 / 2


@pytest.mark.parametrize(("sparsity", "heads"), [(4, 2), (3, 1), (3, 2)])
def test_block_attention_stays_above_its_bound_and_enough_heads_do_not(sparsity, heads):
    generator = np.random.default_rng(seed(2))
    tokens = 16
    x = generator.normal(size=(80_000, tokens // 2))  # d = 1; the other tokens are 0
    label = np.sum(x[:, :sparsity] ** 2 - 1, axis=1) / np.sqrt(sparsity)
    attention = softmax(3 * generator.normal(size=(heads, tokens)))[:, : tokens // 2]
    bound = heads_lower(heads=heads, sparsity=sparsity, form="block").value
    assert_at_least(held_out_losses(x @ attention.T, label), bound, planted=0.0)
    one_hot = x[:, :sparsity]  # as many heads as tokens, each on its own
    assert held_out_losses(one_hot, label).max() < 1e-20


@pytest.mark.parametrize(("heads", "rank"), [(1, 17), (2, 32)])
def test_full_attention_leaves_what_the_sharp_form_says(heads, rank):
    """Proposition 4: what H heads whose scores read the tokens tell of them, prompt by prompt."""
    generator = np.random.default_rng(seed(3))
    tokens, sparsity, dim, prompts = 16, 6, 12, 20_000
    directions = generator.normal(size=(heads, dim)) / np.sqrt(dim)
    x = generator.normal(size=(prompts, tokens // 2, dim))
    scores = np.concatenate([np.einsum("hd,pjd->phj", directions, x), np.zeros((prompts, heads, tokens // 2))], axis=2)
    attention = softmax(scores + generator.normal(size=(heads, tokens)))[:, :, :sparsity]
    x = x[:, :sparsity]
    # The part that neither the scores nor the values tell.
    unread = np.eye(dim) - np.linalg.pinv(directions) @ directions
    unseen = np.eye(sparsity) - np.linalg.pinv(attention) @ attention
    untold = np.sum((unseen @ x @ unread) ** 2, axis=(1, 2))
    for prompt in range(100):  # the same by the span of all functionals
        values = np.kron(attention[prompt], np.eye(dim))
        basis, sizes, _ = np.linalg.svd(np.vstack([values, np.kron(np.eye(sparsity), directions)]).T)
        told = basis[:, : len(sizes)][:, sizes > 1e-9 * sizes[0]]
        assert told.shape[1] == rank == heads * (sparsity + dim) - heads**2
        left = np.sum(x[prompt] ** 2) - np.sum((told.T @ x[prompt].ravel()) ** 2)
        assert untold[prompt] == pytest.approx(left)
    sharp = heads_lower(heads=heads, sparsity=sparsity, dimension=dim).value
    assert sharp == pytest.approx(1 - rank / (sparsity * dim))
    losses = (untold - (sparsity * dim - rank)) ** 2 / (2 * sparsity * dim)
    assert_mean(losses, sharp, planted=1.2 * sharp)


def test_forms_are_ordered_and_printed_values():
    values = {
        form: heads_lower(heads=2, sparsity=6, dimension=12, form=form).value for form in ("printed", "sharp", "block")
    }
    assert values == pytest.approx({"printed": 0.5, "sharp": 5 / 9, "block": 2 / 3})
    assert heads_lower(heads=1, sparsity=6, dimension=12).value == pytest.approx(0.7638888888888888)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_forms_by_hypothesis(heads, sparsity, dimension):
    printed, sharp, block = (
        heads_lower(heads=heads, sparsity=sparsity, dimension=dimension, form=form).value
        for form in ("printed", "sharp", "block")
    )
    assert 0 <= printed <= sharp + 1e-15
    assert sharp <= block < 1
    assert (sharp > 0) == (heads < min(sparsity, dimension))
    more = heads_lower(heads=heads + 1, sparsity=sparsity, dimension=dimension).value
    assert more <= sharp
    bound = heads_lower(heads=heads, sparsity=sparsity, dimension=dimension)
    assert bound.vacuous == (heads >= min(sparsity, dimension))


@pytest.mark.parametrize(("tokens", "dim", "samples"), [(6, 4, 10), (10, 3, 25), (8, 5, 39)])
def test_theorem_9_is_the_mean_risk_of_the_best_predictor_in_the_span(tokens, dim, samples):
    x = np.random.default_rng(seed(4)).normal(size=(samples, tokens * dim))
    risks = []
    for coordinate in range(dim):  # a quadratic form has the same mean over a basis as over the sphere
        missed = 0.0
        for token in range(tokens):
            wanted = np.zeros(tokens * dim)
            wanted[token * dim + coordinate] = 1
            missed += np.sum((x.T @ np.linalg.lstsq(x.T, wanted)[0] - wanted) ** 2)
        risks.append(missed / tokens)
    bound = ffn_lower(samples=samples, tokens=tokens, dimension=dim).value
    assert np.mean(risks) == pytest.approx(bound, abs=1e-12)
    assert max(risks) >= bound


def test_vacuous_with_as_many_samples_as_dimensions():
    assert ffn_lower(samples=40, tokens=10, dimension=4).vacuous
    assert ffn_lower(samples=10**400, tokens=10, dimension=4).value == 0
    assert ffn_lower(samples=1, tokens=10**400, dimension=4).value == 1
    assert not ffn_lower(samples=39, tokens=10, dimension=4).vacuous


def test_a_dimension_is_asked_for_where_it_matters():
    with pytest.raises(ValueError, match="Give the dimension of a token, or choose form='block'"):
        heads_lower(heads=1, sparsity=2)
    with pytest.raises(ValueError, match="Choose one of"):
        heads_lower(heads=1, sparsity=2, dimension=3, form="explicit")


def test_the_posterior_mean_reaches_the_oracle_bound_and_no_less():
    """Directions on the sphere, tokens that are told: least squares of least norm is the posterior mean."""
    generator = np.random.default_rng(seed(7))
    n, sparsity, dim = 7, 2, 6
    u = generator.normal(size=(20_000, sparsity * dim))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    basis = np.linalg.qr(generator.normal(size=(sparsity * dim, n)))[0]
    losses = np.sum((u - u @ basis @ basis.T) ** 2, axis=1)  # over fresh tokens
    bound = oracle_lower(samples=n, sparsity=sparsity, dimension=dim).value
    assert bound == pytest.approx(5 / 12)
    assert_mean(losses, bound, planted=bound - 1 / 12 / 4)
    assert oracle_lower(samples=12, sparsity=sparsity, dimension=dim).value == 0
