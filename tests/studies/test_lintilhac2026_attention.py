import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.fourier import WalshFunction, points
from genscope.lab.values import check_names
from genscope.measure.attention_rows import match_rows
from genscope.models.scalar_attention import ScalarAttention
from genscope.studies import lintilhac2026_attention as study
from genscope.tasks import WalshSum

POINT = {"context_length": 6, "degree": 2, "sparsity": 2, "scores": "positions", "scale": 1.0}


@pytest.fixture(scope="module")
def record():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "STEPS", 500)
        yield study.trial(jr.key(0), **POINT)


def test_a_small_network_learns_and_is_read(record):
    check_names(list(record), taken=frozenset(POINT))
    assert record["converged"]
    assert record["components_wrong"] == 0
    assert 1 <= record["components"] <= 2
    assert record["attention"].shape == record["influence"].shape == (6, 6)
    np.testing.assert_allclose(record["attention"].sum(axis=1), 1, atol=1e-3)  # a mean of 8,192 in float32
    np.testing.assert_allclose(record["influence"].sum(axis=1), 1, atol=1e-5)
    assert 0 <= record["recall"] <= record["precision"] <= 1
    assert record["shown"] == (record["recall"] >= 0.9)
    # Without bits in the scores a row computes what it looks at.
    assert record["influence_recall"] >= record["recall"] > 0.5


def test_the_score_matrix_is_asked_for_the_two_largest_components(record, monkeypatch):
    """Where rows are matched with what the score matrix shows, of the trained network and of the untrained."""
    asked = []

    def note(strengths, supports, *, candidates=None):
        asked.append((np.asarray(strengths), list(supports), candidates))
        return match_rows(strengths, supports, candidates=candidates)

    monkeypatch.setattr(study, "match_rows", note)
    monkeypatch.setattr(study, "STEPS", 500)
    again = study.trial(jr.key(0), **POINT)
    assert (again["weights_shown"], again["shown"]) == (record["weights_shown"], record["shown"])
    trained, untrained = asked[-2:]
    assert len(trained[1]) <= study.COUNTED
    assert trained[1] == untrained[1]
    _, start = study._begin(jr.key(0), 6, 2, 2, "positions", 1.0)
    np.testing.assert_array_equal(untrained[0], start.score[:-1, :-1])
    assert untrained[2] is None  # any row of the untrained network may do
    np.testing.assert_array_equal(np.sort(trained[0], axis=0), np.sort(record["score"], axis=0))
    planted = np.zeros((6, 6))
    for row, support in enumerate(trained[1]):
        planted[row, list(support)] = 1.0
    assert study._shown(match_rows(planted, trained[1]))
    assert not study._shown(match_rows(np.roll(planted, 1, axis=1), trained[1]))


def test_components_come_with_the_largest_first(monkeypatch):
    table = 0.2 * points_sign((0, 1)) + 0.9 * points_sign((2,)) + 0.4 * points_sign((0, 3))
    monkeypatch.setattr(study, "_truth_table", lambda model: table)
    model = ScalarAttention(4, key=jr.key(0))
    assert study._components(model) == [(2,), (0, 3), (0, 1)]


def points_sign(support):
    return 1.0 - 2.0 * (points(4)[:, list(support)].sum(axis=1) % 2)


def test_components_are_read_off_the_whole_spectrum():
    """A network that computes one parity by hand: row 0 looks at bits 1 and 2, the curve is |a - 1/2|."""
    model = ScalarAttention(6, positional=True, key=jr.key(0))
    rest = jnp.zeros(30)  # hidden units that do nothing
    weights = {
        "score": jnp.full((7, 7), -30.0).at[0, 1:3].set(0.0),
        "value": jnp.zeros(7).at[-1].set(1.0),
        "w_up": jnp.concatenate([jnp.array([1.0, -1.0]), rest]),
        "b_up": jnp.concatenate([jnp.array([-0.5, 0.5]), rest]),
        "w_down": jnp.concatenate([jnp.ones(2), rest]),
        "w_read": jnp.zeros(6).at[0].set(4.0),
    }
    model = eqx.tree_at(lambda m: [getattr(m, name) for name in weights], model, list(weights.values()))
    assert study._components(model) == [(1, 2)]
    task = WalshSum.of(WalshFunction(6, ((1, 2), (3,)), (1.0, 0.0)))
    seen = study._seen(model, study._fresh(task, jr.key(1)))
    assert seen["attention"][0].tolist() == pytest.approx([0, 0.5, 0.5, 0, 0, 0], abs=1e-6)
    # The row adds 2 or 0 by the parity of two bits: each of them has influence 1, the others none.
    assert seen["influence"][0].tolist() == pytest.approx([0, 1, 1, 0, 0, 0], abs=1e-6)
    assert float(seen["error"]) == pytest.approx(1.0, abs=1e-5)  # (1 + χ) against χ
    _, height = study._curve(model, seen, [0])
    assert study._turns(height) == 1
    curve = study._oriented(height)
    assert np.abs(curve).max() == pytest.approx(1)
    assert curve[0] == pytest.approx(1, abs=0.02)  # |a - 1/2| less its mean ends as high as its middle is low
    np.testing.assert_allclose(study._oriented(-3 * height + 2), curve, atol=1e-5)


def test_turns_are_counted_without_flat_parts():
    place = np.linspace(0, 1, 201)
    assert study._turns(np.cos(3 * np.pi * place)) == 2
    assert study._turns(np.maximum(place, 0.5)) == 0
    assert study._turns(np.zeros(201)) == 0


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"scores": "none"}, "Choose one of them"),
        ({"degree": 7}, "Change them"),
        ({"context_length": 24}, "Change them"),
        ({"sparsity": 0}, "must be between 1 and 20. Change it"),
        ({"scale": 0.0}, "initial scores, must be between 0 and 10. Change it"),
    ],
)
def test_refuses_points_without_a_trial(change, advice):
    check = study.STUDY.check
    assert check is not None
    for budget in ("quick", "standard", "paper"):
        for point in study.STUDY.plan(budget).points:
            check(point)
    with pytest.raises(ValueError, match=advice):
        check(POINT | change)
