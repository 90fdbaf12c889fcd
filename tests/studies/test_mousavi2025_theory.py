"""The studies behind claims B1 to B4, shrunken: what trials return, and that they decide their claims."""

import jax.random as jr
import numpy as np
import pytest

from genscope.claims.mousavi2025_theory import B1, B2, B3, B4
from genscope.lab import Store, read, run, select
from genscope.random import stream
from genscope.studies import mousavi2025_ffn_adamw, mousavi2025_lower
from genscope.studies.mousavi2025_constructions import RECURRENT, TOKENS
from genscope.studies.mousavi2025_lower import FEEDFORWARD, HEADS, ffn_trial, heads_trial
from genscope.tasks.links import Linear
from genscope.tasks.token_regression import TokenRegression

KEY = jr.key(5)
BUILT = {"dim": [3], "sparsity": [2], "encoding_dim": [32]}


@pytest.fixture
def verdict(tmp_path):
    def decide(claim, study, where=None):
        with Store(f"sqlite:///{tmp_path / 'store.db'}") as store:
            assert run(study, select(study, "quick", where=where, seeds=1), store=store).failed == 0
            found = read(store, select(study, "quick", where=where, seeds=1))
        return claim.verdict([found], budget="quick", seconds=0.0).verdict, found.frame

    return decide


def test_heads_retrieve_and_b1_holds(verdict):
    decision, frame = verdict(B1, TOKENS, BUILT | {"context_length": [8], "sharpness": [0.5, 1.0, 1.5, 2.0]})
    assert decision == "holds"
    assert frame["rate"].n_unique() == 1  # one task for all sharpnesses
    assert frame["promised_error"].n_unique() == 4


def test_one_recurrent_network_serves_all_lengths_and_b3_holds(verdict):
    decision, frame = verdict(B3, RECURRENT, BUILT | {"context_length": [6, 12]})
    assert decision == "holds"
    assert frame["weights"].n_unique() == 1
    assert frame["max_error"].max() < 1e-12


def test_b2_holds_at_the_quick_budget(verdict):
    decision, frame = verdict(B2, HEADS)
    assert decision == "holds"
    assert len(frame) == len(HEADS.points)


def test_checks_of_b4_hold_at_the_quick_budget(verdict):
    decision, frame = verdict(B4, FEEDFORWARD)
    assert decision == "undecided"  # without trained networks
    assert (frame["identity_error"] < 1e-10).all()
    assert (frame["ridge_risk"] > frame["span_risk"]).all()
    assert (frame["span_risk"] != frame["span_risk_mean"]).all()  # one u is not the mean


def test_a_trained_ffn_beside_the_best_in_the_span():
    """The span's risk by another route: projections onto an orthonormal basis, for the link that was drawn."""
    record = mousavi2025_ffn_adamw.trial(KEY, sample_size=10)
    task = TokenRegression.draw(stream(KEY, "task"), context_length=8, dim=5, shared_positions=True)
    sample = task.sample(stream(KEY, "data"), 10)
    basis = np.linalg.qr(np.asarray(sample.x, float)[:, :, :5].reshape(10, 40).T)[0]
    assert isinstance(task.link, Linear)
    u = np.asarray(task.link.directions, float)[0]
    inside = sum(np.sum((basis.T @ np.kron(np.eye(8)[t], u)) ** 2) for t in range(8)) / 8
    assert record["span_risk"] == pytest.approx(1 - inside, abs=1e-6)
    assert record["bound"] == 1 - 10 / 40
    assert record["least_risk"] <= record["risk"]
    assert record["train_loss"] < mousavi2025_ffn_adamw.SETTLED
    assert 0.1 < record["outside_share"] < 1  # it starts, and stays, outside the span


def test_a_label_that_heads_can_tell_breaks_the_bound(monkeypatch):
    """The planted fault: features of all tokens instead of the heads' mixtures."""
    point = {"family": "block", "sparsity": 3, "dim": 1, "heads": 1}
    honest = heads_trial(KEY, **point)
    assert honest["risk"] > honest["bound"]
    monkeypatch.setattr(mousavi2025_lower, "_softmax", lambda scores: np.eye(16)[:8])
    assert heads_trial(KEY, **point)["risk"] < 1e-10


def test_ranks_agree_with_the_sharp_bound():
    for sparsity, dim, heads in ((6, 12, 2), (3, 5, 2), (4, 2, 3)):
        found = heads_trial(KEY, family="best", sparsity=sparsity, dim=dim, heads=heads)
        assert found["risk"] == pytest.approx(found["bound"], abs=1e-12)
        assert found["risk_sem"] == pytest.approx(0, abs=1e-12)


def test_ridge_approaches_the_span_with_many_samples():
    few, many = (ffn_trial(KEY, context_length=3, dim=2, sample_size=size) for size in (4, 2000))
    assert few["ridge_risk"] > few["span_risk"] > 0.1
    assert many["ridge_risk"] < 1e-3
    assert many["span_risk"] == pytest.approx(0, abs=1e-12)
    assert many["bound"] == 0


@pytest.mark.parametrize(
    ("study", "point"),
    [
        (HEADS, {"family": "some"}),
        (HEADS, {"sparsity": 9}),
        (FEEDFORWARD, {"sample_size": 0}),
        (TOKENS, {"sharpness": 0.0}),
        (RECURRENT, {"context_length": 0}),
    ],
)
def test_impossible_points_are_refused(study, point):
    with pytest.raises(ValueError, match="Choose"):
        study.check(point)
