"""Constructions for a sample: what is left out, that the sample is fitted, and what a bound pays."""

import itertools
import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.constructions import fourier_components, thin, thinned_bounds, verify_thinned
from genscope.constructions._fourier_closed_forms import SampleGradients
from genscope.constructions._fourier_plan import thinned_wave, wave
from genscope.constructions.fourier_sample import used_values
from genscope.constructions.fourier_verification import outputs
from genscope.fourier import points
from genscope.fourier.walsh import WalshFunction
from genscope.precision import float64
from genscope.refusal import Refusal

PARITY = WalshFunction(6, (tuple(range(6)),), (1.0,), basis="phi")
MIXED = WalshFunction(5, ((0, 1, 2), (2, 3), (4,)), (0.5, -0.3, 0.7), basis="phi", constant=0.2)


def sample(dim, rows, seed=0):
    return np.random.default_rng(seed).random((rows, dim)) < 0.5


@pytest.mark.parametrize("degree", range(1, 6))
def test_every_set_of_values_has_its_wave(degree):
    """Right on the plateaus of the set, in [0, 1] everywhere, with units of the whole wave and no steeper slopes."""
    whole = wave(degree)[0].round(12).tolist()
    grid = np.linspace(-0.2, 1.3, 400)
    for size in range(1, degree + 2):
        for used in itertools.combinations(range(degree + 1), size):
            thresholds, slopes = thinned_wave(degree, used)
            values = np.array([[j + shift for shift in (-0.25, 0, 0.25)] for j in used]) / degree
            g = np.maximum(values[..., None] - thresholds, 0) @ slopes
            assert g == pytest.approx(np.tile((np.array(used) + 1) % 2, (3, 1)).T, abs=1e-12)
            everywhere = np.maximum(grid[:, None] - thresholds, 0) @ slopes
            assert everywhere.min() >= -1e-12
            assert everywhere.max() <= 1 + 1e-12
            assert set(thresholds.round(12)) <= set(whole)
            assert (np.abs(slopes) <= 2 * degree + 1e-12).all()
            turns = sum(a % 2 != b % 2 for a, b in itertools.pairwise(used)) + (used[0] % 2 == 0)
            assert len(thresholds) == 2 * turns


def test_all_values_need_the_whole_wave_but_what_no_input_uses():
    for degree in (3, 4):
        thresholds, slopes = thinned_wave(degree, tuple(range(degree + 1)))
        kept = len(wave(degree)[0]) - (2 if degree % 2 == 0 else 0)
        assert thresholds == pytest.approx(wave(degree)[0][:kept])
        assert slopes == pytest.approx(wave(degree)[1][:kept])


@pytest.mark.parametrize("signed", ["two_heads", "one_token"])
@pytest.mark.parametrize("variant", ["full", "tuned"])
def test_the_sample_is_fitted_by_fewer_units_of_smaller_norm(variant, signed):
    for function, rows in ((PARITY, 6), (MIXED, 1)):
        found = thin(fourier_components(function, variant=variant, signed=signed), sample(function.dim, rows))
        assert verify_thinned(found).kept
        before, after = found.units
        assert after < before
        whole, thinned = found.whole.norm_squared, found.thinned.norm_squared
        assert all(thinned[block] <= whole[block] + 1e-12 for block in whole)
        assert thinned["total"] < whole["total"]
        assert found.thinned.trace <= found.whole.trace * (1 + 1e-2 if variant == "tuned" else 1 + 1e-5)
        leaves = jax.tree.leaves(eqx.filter(found.thinned.model, eqx.is_inexact_array))
        assert sum(float(np.sum(np.asarray(leaf) ** 2)) for leaf in leaves) == pytest.approx(thinned["total"])


def test_off_the_sample_nothing_is_promised():
    found = thin(fourier_components(PARITY), np.eye(6, dtype=bool)[:3] | np.eye(6, dtype=bool)[3:])
    assert found.used == (2,)
    errors = np.abs(outputs(found.thinned.model, points(6)) - PARITY(points(6)))
    wrong = np.isin(points(6).sum(axis=1), (0, 3, 5))  # one rise before 2, and no fall
    assert errors[~wrong].max() < 1e-5
    assert errors[wrong].min() > 0.9


