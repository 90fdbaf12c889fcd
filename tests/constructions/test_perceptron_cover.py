"""Explicit covers, by actually encoding: accuracy, length, decoding, and that cheating is noticed."""

import itertools
import math

import numpy as np
import pytest

from genscope.bounds import linear_cover, matrix_cover
from genscope.constructions.perceptron_cover import perceptron_decode, perceptron_encode

RNG = np.random.default_rng(0)


def flat(rows, columns):
    return RNG.choice([-1.0, 1.0], size=(rows, columns))


def sparse(rows, columns):
    return RNG.normal(size=(rows, columns)) * (RNG.random((rows, columns)) < 0.15)


def graded(rows, columns):
    """Row norms over six orders of magnitude: every scale is used."""
    return RNG.normal(size=(rows, columns)) * np.logspace(0, -6, rows)[:, None]


MATRICES = {
    "gaussian": lambda d1, d2: RNG.normal(size=(d1, d2)),
    "flat": flat,
    "sparse": sparse,
    "graded": graded,
    "one row": lambda d1, d2: np.eye(d1)[:, :1] @ RNG.normal(size=(1, d2)),
    "rank one": lambda d1, d2: RNG.normal(size=(d1, 1)) @ RNG.normal(size=(1, d2)),
    "identity": lambda d1, d2: np.eye(d1, d2),
    "zero": lambda d1, d2: np.zeros((d1, d2)),
}
POINTS = {
    "gaussian": lambda n, d2: RNG.normal(size=(n, d2)),
    "unit vectors": lambda n, d2: np.eye(d2)[RNG.integers(d2, size=n)],
    "signs": lambda n, d2: RNG.choice([-1.0, 1.0], size=(n, d2)),
    "one long, others short": lambda n, d2: RNG.normal(size=(n, d2)) * np.where(np.arange(n) == 0, 10, 0.1)[:, None],
}


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("matrix", MATRICES)
def test_codewords_are_short_and_accurate(matrix, points):
    """1600 matrices in all: the certificate of each, with the bound's count of updates."""
    for trial in range(50):
        d1, d2, n = (int(RNG.integers(1, most)) for most in (7, 6, 20))
        weights, x = MATRICES[matrix](d1, d2), POINTS[points](n, d2)
        norm = np.linalg.norm(weights, axis=1).sum()
        reach = norm * np.linalg.norm(x, axis=1).max()
        epsilon = (reach or 1.0) * RNG.uniform(0.1, 1.1)
        ratio = (1.05, 1.25, 2.0)[trial % 3]
        code = perceptron_encode(weights, x, epsilon=epsilon, ratio=ratio)
        errors = np.linalg.norm(x @ (weights - code.decoded).T, axis=1)
        assert errors.max() <= epsilon * (1 + 1e-9)
        assert code.accuracy == pytest.approx(errors.max())
        kappa = (reach / epsilon) ** 2
        assert len(code.codeword) <= math.floor(ratio * kappa * (1 + 1e-12))
        assert code.longest == pytest.approx(ratio * kappa)
        assert code.holds
        scales = {symbol.scale for symbol in code.codeword}
        assert all(0 <= scale < 1 + math.floor(math.log(ratio * kappa, ratio) + 1e-9) for scale in scales)
        if kappa <= 1:
            assert not code.codeword


def test_a_larger_class_keeps_its_promise():
    weights, x = RNG.normal(size=(4, 5)), RNG.normal(size=(10, 5))
    norm, reach = 2 * np.linalg.norm(weights, axis=1).sum(), 1.5 * np.linalg.norm(x, axis=1).max()
    code = perceptron_encode(weights, x, epsilon=0.2 * norm * reach, weight_norm=norm, input_norm=reach)
    assert code.holds
    assert code.longest == pytest.approx(2 / 0.2**2)


def test_a_single_row_needs_no_scales():
    """The linear cover: fewer than kappa updates, in thousands of runs."""
    for _ in range(2000):
        weight, x = RNG.normal(size=(1, 3)), RNG.normal(size=(8, 3))
        reach = np.linalg.norm(weight) * np.linalg.norm(x, axis=1).max()
        code = perceptron_encode(weight, x, epsilon=0.3 * reach, ratio=1.0)
        assert code.holds
        assert len(code.codeword) <= 11  # kappa = 11.1
        assert all(symbol.scale == 0 for symbol in code.codeword)


