"""Bounds for recurrent networks: Lipschitz steps, packings, scaling, and a network that they must allow."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import chi2, norm

from genscope.bounds.recurrent import (
    SUDAKOV,
    interpolation_norm,
    rnn_cover,
    rnn_min_norm_lower,
    rnn_norm_lower,
    rnn_risk,
    rnn_width_lower,
)

COVER = {
    "tokens": 100,
    "transition_parameters": 1000,
    "output_parameters": 2000,
    "transition_depth": 3,
    "output_depth": 4,
    "parameter_norm": 100.0,
    "state_radius": 10.0,
    "token_norm": 12.0,
}


def run(layers, x):
    for weight, bias in layers[:-1]:
        x = np.maximum(weight @ x + bias, 0)
    return layers[-1][0] @ x


def draw(generator, sizes, scale):
    return [
        (scale * generator.normal(size=(after, before)), scale * generator.normal(size=after))
        for before, after in itertools.pairwise(sizes)
    ]


@pytest.mark.parametrize("scale", [0.05, 0.5, 2.0])
def test_networks_move_no_more_than_the_proof_says(scale):
    generator = np.random.default_rng(6)
    sizes = [5, 7, 6, 3]
    for _ in range(100):
        x = generator.normal(size=5)
        first, second = draw(generator, sizes, scale), draw(generator, sizes, scale)
        moved = math.sqrt(
            sum(np.sum((a - b) ** 2) for u, v in zip(first, second, strict=True) for a, b in zip(u, v, strict=True))
        )
        radius = max(math.hypot(np.linalg.norm(w), np.linalg.norm(b)) for net in (first, second) for w, b in net)
        squares, total = 1 + x @ x, 0.0
        for layer in range(1, 4):
            total += radius ** (2 * (3 - layer)) * squares
            squares = 1 + radius**2 * squares
        assert np.linalg.norm(run(first, x) - run(second, x)) <= math.sqrt(total) * moved


def test_the_cover_by_hand_for_nets_of_one_layer():
    case = COVER | {"transition_depth": 1, "output_depth": 1, "parameter_norm": 2.0, "state_radius": 3.0}
    bound = rnn_cover(epsilon=0.1, **case)
    output = 2000 * math.log1p(4 * 2 * math.sqrt(1 + 18 + 144) / 0.1)
    transitions = 2 * 1000 * math.log1p(8 * math.e * 2 * 100 * 2 * math.sqrt(1 + 9 + 144) / 0.1)
    assert bound.terms == pytest.approx({"output": output, "transitions": transitions})
    assert bound.explicit


@given(st.sampled_from(sorted(COVER)), st.floats(1e-6, 1e3))
def test_the_cover_is_monotone(name, epsilon):
    value = rnn_cover(epsilon=epsilon, **COVER).value
    assert value <= rnn_cover(epsilon=epsilon, **COVER | {name: 2 * COVER[name]}).value
    assert value >= rnn_cover(epsilon=2 * epsilon, **COVER).value


def test_tokens_cost_a_logarithm():
    sizes = [rnn_cover(epsilon=0.1, **COVER | {"tokens": 10**power}).value for power in (2, 4, 6)]
    assert sizes[2] - sizes[1] == pytest.approx(sizes[1] - sizes[0], rel=1e-9)
    assert sizes[1] - sizes[0] == pytest.approx(2000 * math.log(100), rel=1e-6)


def test_risk_by_both_forms():
    bound = rnn_risk(samples=10**9, **COVER)
    assert bound.explicit
    assert not bound.vacuous
    assert rnn_risk(samples=10**5, **COVER).vacuous
    order = rnn_risk(samples=10**7, **COVER, form="order", empirical_risk=0.5)
    assert order.value == pytest.approx(0.5 + math.sqrt(4000 * math.log(100 * 100 * 10**7) / 10**7))
    assert not order.explicit
    with pytest.raises(ValueError, match="Leave it out"):
        rnn_risk(samples=10, **COVER, constant=2.0)


def test_the_tail_of_chi_squared_is_below_the_bound_in_the_proof():
    for freedom in (1, 5, 50, 500):
        for x in (0.01, 0.2, 0.5, 0.9, 0.99):
            assert chi2.logcdf(x * freedom, freedom) <= freedom / 2 * (math.log(x) + 1 - x) + 1e-12


def test_the_largest_of_several_normals_is_as_large_as_the_proof_says():
    grid = np.linspace(-10, 10, 20001)
    for number in (2, 3, 10, 1000, 10**6):
        mean = np.trapezoid(grid * number * norm.pdf(grid) * norm.cdf(grid) ** (number - 1), grid)
        assert mean >= math.sqrt(math.log(number) / (math.pi * math.log(2))) - 1e-9
    assert np.trapezoid(2 * grid * norm.pdf(grid) * norm.cdf(grid), grid) == pytest.approx(1 / math.sqrt(math.pi))


def test_sudakov_holds_on_separated_points_where_the_printed_bound_fails():
    """The roots of E8 as states: U = identity on one direction, so that the Frobenius norm is sqrt(8)."""
    assert math.log(240) <= SUDAKOV * 8
    printed = 1 * (1 + math.log(1 + 2 * 8))  # Lemma 41 with spectral norm 1
    assert printed < math.log(240)


def test_width_is_linear_and_norm_a_root_in_the_tokens():
    widths = [rnn_width_lower(tokens=10**power, risk=0.05).value for power in (4, 6, 8)]
    assert widths[1] / widths[0] == pytest.approx(100, rel=0.05)
    assert widths[2] / widths[1] == pytest.approx(100, rel=0.001)
    norms = [rnn_norm_lower(tokens=10**power, risk=0.05, lipschitz=2.0).value for power in (4, 6, 8)]
    assert norms[2] / norms[1] == pytest.approx(10, rel=0.001)
    assert norms[0] == pytest.approx(rnn_norm_lower(tokens=10**4, risk=0.05).value / 2)


def test_bounds_allow_a_network_that_stores_all_tokens():
    """A state that keeps every <u, x_j> and an output that picks one solve 1STR exactly, with width N and U = identity.

    Clipped at r_h = 2 sqrt(N) the output coordinate is 1-Lipschitz in the state, so that 𝔏 = r_h.
    """
    for tokens in (2, 10, 100, 10**4):
        radius = 2 * math.sqrt(tokens)
        assert rnn_width_lower(tokens=tokens, risk=0.0, lipschitz=radius, output_spectral=1.0).value <= tokens
        assert rnn_norm_lower(tokens=tokens, risk=0.0, lipschitz=radius).value <= math.sqrt(2 * tokens)


@settings(max_examples=12)
@given(st.integers(2, 10**6), st.floats(0, 0.6), st.floats(0.1, 100), st.floats(1, 3))
def test_lower_bounds_are_monotone(tokens, risk, lipschitz, factor):
    def both(**changes):
        case = {"tokens": tokens, "risk": risk, "lipschitz": lipschitz} | changes
        return rnn_width_lower(**case).value, rnn_norm_lower(**case).value

    base = np.array(both())
    slack = 1 - 1e-9
    assert (np.array(both(tokens=2 * tokens)) >= base * slack).all()
    assert (np.array(both(risk=risk * factor)) <= base / slack).all()
    assert (np.array(both(lipschitz=lipschitz * factor)) <= base / slack).all()


def test_nothing_is_claimed_for_large_risks_and_short_prompts():
    assert rnn_width_lower(tokens=10**6, risk=0.5).value == 0
    assert rnn_width_lower(tokens=10**6, risk=0.5).vacuous
    assert rnn_norm_lower(tokens=2, risk=0.05).value == 0
    assert rnn_width_lower(tokens=1000, risk=0.0, output_spectral=0.0).value == math.inf
    assert rnn_norm_lower(tokens=1000, risk=0.0, lipschitz=0.0).value == math.inf
    with pytest.raises(ValueError, match="at least 2"):
        rnn_width_lower(tokens=1, risk=0.1)


def test_least_norm_networks_overfit_up_to_a_small_power_of_the_tokens():
    for depth in (2, 3, 4):
        small, large = (
            rnn_min_norm_lower(tokens=10**power, risk=0.05, output_depth=depth).value for power in (60, 120)
        )
        assert math.log10(large / small) == pytest.approx(60 / (3 * depth), rel=0.02)
    samples = int(rnn_min_norm_lower(tokens=10**12, risk=0.05).value)
    needed = 2 * rnn_norm_lower(tokens=10**12, risk=0.05).value
    assert interpolation_norm(samples) < needed <= interpolation_norm(samples + 1)
    assert interpolation_norm(10**4) == pytest.approx(105 * 10**12, rel=0.01)
    assert rnn_min_norm_lower(tokens=100, risk=0.05).value == 0


def test_a_cap_of_the_sphere_is_as_small_as_the_proof_says():
    for freedom in (3, 20, 200):
        for cosine in (0.05, 0.4, 0.7, 0.8, 0.95):
            cap = betainc((freedom - 1) / 2, 0.5, 1 - cosine**2) / 2
            nats = -math.log1p(-(cosine**2)) / 2 if cosine**2 <= 0.5 else math.log(2 * cosine)
            assert math.log(cap) <= -freedom * nats + 1e-12


def test_labels_on_the_sphere_need_as_much():
    """The remark after Proposition 6: a similar bound, of the same order, which a network that solves it keeps."""
    for bound in (rnn_width_lower, rnn_norm_lower):
        sphere, normal = (bound(tokens=10**5, risk=0.05, law=law).value for law in ("sphere", "gaussian"))
        assert 0.5 < sphere / normal < 2
        ratio = bound(tokens=10**7, risk=0.05, law="sphere").value / sphere
        assert ratio == pytest.approx(100 if bound is rnn_width_lower else 10, rel=0.05)
    for tokens in (2, 10, 100, 10**4):  # states that store all labels, of length sqrt(N) exactly
        radius = math.sqrt(tokens)
        width = rnn_width_lower(tokens=tokens, risk=0.0, lipschitz=radius, output_spectral=1.0, law="sphere")
        assert width.value <= tokens
        assert rnn_norm_lower(tokens=tokens, risk=0.0, lipschitz=radius, law="sphere").value <= math.sqrt(2 * tokens)


def test_separated_labels_on_a_sphere_by_simulation():
    """Pairs of uniform points: none is nearer than the proof allows, beyond the chance it names."""
    chance, others = np.random.default_rng(8), 30
    points = chance.normal(size=(3000, others))
    points *= math.sqrt(others) / np.linalg.norm(points, axis=1, keepdims=True)
    squares = 2 * others - 2 * points @ points.T
    pairs = squares[np.triu_indices(len(points), 1)]
    for x in (0.4, 0.5, 0.6):
        cosine = 1 - x
        nats = -math.log1p(-(cosine**2)) / 2 if cosine**2 <= 0.5 else math.log(2 * cosine)
        assert np.mean(pairs < 2 * x * others) <= math.exp(-others * nats)