def test_a_value_that_is_forgotten_is_found():
    found = thin(fourier_components(PARITY), sample(6, 12))
    assert verify_thinned(found).kept
    for value in found.used:
        rest = tuple(j for j in found.used if j != value)
        broken = replace(found, thinned=replace(found.thinned, plan=replace(found.thinned.plan, used=rest)))
        wrong = len(thinned_wave(6, rest)[0]) != len(thinned_wave(6, found.used)[0])
        assert verify_thinned(broken).kept is not wrong


@pytest.mark.parametrize("signed", ["two_heads", "one_token"])
def test_the_trace_is_that_of_gradients_at_the_sample(signed):
    """Twice the mean squared length of the gradient by automatic differentiation; planted: uniform inputs."""
    x = sample(5, 3)
    built = fourier_components(MIXED, signed=signed)
    found = thin(built, x)
    with float64():
        for each in (found.whole, found.thinned):
            weights, rest = eqx.partition(each.model, eqx.is_inexact_array)
            gradient = jax.vmap(jax.grad(lambda w, bits, rest=rest: eqx.combine(w, rest)(bits)), (None, 0))
            squares = [float(jnp.sum(part**2)) for part in jax.tree.leaves(gradient(weights, jnp.asarray(x)))]
            assert each.trace == pytest.approx(2 * sum(squares) / len(x), rel=1e-4)
    assert found.whole.trace != pytest.approx(built.trace, rel=1e-2)


def test_values_are_counted_by_hand():
    built = fourier_components(MIXED, signed="one_token")
    x = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 0, 1]], bool)
    # sets {0,1,2}: 3 and 0; {2,3} with the one-token: 2 and 1; {4}: 0 and 1
    assert used_values(built.plan, x) == (0, 1, 2, 3)
    assert used_values(built.plan, x[:1]) == (0, 2, 3)
    assert used_values(fourier_components(MIXED).plan, x[:1]) == (0, 1, 3)


def test_what_a_bound_pays():
    """By hand: with σ and λ of the whole nothing, with their own optimum a union over 2^(k + 1) sets."""
    found = thin(fourier_components(PARITY), sample(6, 8))
    bounds = thinned_bounds(found, constant=0.1)
    n, c, tail = 8, 0.1, math.log(20)

    def optimum(built):
        size = built.norm_squared["total"]
        trace = replace(built, gradients=SampleGradients(built.plan, points(6))).trace  # at all inputs
        return (c * math.sqrt(size) / (trace * math.sqrt(n))) ** (1 / 3), size

    sigma, size = optimum(found.whole)
    thin_sigma, thin_size = optimum(found.thinned)
    nats = size / (2 * sigma**2) + tail
    assert bounds["whole"] == pytest.approx(sigma**2 / 2 * found.whole.trace + c * math.sqrt(2 * nats / n))
    rate = math.sqrt(2 * n * nats) / c
    kept = sigma**2 / 2 * found.thinned.trace + rate * c**2 / (2 * n) + (thin_size / (2 * sigma**2) + tail) / rate
    assert bounds["kept"] == pytest.approx(kept)
    own = thin_size / (2 * thin_sigma**2) + tail + 7 * math.log(2)
    assert bounds["own"] == pytest.approx(thin_sigma**2 / 2 * found.thinned.trace + c * math.sqrt(2 * own / n))
    assert bounds["kept"] < bounds["whole"]


def test_nothing_is_left_out_at_the_sizes_of_the_paper():
    function = WalshFunction(20, ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9)), (0.6, 0.8), basis="phi")
    found = thin(fourier_components(function, key=jr.key(0)), sample(20, 8192))
    assert found.used == tuple(range(6))
    assert found.units == (12, 12)
    assert found.thinned.norm_squared == pytest.approx(found.whole.norm_squared)


def test_refusals():
    built = fourier_components(PARITY)
    for wrong in (np.zeros((2, 5), bool), np.zeros((0, 6), bool)):
        with pytest.raises(Refusal, match="Give x == 1"):
            thin(built, wrong)
    with pytest.raises(Refusal, match="Give a function"):
        thin(fourier_components(WalshFunction(2, (), (), constant=1.0)), np.zeros((1, 2), bool))
