"""The training studies of LS26 on shrunken points: what a trial returns, what is shared, what is refused."""

import json
import math

import jax
import jax.random as jr
import numpy as np
import pytest

from genscope.fourier import WalshFunction, points
from genscope.lab.execution.compute import trial_key
from genscope.lab.plans.figure import Figure, Group
from genscope.lab.plans.study import BUDGETS, Trial
from genscope.models.bit_transformer import BitTransformer
from genscope.studies import lintilhac2026_gap, lintilhac2026_norms
from genscope.studies._walsh_training import CONVERGED, held_out_error, train

GAP, NORMS = lintilhac2026_gap.STUDY, lintilhac2026_norms.STUDY
KEY = jr.key(5)


@pytest.fixture(scope="module")
def run():
    return train(KEY, context_length=4, degree=1, sparsity=2, sample_size=64, steps=300)


def test_a_run_converges_and_is_tested_on_the_whole_cube(run):
    assert run.descent.converged
    assert run.descent.error < CONVERGED
    function, cube = run.task.function(), points(4)
    assert (function.degree, function.sparsity) == (1, 2)
    np.testing.assert_allclose(run.sample.y, function(np.asarray(run.sample.x)), atol=1e-6)
    outputs = np.asarray(jax.jit(BitTransformer.outputs)(run.model, cube), float)
    tested = held_out_error(run, KEY)
    assert tested.mean == pytest.approx(np.mean((outputs - function(cube)) ** 2), rel=1e-4)
    assert tested.sem == 0


def test_a_trial_stores_the_gap_where_it_stopped(run):
    record = lintilhac2026_gap.trial(KEY, context_length=4, sample_size=64, degree=1, sparsity=2, steps=300)
    assert record["gap"] == record["test_error"] - record["training_error"]
    assert record["training_error"] == pytest.approx(run.descent.error)
    assert record["epochs"] == run.descent.epochs
    assert len(record["error_curve"]) == len(record["curve_epochs"]) <= 100
    short = lintilhac2026_gap.trial(KEY, context_length=4, sample_size=64, degree=1, sparsity=2, steps=2)
    assert (short["converged"], short["epochs"]) == (False, 2)
    assert short["training_error"] > CONVERGED


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["paper", "noise"])
def test_a_trial_measures_network_and_construction(arm):
    axes = dict(context_length=4, sample_size=512, degree=1, sparsity=2, steps=400)
    record = lintilhac2026_norms.trial(KEY, arm=arm, **axes)
    assert record["converged"]
    # Near zero loss the Hessian is its Gauss-Newton part; 16 parts each: limits of six standard errors.
    assert (
        abs(record["trace"] - record["gauss_newton"])
        < 6 * math.hypot(record["trace_sem"], record["gauss_newton_sem"]) + 0.1 * record["gauss_newton"]
    )
    assert 0 < record["distance_squared"] < record["norm_squared"]
    assert json.dumps(record, allow_nan=False)


def test_the_construction_has_the_scale_of_the_labels():
    """In the chi scale the trace is 2(4(G - G_w) + G_w + 1), the norm gains 3v² + (Σα)²."""
    supports, sizes = ((0, 1), (2, 3)), (0.6, 0.8)
    found = lintilhac2026_norms.constructed(WalshFunction(6, supports, sizes, "chi"), KEY)
    assert found["full_norm_squared"] == pytest.approx(1378.157242 + 4 * 1.4**2, rel=1e-6)  # G1
    gradient, readout = 431.066445 / 2, 0.887754
    assert found["full_trace"] == pytest.approx(2 * (4 * (gradient - readout) + readout + 1), rel=1e-5)
    assert found["minimal_trace"] < found["full_trace"]
    assert found["tuned_norm_squared"] < found["full_norm_squared"]


@pytest.mark.parametrize("study", [GAP, NORMS], ids=lambda study: study.name)
def test_points_of_every_budget_are_allowed_and_figures_come_back(study):
    for budget in BUDGETS:
        for point in study.plan(budget).points:
            study.check(point)
    for figure in study.figures:
        assert Figure.from_manifest(json.loads(json.dumps(figure.manifest()))) == figure


def test_each_panel_speaks_of_its_own_measure():
    (figure,) = lintilhac2026_norms.STUDY.figures
    assert isinstance(figure, Group)
    norm, trace = figure.panels
    assert (norm.title, trace.title) == ("Squared norm", "Hessian trace")
    assert "trace" not in str(norm.manifest())
    assert "norm_squared" not in str(trace.manifest())


def test_sample_sizes_and_arms_share_their_functions():
    def key(study, **changes):
        return trial_key(study, Trial(study.name, 1, {**study.points[0], **changes}, 0))

    assert key(GAP, sample_size=512, steps=10) == key(GAP)
    assert key(GAP, degree=3) != key(GAP)
    assert key(NORMS, arm="decay") == key(NORMS)


@pytest.mark.parametrize(
    ("study", "changes", "advice"),
    [
        (GAP, {"sample_size": 10}, "Give more"),
        (GAP, {"steps": 1}, "Give more"),
        (NORMS, {"arm": "dropout"}, "Choose one of them"),
        (NORMS, {"sample_size": 100}, "large enough"),
    ],
)
def test_impossible_points_are_refused(study, changes, advice):
    with pytest.raises(ValueError, match=advice):
        study.trial(KEY, **(dict(study.points[0]) | changes))


@pytest.mark.parametrize(
    ("study", "changes", "advice"),
    [
        (GAP, {"degree": 21}, "Lower the sparsity"),
        (GAP, {"degree": 1, "sparsity": 21}, "Lower the sparsity"),
        (NORMS, {"sample_size": 100}, "sample_size lies between 512"),
    ],
)
def test_impossible_points_are_refused_before_anything_runs(study, changes, advice):
    with pytest.raises(ValueError, match=advice):
        study.check(study.points[0] | changes)