def test_projected_perceptron_stays_in_the_class():
    """The internal cover of `linear_cover`: projection after each update, fewer than kappa updates."""
    for _ in range(500):
        w, x = RNG.normal(size=3), RNG.normal(size=(8, 3))
        w /= max(1.0, np.linalg.norm(w))
        reach = np.linalg.norm(x, axis=1).max()
        epsilon, guess, updates = 0.3 * reach, np.zeros(3), 0
        while (wrong := np.abs(x @ (w - guess)) > epsilon).any():
            point = x[np.argmax(wrong)]
            guess = guess + np.sign(point @ (w - guess)) * epsilon / reach**2 * point
            guess /= max(1.0, np.linalg.norm(guess))
            updates += 1
        assert updates <= 11
        assert np.linalg.norm(guess) <= 1 + 1e-12


def test_a_codeword_decodes_in_any_order():
    weights, x = RNG.normal(size=(4, 5)), RNG.normal(size=(10, 5))
    reach = float(np.linalg.norm(x, axis=1).max())
    epsilon = 0.2 * np.linalg.norm(weights, axis=1).sum() * reach
    code = perceptron_encode(weights, x, epsilon=epsilon)
    shuffled = [code.codeword[i] for i in RNG.permutation(len(code.codeword))]
    decoded = perceptron_decode(shuffled, x, outputs=4, epsilon=epsilon, input_norm=reach)
    np.testing.assert_allclose(decoded, code.decoded, atol=1e-12)


def test_distinct_codewords_are_fewer_than_the_bound():
    """All weights of a fine grid of the disc, encoded: the cover that arises is not larger than promised."""
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    grid = [w for w in itertools.product(np.linspace(-1, 1, 41), repeat=2) if math.hypot(*w) <= 1]
    codes = {
        perceptron_encode(np.array([w]), x, epsilon=0.5, ratio=1.0, weight_norm=1.0, input_norm=1.0).codeword
        for w in grid
    }
    promised = linear_cover(weight_norm=1, input_norm=1, epsilon=0.5, points=3).value
    assert 4 < len(codes) <= math.exp(promised)
    assert promised <= matrix_cover(weight_norm=1, input_norm=1, epsilon=0.5, points=3, outputs=1).value


def test_a_step_that_is_too_long_is_noticed():
    """The planted error: three times the step, and the promise on the length breaks (or it never ends)."""
    x, w = np.array([[1.0, 0.0], [0.8, 0.6]]), np.array([0.9, 0.4])
    residual, updates = x @ w, 0
    while (wrong := np.abs(residual) > 0.1).any() and updates <= 200:
        point = int(np.argmax(wrong))
        residual = residual - np.sign(residual[point]) * 3 * 0.1 * (x @ x[point])
        updates += 1
    assert updates > np.linalg.norm(w) ** 2 / 0.1**2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": np.ones((0, 3))}, r"weights \(2, 3\) and points \(0, 3\).* Make the second dimensions equal"),
        ({"weights": np.full((2, 3), np.nan)}, "finite and not empty"),
        ({"epsilon": 0.0}, r"epsilon=0.0.* above 0 .* Correct them"),
        ({"ratio": 1.0}, r"ratio=1.0 for 2 rows.* above 1. Correct them"),
        ({"weight_norm": 0.1}, r"weight_norm=0.1 but the norm is .* Increase it"),
        ({"input_norm": 0.1}, r"input_norm=0.1 but the norm is .* Increase it"),
        ({"epsilon": 1e-9}, r"10000000 are allowed. Increase epsilon"),
    ],
)
def test_refusals(change, message):
    given = {"weights": np.ones((2, 3)), "points": np.ones((3, 3)), "epsilon": 1.0} | change
    with pytest.raises(ValueError, match=message):
        perceptron_encode(given.pop("weights"), given.pop("points"), **given)
