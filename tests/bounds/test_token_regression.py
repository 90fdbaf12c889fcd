"""Covers and risks of Transformers: golden values, the counterexample to Lemma 16, validity of the Lipschitz steps."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genscope.bounds import matrix_cover, sample_size, volumetric
from genscope.bounds.token_regression import excess_risk, token_radius, token_regression_cover, token_regression_risk

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "mousavi2025.toml").read_text())["cover"]
ARGUMENTS = ("heads", "embedding", "width", "readout_norm", "hidden_norm", "query_key_21", "token_norm")
CASE = {name: GOLDEN[0][name] for name in ARGUMENTS}
RISK = {"samples": 10**9, "tokens": 100, "truncation": 4.0, **CASE}


@pytest.mark.parametrize("case", GOLDEN, ids=str)
def test_golden_values(case):
    arguments = {name: case[name] for name in ("epsilon", *ARGUMENTS)}
    for form, options in (("printed", {"form": "printed"}), ("explicit", {"points": 100_000})):
        bound = token_regression_cover(**arguments, **options)
        wanted = {"readout": case["readout"], "query-key": case[form]}
        assert bound.terms == pytest.approx(wanted, rel=case["tolerance"])
        assert bound.explicit == (form == "explicit")
        assert bound.vacuous is None


def test_the_cover_is_put_together_from_covers_of_its_parts():
    case = CASE | {"query_key_21": 0.02}
    epsilon, points = 0.3, 5000
    heads, dim, reach = case["heads"], case["embedding"], case["token_norm"]
    lipschitz = case["readout_norm"] * case["hidden_norm"]
    rho = math.sqrt(1 + heads * reach**2)
    outer = volumetric(
        parameters=case["width"], radius=case["readout_norm"], epsilon=epsilon / 4 / rho / case["hidden_norm"]
    )
    hidden = volumetric(
        parameters=case["width"] * (heads * dim + 1),
        radius=case["hidden_norm"],
        epsilon=epsilon / 4 / rho / case["readout_norm"],
    )
    accuracy = epsilon / (4 * lipschitz * reach**2)
    norms = {"weight_norm": heads * case["query_key_21"], "input_norm": reach}
    matrix = matrix_cover(**norms, epsilon=accuracy, outputs=heads * dim, points=points)
    volume = volumetric(
        parameters=heads * dim**2, radius=math.sqrt(heads) * case["query_key_21"], epsilon=accuracy / reach
    )
    found = token_regression_cover(epsilon=epsilon, **case, points=points).terms
    assert found == pytest.approx({"readout": outer.value + hidden.value, "query-key": min(matrix.value, volume.value)})
    assert 0 < matrix.value < volume.value
    without = token_regression_cover(epsilon=epsilon, **case).terms["query-key"]
    assert without == pytest.approx(volume.value)


def test_the_printed_branch_is_below_a_covering_number():
    """One column w of dimension 100, a sample that is a fine net of the sphere: the metric is the Euclidean one."""
    options = dict.fromkeys(("heads", "width", "readout_norm", "hidden_norm", "query_key_21", "token_norm"), 1)
    printed = token_regression_cover(epsilon=4 * 0.5, embedding=100, **options, form="printed")
    at_least = 100 * math.log(2 * (1 - 1e-3))  # volumes, with a net of accuracy 1e-3
    assert printed.terms["query-key"] == pytest.approx(39.6, abs=0.1)
    assert at_least > 69
    assert printed.terms["query-key"] < at_least
    assert not printed.explicit
    assert "erratum" in printed.source
    for options_of_points in ({}, {"points": 10**9}):
        proved = token_regression_cover(epsilon=4 * 0.5, embedding=100, **options, **options_of_points)
        assert proved.terms["query-key"] > at_least


def predict(x, query_key, weight, bias, outer):
    scores = np.einsum("id,hde,je->hij", x, query_key, x)
    attention = np.exp(scores - scores.max(axis=2, keepdims=True))
    attention /= attention.sum(axis=2, keepdims=True)
    heads = np.einsum("hij,jd->ihd", attention, x).reshape(len(x), -1)
    return np.maximum(heads @ weight.T + bias, 0) @ outer


@pytest.mark.parametrize("scale", [0.01, 0.3, 3.0])
def test_networks_move_no_more_than_the_proof_says(scale):
    """The two Lipschitz steps, on random networks and random and large perturbations."""
    generator = np.random.default_rng(5)
    tokens, dim, heads, width = 7, 4, 3, 5
    for _ in range(50):
        x = generator.normal(size=(tokens, dim))
        query_key, moved = (generator.normal(size=(heads, dim, dim)) * s for s in (1, scale))
        layer, layer_moved = (generator.normal(size=(width, heads * dim + 1)) * s for s in (1, scale))
        outer, outer_moved = (generator.normal(size=width) * s for s in (1, scale))
        reach = np.linalg.norm(x, axis=1).max()
        rho = math.sqrt(1 + heads * reach**2)
        first = predict(x, query_key, layer[:, 1:], layer[:, 0], outer)
        second_layer = layer + layer_moved
        second = predict(x, query_key + moved, second_layer[:, 1:], second_layer[:, 0], outer + outer_moved)
        stacked = np.concatenate(moved, axis=1)  # columns of all heads
        allowed = (
            rho * np.linalg.norm(second_layer) * np.linalg.norm(outer_moved)
            + rho * np.linalg.norm(outer) * np.linalg.norm(layer_moved)
            + np.linalg.norm(outer) * np.linalg.norm(layer) * 2 * reach**2 * np.linalg.norm(x @ stacked, axis=1).max()
        )
        assert np.abs(first - second).max() <= allowed


@settings(max_examples=50)
@given(st.data())
def test_the_cover_is_monotone_in_every_argument(data):
    case = {
        "epsilon": data.draw(st.floats(1e-6, 1e3)),
        "points": data.draw(st.integers(1, 10**12)),
        **{name: data.draw(st.integers(1, 1000)) for name in ARGUMENTS[:3]},
        **{name: data.draw(st.floats(0, 1e6)) for name in ARGUMENTS[3:]},
    }
    name = data.draw(st.sampled_from(sorted(case)))
    for form in ("explicit", "printed"):
        options = {"form": form} if form == "explicit" else {"form": form, "points": None}
        if name == "points" and form == "printed":
            continue
        value = token_regression_cover(**(case | options)).value
        larger = token_regression_cover(**(case | {name: case[name] * 2 or 1.0} | options)).value
        small, large = (larger, value) if name == "epsilon" else (value, larger)
        assert small <= large * (1 + 1e-9)
        assert not math.isnan(value)


def test_extreme_arguments_have_values():
    for extreme in (1e-300, 1e300):
        values = [
            token_regression_cover(
                epsilon=epsilon, **(CASE | dict.fromkeys(ARGUMENTS[3:], extreme)), points=10**100
            ).value
            for epsilon in (1e-300, 1e300)
        ]
        assert all(value >= 0 for value in values)
    assert token_regression_cover(epsilon=1.0, **(CASE | dict.fromkeys(ARGUMENTS[3:], 0))).value == 0


def test_risk_is_a_sum_of_its_terms_and_falls_with_the_sample():
    bound = token_regression_risk(**RISK, empirical_risk=0.25)
    assert list(bound.terms) == ["empirical risk", "complexity", "confidence"]
    assert bound.terms["confidence"] == pytest.approx(3 * 4 * math.sqrt(math.log(40) / 2e9))
    assert bound.value == pytest.approx(sum(bound.terms.values()))
    assert bound.explicit
    assert not bound.vacuous
    values = [token_regression_risk(**RISK | {"samples": 10**power}).value for power in (6, 12)]
    assert values == sorted(values, reverse=True)
    assert token_regression_risk(**RISK | {"samples": 1000}).vacuous
    order = token_regression_risk(**RISK, form="order", constant=2.0)
    assert not order.explicit
    assert order.value == pytest.approx(2 * 4 * math.sqrt((600 + min(3**6 * 16, 1800)) / 1e9))


def test_the_number_of_tokens_costs_a_logarithm():
    few, many = (token_regression_risk(**RISK | {"tokens": n, "query_key_21": 1e-4}).value for n in (10, 10**6))
    assert few < many < 1.1 * few


def test_excess_risk_by_hand_and_inverted():
    task = {"tokens": 100, "dimension": 10, "sparsity": 2, "width": 4}
    three = excess_risk(samples=10**6, **task)
    assert three.value == pytest.approx((1 / 4 + 4 + 0.08) ** 2 * 20 * math.sqrt((96 + 8 + 200) / 1e6))
    ten = excess_risk(samples=10**6, **task, query_key_21=1e-5, readout_scale=3.0, approximation=0.5)
    square = token_radius(samples=10**6, tokens=100, dimension=10) ** 2 + 10 * 1.5
    wanted = 2 * 9 * square * math.sqrt((96 + square**3 * (3 * 1e-5 * 2) ** 2) / 1e6)
    assert ten.terms == pytest.approx({"approximation": 0.5, "complexity": wanted})
    assert (three.source, ten.source) == ("mousavi2025, Theorem 3", "mousavi2025, Theorem 10")
    assert not three.explicit
    needed = sample_size(lambda samples: excess_risk(samples=samples, **task), 0.1)
    assert needed == pytest.approx(10**6 * (three.value / 0.1) ** 2, rel=1e-6)


def test_no_gaussian_token_of_a_large_sample_is_longer_than_the_radius():
    samples, tokens, dim = 500, 20, 3
    x = np.random.default_rng(0).normal(size=(samples * tokens, dim))
    radius = token_radius(samples=samples, tokens=tokens, dimension=dim)
    assert radius == pytest.approx(math.sqrt(9 * math.e * math.log(10_000)))
    assert np.linalg.norm(x, axis=1).max() < radius  # false alarm: 10^4 exp(-radius^2 / (6 e)) = 1e-2; in truth 1e-44


def test_options_that_a_form_does_not_know_are_refused():
    with pytest.raises(ValueError, match="Leave it out, or choose the"):
        token_regression_cover(epsilon=1.0, **CASE, points=10, form="printed")
    with pytest.raises(ValueError, match="Leave it out, or choose the"):
        token_regression_risk(**RISK, constant=2.0)
    with pytest.raises(ValueError, match="Change epsilon"):
        token_regression_cover(epsilon=0.0, **CASE)
