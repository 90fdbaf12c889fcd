"""Samples to a threshold: where a run ends, what its checks see, censoring, divergence."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.train import Below, Fresh, adamw, fit
from tests.train.retrieval import EXAMPLES, START, TASK, PromptLoss

CONTROLS = jnp.mean(EXAMPLES.y**2, axis=1)[None]


def run(budget=100_000, *, key=jr.key(1), exact=False, rate=0.05, objective=PromptLoss()):  # noqa: B008  # both frozen
    return fit(
        START,
        Fresh(TASK, key, 16),
        objective,
        (budget // 16, Below(0.05, EXAMPLES, controls=CONTROLS, chunk=125, exact=exact)),
        optimizer=adamw(rate, weight_decay=0.01),
        every=5,
    )


def test_it_ends_with_the_first_check_that_passes():
    result = run()
    assert result.reached
    assert result.samples == len(result.checks) * 16 * 5
    assert len(result.losses) == result.samples // 16
    assert result.checks[-1].mean < 0.05
    assert int(result.model.fixed) == 7
    before = run(result.samples - 80)
    assert not before.reached  # censored, not lost
    assert before.samples == result.samples - 80
    assert before.checks[-1].mean >= 0.05


def test_skipping_changes_no_count():
    for seed in range(3):
        screened, exact = (run(key=jr.key(seed), exact=exact) for exact in (False, True))
        assert (screened.samples, screened.reached) == (exact.samples, exact.reached)
        assert {check.seen for check in exact.checks} == {1000}
        assert sum(check.seen for check in screened.checks) < sum(check.seen for check in exact.checks)


def test_the_last_check_saw_the_mean_over_all_examples():
    result = run()
    errors = PromptLoss().losses(result.model, EXAMPLES)
    assert result.checks[-1].mean == pytest.approx(float(jnp.mean(errors)), rel=1e-4)


def test_a_check_needs_no_controls():
    options = {"optimizer": adamw(0.05, weight_decay=0.01), "every": 5}
    plain = fit(START, Fresh(TASK, jr.key(1), 16), PromptLoss(), (6000, Below(0.05, EXAMPLES, chunk=125)), **options)
    assert plain.samples == run().samples


def test_wrong_labels_are_not_learned():
    assert not run(4000, objective=PromptLoss(roll=1)).reached


def test_divergence_is_recorded():
    result = run(rate=1e38)
    assert result.diverged
    assert not result.reached


def test_the_given_model_is_not_consumed():
    run(80)
    np.testing.assert_array_equal(START.weight, np.float32([0.3, -0.2, 0.1]))
