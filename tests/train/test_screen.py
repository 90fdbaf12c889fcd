"""The screen decides as the whole test set would, and sees less of it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from genscope.train.screen import MARGIN, _estimate, screened
from genscope.train.stops import SEE_ALL
from tests.chance import Seldom
from tests.seeds import seed

M, CHUNK = 5000, 125


@partial(jax.jit, static_argnames="patience")
def check(losses, controls, threshold, margin, patience=1.0):
    return screened(
        lambda start: jax.lax.dynamic_slice(losses, (start,), (CHUNK,)),
        jnp.atleast_2d(controls),
        chunk=CHUNK,
        threshold=threshold,
        margin=margin,
        patience=patience,
    )


@jax.jit
def refusals(losses, controls, thresholds, margin):
    """How many of the stacked test sets do not pass."""
    return jnp.sum(~jax.vmap(check, in_axes=(0, 0, 0, None))(losses, controls, thresholds, margin).passed)


def drawn_sets(rng, count, learned, noise):
    """Losses and controls of predictors learned * y + noise on simple prompts."""
    y, e = rng.normal(size=(2, count, M))
    return ((y - learned * y - noise * e) ** 2).astype(np.float32), (y**2).astype(np.float32)


@pytest.mark.parametrize("margin", [MARGIN, SEE_ALL])
@pytest.mark.parametrize("shift", [-0.5, -0.01, 0.01, 0.5])
def test_the_verdict_is_that_of_the_mean(margin, shift):
    losses, control = (part[0] for part in drawn_sets(np.random.default_rng(0), 1, 0.2, 0.3))
    threshold = np.float32(losses.mean(dtype=float) - shift)
    verdict = check(losses, control, threshold, np.float32(margin))
    assert bool(verdict.passed) == (shift < 0)
    assert not bool(verdict.passed) or int(verdict.seen) == M
    if margin == SEE_ALL or shift < 0:
        assert float(verdict.mean) == pytest.approx(losses.mean(dtype=float), rel=1e-5)


def test_an_untrained_network_is_refused_by_the_first_chunk():
    losses, control = (part[0] for part in drawn_sets(np.random.default_rng(1), 1, 0.0, 0.02))
    verdict = check(losses, control, np.float32(0.7), np.float32(MARGIN))
    assert int(verdict.seen) == CHUNK
    assert float(verdict.mean) == pytest.approx(losses.mean(), rel=0.01)  # known beyond its own sample


# Learned share and noise: an untrained network, one that has begun, one that guesses well, one that is mostly noise.
PREDICTORS = [(0.0, 0.05), (0.2, 0.3), (0.8, 0.1), (0.5, 1.0)]
REFUSED = 1e-3  # stated: less than one passing check in a thousand is refused, however near the threshold


@pytest.mark.parametrize(("learned", "noise"), PREDICTORS)
def test_passing_models_are_hardly_ever_refused(learned, noise):
    """Means just below the threshold; the screen with a margin of 1.5, which refuses 40 %, is found out."""
    law = Seldom(1500, REFUSED, planted=0.3)
    losses, control = drawn_sets(np.random.default_rng(seed(2)), law.trials, learned, noise)
    thresholds = (losses.mean(axis=1, dtype=float) * (1 + 1e-5)).astype(np.float32)
    assert law.explains(int(refusals(losses, control, thresholds, np.float32(MARGIN))))
    assert not law.explains(int(refusals(losses, control, thresholds, np.float32(1.5))))


# The same predictors a little earlier in their training: share and noise by which they differed.
EARLIER = [(0.2, 0.3, 0.02, 0.05), (0.8, 0.1, 0.1, 0.3)]


@pytest.mark.parametrize(("learned", "noise", "less", "other"), EARLIER)
def test_the_losses_of_an_earlier_model_are_a_control(learned, noise, less, other):
    """Means just below the threshold; a control whose mean is wrong by a fifth refuses 86 % and is found out."""
    law = Seldom(1000, REFUSED, planted=0.5)
    y, e, f = np.random.default_rng(seed(4)).normal(size=(3, law.trials, M))
    losses = ((y - learned * y - noise * e) ** 2).astype(np.float32)
    earlier = ((y - (learned - less) * y - noise * e - other * f) ** 2).astype(np.float32)
    thresholds = (losses.mean(axis=1, dtype=float) * (1 + 1e-5)).astype(np.float32)
    assert law.explains(int(refusals(losses, earlier, thresholds, np.float32(MARGIN))))
    earlier[:, M // 2 :] *= 1.4  # half of the examples come from an earlier model still
    assert not law.explains(int(refusals(losses, earlier, thresholds, np.float32(MARGIN))))


def test_an_earlier_model_makes_a_check_short():
    y, e, f = np.random.default_rng(5).normal(size=(3, M))
    losses, earlier = ((0.8 * y - noise) ** 2 for noise in (0.3 * e, 0.3 * e + 0.05 * f))
    threshold = np.float32(losses.mean() - 0.05)
    seen = [
        int(check(losses.astype(np.float32), control.astype(np.float32), threshold, np.float32(MARGIN)).seen)
        for control in (y**2, earlier)
    ]
    assert seen[1] == CHUNK < seen[0]


def test_guesses_that_resemble_the_model_make_a_check_short():
    """A network that adds the mean label to a share of the right one, as networks do before they read positions."""
    y, others = np.random.default_rng(6).normal(size=(2, M))
    guess = (y + np.sqrt(11) * others) / 12
    losses = ((0.9 * y - 0.8 * guess) ** 2).astype(np.float32)
    threshold = np.float32(losses.mean() - 0.03)
    free = np.stack([y**2, y * guess, guess**2]).astype(np.float32)
    seen = [int(check(losses, controls, threshold, np.float32(MARGIN)).seen) for controls in (free[:1], free)]
    assert seen[1] == CHUNK < seen[0]


@pytest.mark.parametrize("columns", [[], [0], [0, 1], [0, 1, 2]])
@pytest.mark.parametrize("idle", [[], [3, 4]])
def test_the_estimate_is_the_intercept_of_least_squares(columns, idle):
    """Against NumPy; idle controls, a constant and twice the first, change nothing but the degrees of freedom."""
    rng, n = np.random.default_rng(7), 200
    known = rng.normal(size=(3, n)) + np.array([[0.1], [-0.2], [0.0]])
    known = np.stack([*known, np.full(n, 1e-3), 2 * known[0]])
    loss = known[:3].sum(axis=0) + rng.normal(size=n) + 0.5
    controls = [0, *columns, *idle] if idle else columns
    rows = np.stack([np.ones(n), *known[controls], loss])
    mean, error = _estimate(jnp.asarray(rows @ rows.T, "float32"), jnp.float32(n), 5000)
    design = np.stack([np.ones(n), *known[sorted({*controls} - {*idle})]], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ design.T @ loss
    variance = np.sum((loss - design @ coefficients) ** 2) / (n - 1 - len(controls))
    assert float(mean) == pytest.approx(coefficients[0], abs=1e-4)
    assert float(error) == pytest.approx(np.sqrt(variance * (inverse[0, 0] - 1 / 5000)), rel=1e-3)


@pytest.mark.parametrize(("excess", "seen"), [(0.3, CHUNK), (0.03, M)])
def test_a_check_that_needs_more_than_its_patience_sees_all(excess, seen):
    losses, control = (part[0] for part in drawn_sets(np.random.default_rng(5), 1, 0.2, 0.3))
    threshold = np.float32(losses.mean(dtype=float) - excess)
    alone = check(losses, control, threshold, np.float32(MARGIN))
    verdict = check(losses, control, threshold, np.float32(MARGIN), patience=0.25)
    assert int(verdict.seen) == seen
    assert not bool(verdict.passed)
    assert (M / 4 < int(alone.seen) < M) == (seen == M)
    np.testing.assert_array_equal(verdict.losses[:seen], losses[:seen])
    assert not np.any(np.asarray(verdict.losses[seen:]))


def test_a_nan_never_passes():
    losses = np.ones(M, np.float32)
    losses[10] = np.nan
    assert not bool(check(losses, np.ones(M, np.float32), np.float32(5), np.float32(MARGIN)).passed)


def test_a_constant_control_is_no_control():
    losses = np.random.default_rng(3).exponential(size=M).astype(np.float32)
    assert bool(check(losses, np.ones(M, np.float32), np.float32(1.2), np.float32(MARGIN)).passed)
    assert not bool(check(losses, np.ones(M, np.float32), np.float32(0.5), np.float32(MARGIN)).passed)


def test_chunks_are_whole():
    with pytest.raises(ValueError, match="multiple of the chunk"):
        screened(lambda start: jnp.ones(3), jnp.ones((1, 10)), chunk=3, threshold=jnp.ones(()), margin=jnp.ones(()))
