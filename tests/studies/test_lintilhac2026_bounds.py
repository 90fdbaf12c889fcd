"""Bounds for tilings from built weights, certificates of trained networks, and what points may be."""

import tomllib
from pathlib import Path

import jax.random as jr
import pytest

from genscope.studies import lintilhac2026_certificate, lintilhac2026_tilings
from genscope.studies.lintilhac2026_tilings import STUDY, trial

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "lintilhac2026_bounds.toml").read_text())["tiling"]


@pytest.mark.parametrize("golden", [GOLDEN[1], GOLDEN[5]], ids=["T=20", "T=64"])
def test_bounds_from_built_weights(golden):
    """The paper's traces were sampled there: 3 % in the trace is 1 % in the bound; the tuned search is its own."""
    point = {
        "context_length": golden["context_length"],
        "degree": golden["degree"],
        "constant": golden["constant"],
        "sample_size": golden["samples"],
    }
    found = {bound: trial(jr.key(0), bound=bound, **point)["value"] for bound in lintilhac2026_tilings.BOUNDS}
    assert found["paper"] == pytest.approx(golden["paper"]["value"], rel=0.01)
    assert found["tuned"] == pytest.approx(golden["tuned"]["value"], rel=0.02)
    assert found["tuned-clipped"] < found["tuned"]
    # The tuned weights have smaller second logits, which helps the covering bound a little.
    assert 0.7 * golden["covering"] < found["covering"] <= 1.01 * golden["covering"]


@pytest.mark.parametrize(
    ("point", "advice"),
    [
        ({"bound": "head"}, "bound is one of"),
        ({"context_length": 10, "degree": 3}, "divides the context length"),
        ({"sample_size": 4}, "sample_size lies between 8"),
    ],
)
def test_points_that_no_trial_can_have_are_refused(point, advice):
    with pytest.raises(ValueError, match=advice):
        STUDY.check(point)


def test_the_quick_budget_holds_what_decides():
    quick = STUDY.plan("quick").points
    assert {"bound": "tuned", "context_length": 64, "degree": 2, "constant": 0.1, "sample_size": 10**8} in quick
    assert {point["bound"] for point in quick} == {*lintilhac2026_tilings.BOUNDS}


@pytest.mark.slow
@pytest.mark.parametrize("learner", lintilhac2026_certificate.LEARNERS)
def test_a_certificate_is_above_the_risk_and_below_a_constant(learner):
    """One function of degree 1 on 6 bits; a certificate fails once in 20 times, and these are far from it."""
    point = {"network": "small", "context_length": 6, "degree": 1, "sparsity": 2, "sample_size": 32_768, "steps": 200}
    found = lintilhac2026_certificate.trial(jr.key(1), learner=learner, **point)
    assert found["reached"]
    assert found["risk"] - 4 * found["risk_sem"] < found["certificate"] < found["trivial"]
    assert found["vacuous"] is False


@pytest.mark.parametrize(
    ("point", "advice"),
    [
        ({"learner": "lazy"}, "learner is one of plain, noisy, split"),
        ({"network": "huge"}, "network is one of"),
        ({"sample_size": 100}, "sample_size lies between"),
    ],
)
def test_points_that_no_certificate_can_have_are_refused(point, advice):
    with pytest.raises(ValueError, match=advice):
        lintilhac2026_certificate.STUDY.check(point)
