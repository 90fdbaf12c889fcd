"""Bounds by the construction: against the functions of `bounds` by hand, their order, and what a fitted run adds."""

import jax.random as jr
import numpy as np
import pytest

from genscope.bounds.flat_minima import BoundSetting, truncated
from genscope.constructions import fourier_components
from genscope.fourier import random_function
from genscope.lab.values import check_names
from genscope.random import stream
from genscope.studies import lintilhac2026_bounds as study

POINT = {
    **{"context_length": 6, "sample_size": 8192, "degree": 2, "sparsity": 3},
    **{"constant": "0.1", "steps": 128},
}


@pytest.fixture(scope="module")
def record():
    return study.trial(jr.key(4), **POINT)


def test_bounds_are_those_of_the_construction(record):
    check_names(list(record), taken=frozenset(POINT))
    function = random_function(stream(jr.key(4), "task"), dim=6, degree=2, sparsity=3)
    built = fourier_components(function)
    assert record["norm_squared"] == pytest.approx(built.norm_squared["total"])
    assert record["trace"] == pytest.approx(built.trace)
    size, trace = record["norm_squared"], record["trace"]
    setting = BoundSetting(size, 0.1, 8192, priors=study.MESH, trivial=1.0)
    optimum = (0.1 * size**0.5 / (trace * 8192**0.5)) ** (1 / 3)
    by_hand = min(truncated(setting, sigma=optimum * 10 ** (0.1 * step), trace=trace).value for step in range(-4, 5))
    assert record["truncated"] == pytest.approx(by_hand, rel=1e-6)  # the construction's own loss is about 1e-12
    assert record["analytic"] > 10 * record["semi_analytic"]
    assert record["direct"] > 0.8 * record["semi_analytic"]
    assert record["semi_analytic_vacuous"] == (record["semi_analytic"] >= 1)


def test_the_perturbed_risk_is_half_the_trace_for_little_noise():
    """At σ = 1e-5 the risk under noise is σ²/2 times the trace: of 2,000 pairs, within five standard errors."""
    function = random_function(jr.key(1), dim=5, degree=2, sparsity=2)
    built = fourier_components(function, inactive=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "PAIRS", 2000)
        risks = study._perturbed(built, [1e-5], jr.key(2))[1:, 0]
    mean, sem = 2 * risks.mean() / 1e-10, 2 * risks.std() / 1e-10 / np.sqrt(len(risks))
    assert abs(mean - built.trace) < 5 * sem + 0.1 * built.trace  # 256 inputs stand for all
    assert abs(2 * mean - built.trace) > 5 * sem + 0.1 * built.trace  # the planted error


@pytest.mark.slow
def test_a_fitted_run_has_a_gap_and_is_compared():
    point = POINT | {"constant": "fitted", "context_length": 8, "sparsity": 2, "steps": 1_280}
    found = study.trial(jr.key(0), **point)
    assert found["converged"]
    assert 0 < found["constant_used"] < 0.1
    assert found["gap"] == pytest.approx(0, abs=0.01)
    assert found["dominated"] == (found["norm_ratio"] <= 1 and found["sharpness_ratio"] <= 1)
    few = study.trial(jr.key(0), **(point | {"degree": 4, "steps": 128}))
    assert not few["converged"]
    assert few["semi_analytic"] is None
    assert few["semi_analytic_vacuous"] is None


@pytest.mark.parametrize(
    ("change", "advice"),
    [({"constant": "0.5"}, "Choose one of them"), ({"sparsity": 7}, "Lower the sparsity"), ({"steps": 0}, "steps")],
)
def test_refuses_points_without_a_trial(change, advice):
    check = study.STUDY.check
    assert check is not None
    for budget in ("quick", "standard", "paper"):
        for point in study.STUDY.plan(budget).points:
            check(point)
    with pytest.raises(ValueError, match=advice):
        check(POINT | change)
