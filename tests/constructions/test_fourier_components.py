import dataclasses
import math
import tomllib
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from genscope.constructions import _fourier_closed_forms, _fourier_plan, chi_scale, fourier_components, verify_fourier
from genscope.constructions.fourier_verification import outputs
from genscope.estimate import Estimate
from genscope.fourier import points, table_of_number
from genscope.fourier.transform import walsh_coefficients
from genscope.fourier.walsh import WalshFunction, parity, random_function, tiling
from genscope.precision import float64
from tests.chance import assert_estimate
from tests.seeds import seed

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "lintilhac2026.toml").read_text())
CASES = {case["name"]: case for case in GOLDEN["case"]}
SIGNED = GOLDEN["signed"]
CLOSE = {"rel": GOLDEN["tolerance"], "abs": GOLDEN["absolute"]}
BLOCKS = {"A": "score", "K": "key", "V": "value", "E": "expand", "b": "threshold"}
BLOCKS |= {"F": "contract", "W2": "select", "w": "readout", "b0": "bias"}


def function(case, **changes):
    supports, coefficients = tuple(map(tuple, case["supports"])), tuple(case["coefficients"])
    return dataclasses.replace(WalshFunction(case["context_length"], supports, coefficients, "phi"), **changes)


def measured_norms(model):
    found = {block: getattr(model, name) for block, name in BLOCKS.items()}
    squares = {block: float(np.sum(np.asarray(w) ** 2)) for block, w in found.items() if w is not None}
    return squares | {"total": sum(squares.values())}


# --- Numbers of other code --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("variant", ["full", "minimal"])
def test_norms_gradients_and_traces(case, variant):
    built = fourier_components(function(case), variant=variant)
    assert built.plan.sharpness == pytest.approx(case["sharpness"], **CLOSE)
    assert -built.plan.logits.min() == pytest.approx(case["penalty"], **CLOSE)
    assert built.norm_squared == pytest.approx(case["norm"], **CLOSE)
    assert measured_norms(built.model) == pytest.approx(built.norm_squared, rel=1e-12)
    gradient = built.gradient_squared
    expected = case["gradient"] | ({"F_pos": 0.0} if variant == "minimal" else {})
    assert {block: gradient[block] for block in expected} == pytest.approx(expected, **CLOSE)
    assert built.trace == pytest.approx(case["trace"][variant], **CLOSE)
    assert 2 * gradient["total"] == pytest.approx(built.trace, rel=1e-12)
    assert (built.trace_sem, built.gradients.exact) == (0.0, True)
    d, m = case["context_length"] + 2, built.model.threshold.size
    assert built.parameters == (case["parameters"] if variant == "full" else 4 * d**2 + 3 * m + d)


@pytest.mark.parametrize("signed", ["two_heads", "one_token"])
def test_mixed_degrees_and_both_signs(signed):
    expected, f = SIGNED[signed], function(SIGNED)
    built = fourier_components(f, signed=signed)
    assert (built.plan.degree, built.parameters) == (expected["degree"], expected["parameters"])
    assert built.plan.sharpness == pytest.approx(expected["sharpness"], **CLOSE)
    found = built.norm_squared
    assert [found[b] for b in ("A", "W2", "total")] == pytest.approx(
        [expected[b] for b in ("A", "W2", "norm")], **CLOSE
    )
    assert measured_norms(built.model) == pytest.approx(found, rel=1e-12)
    for variant, trace in expected["trace"].items():
        assert fourier_components(f, variant=variant, signed=signed).trace == pytest.approx(trace, **CLOSE)
    positive = fourier_components(function(SIGNED, coefficients=(0.5,) * 4), signed=signed)
    assert positive.norm_squared["total"] == pytest.approx(SIGNED["positive_norm"], **CLOSE)
    assert positive.plan.bias is None  # without negative coefficients both ways are the plain one


# --- Against automatic differentiation --------------------------------------------------------------------------------


def mean_squared_gradients(built):
    """By block, over the whole cube."""
    with float64():
        x = jnp.asarray(points(built.function.dim))
        gradients = jax.jit(jax.vmap(jax.grad(lambda model, bits: model(bits)), in_axes=(None, 0)))(built.model, x)
        return {b: float(jnp.sum(g**2) / len(x)) for b, n in BLOCKS.items() if (g := getattr(gradients, n)) is not None}


DIFFERENTIATED = {
    "two heads": (function(SIGNED), {}),
    "one token, chi, constant": (function(SIGNED, basis="chi", constant=0.3), {"signed": "one_token"}),
}


@pytest.mark.parametrize(("f", "options"), DIFFERENTIATED.values(), ids=DIFFERENTIATED)
def test_every_block_of_the_gradient(f, options):
    built = fourier_components(f, **options)
    closed = built.gradient_squared
    for block, square in mean_squared_gradients(built).items():
        assert square == pytest.approx(closed[block], rel=GOLDEN["autodiff_tolerance"], abs=1e-5)


def hessian_trace(model, f):
    with float64():
        x, y = jnp.asarray(points(f.dim)), jnp.asarray(f.truth_table())
        flat, restore = ravel_pytree(model)

        def second(direction):
            slope = jax.grad(lambda theta: jnp.mean((jax.vmap(restore(theta))(x) - y) ** 2))
            return direction @ jax.jvp(slope, (flat,), (direction,))[1]

        return float(jax.jit(lambda eye: jax.lax.map(second, eye, batch_size=16).sum())(jnp.eye(len(flat))))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["G1", "G2"])
@pytest.mark.parametrize("variant", ["full", "minimal", "tuned"])
def test_the_trace_of_the_hessian_of_every_variant(name, variant):
    f = function(CASES[name])
    built = fourier_components(f, variant=variant)
    tolerance = GOLDEN["autodiff_tolerance"] if variant != "tuned" else 1e-3  # tau is a thousand times larger
    found = hessian_trace(built.model, f)
    assert found == pytest.approx(built.trace, rel=tolerance)
    if (name, variant) == ("G1", "full"):
        assert found == pytest.approx(GOLDEN["autodiff"], rel=1e-8)


# --- Exactness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "degree", "sparsity"), [(8, 3, 4), (10, 5, 3), (12, 12, 1)])
def test_it_is_exact_on_the_whole_cube(dim, degree, sparsity):
    f = random_function(jr.key(seed()), dim=dim, degree=degree, sparsity=sparsity, basis="phi")
    exact = verify_fourier(fourier_components(f, inactive=1e-14), key=jr.key(1))
    assert exact.max_error <= GOLDEN["exact_error"]
    assert (exact.inputs_checked, exact.exhaustive, exact.exact, exact.verified) == (2**dim, True, True, True)
    usual = fourier_components(f)
    error = np.abs(outputs(usual.model, points(dim)) - f.truth_table()).max()
    assert error == pytest.approx(usual.error, rel=1e-6)  # what is promised is attained
    assert usual.error == pytest.approx(1e-6 / (1 + 1e-6) * sum(f.coefficients))


def simulated(plan):
    """The output at all points by the plan's attention alone, without the model: for many functions quickly."""
    bits = np.concatenate([points(plan.context_length), [[0, 1]] * np.ones((2**plan.context_length, 1), bool)], axis=1)
    attended = bits[:, : plan.positions] @ plan.attention.T
    j = np.rint(plan.degree * attended)
    assert (np.abs(attended - j / plan.degree)[:, :-1] <= 1 / (4 * plan.degree)).all()  # on the plateau
    heads = plan.selection[:, : plan.sparsity] @ (j[:, :-1] % 2 == 0).T.astype(float)
    return (plan.bias or 0.0) + plan.values @ heads


@pytest.mark.parametrize("signed", ["two_heads", "one_token"])
def test_every_function_of_three_bits_has_its_transformer(signed):
    """All 256 truth tables, on seven bits, since there can be seven components."""
    for number in range(256):
        spectrum = walsh_coefficients(table_of_number(number, 3).astype(float))
        terms = {mask: a for mask, a in enumerate(spectrum) if mask and a}
        supports = tuple(tuple(i for i in range(3) if mask >> i & 1) for mask in terms)
        f = WalshFunction(7, supports, tuple(map(float, terms.values())), "chi", float(spectrum[0]))
        built = fourier_components(f, inactive=1e-12, signed=signed)
        np.testing.assert_allclose(simulated(built.plan), f.truth_table(), atol=1e-10)


@pytest.mark.parametrize("signed", ["two_heads", "one_token"])
@pytest.mark.parametrize("basis", ["chi", "phi"])
def test_any_degrees_signs_and_constant(signed, basis):
    rng = np.random.default_rng(seed(3))
    for last in [False] * 9 + [True]:
        supports = {tuple(sorted(rng.choice(8, rng.integers(1, 9), replace=False).tolist())) for _ in range(8)}
        values = rng.normal(size=len(supports) + 1).tolist()
        f = WalshFunction(8, tuple(supports), tuple(values[1:]), basis, values[0])
        built = fourier_components(f, inactive=1e-14, signed=signed)
        np.testing.assert_allclose(simulated(built.plan), f.truth_table(), atol=1e-11)
        if last and basis == "phi":  # by its model
            assert verify_fourier(built, key=jr.key(0)).exact
            assert measured_norms(built.model)["total"] == pytest.approx(built.norm_squared["total"], rel=1e-12)


CONSTANT = WalshFunction(3, (), (), "phi", 0.25)
DEGENERATE = {
    "constant": CONSTANT,
    "zero coefficient": WalshFunction(3, ((0,), (1, 2)), (0.0, 0.5), "phi"),
    "one bit": WalshFunction(1, ((0,),), (-2.0,), "phi"),
}


@pytest.mark.parametrize("f", DEGENERATE.values(), ids=DEGENERATE)
def test_corners(f):
    built = fourier_components(f, variant="tuned")
    assert verify_fourier(built, key=jr.key(0)).verified
    assert measured_norms(built.model)["total"] == pytest.approx(built.norm_squared["total"], rel=1e-9)


def test_long_inputs_are_checked_where_attention_leaks_most():
    f = random_function(jr.key(0), dim=17, degree=3, sparsity=5, basis="phi")
    built = fourier_components(f, inactive=1e-14)
    verdict = verify_fourier(built, key=jr.key(0))
    assert (verdict.exact, verdict.exhaustive) == (True, False)
    assert verdict.inputs_checked > 4096
    with float64():
        blurred = eqx.tree_at(lambda model: model.key, built.model, replace_fn=lambda key: key / 2)
    spoilt = dataclasses.replace(built)
    spoilt.__dict__["model"] = blurred  # a planted error
    assert not verify_fourier(spoilt, key=jr.key(0)).verified


# --- Expectations -----------------------------------------------------------------------------------------------------


def test_inputs_that_look_alike_are_counted_once():
    """The parity of all bits has T + 1 classes of inputs: its trace costs nothing at any length."""
    built = fourier_components(parity(200))
    assert built.gradients.exact
    assert built.gradient_squared["w"] == pytest.approx(1.5, rel=1e-5)  # sum p^2 = 1, mean of z^2 = 1/2


def test_sampled_traces_agree_with_exact_ones(monkeypatch):
    f = tiling(10, 2)
    exact = fourier_components(f)
    expected = exact.trace
    monkeypatch.setattr(_fourier_closed_forms, "LARGEST", 1)
    sampled = fourier_components(f, key=jr.key(seed()))
    assert not sampled.gradients.exact
    assert 0 < sampled.trace_sem < 0.01 * expected
    assert_estimate(Estimate(sampled.trace, sampled.trace_sem), expected, planted=1.05 * expected)
    with pytest.raises(ValueError, match="Give fourier_components a key"):
        _ = fourier_components(f).trace


@pytest.mark.parametrize("signed", ["two_heads", "one_token"])
@pytest.mark.parametrize("case", [CASES["G2"], SIGNED])
def test_signs_for_indicators_change_norm_and_trace_as_stated(case, signed):
    built, direct = (fourier_components(function(case, basis=basis), signed=signed) for basis in ("phi", "chi"))
    assert chi_scale(built) == pytest.approx((direct.norm_squared["total"], direct.trace), rel=1e-12)


def test_signs_for_indicators_by_hand():
    total, gradient = 1805.654776, CASES["G2"]["gradient"]
    rest = sum(gradient.values()) - gradient["w"]
    by_hand = total + 3 * 1.72**2 + 1.72**2, 2 * (4 * rest + gradient["w"] + 1)
    assert chi_scale(fourier_components(function(CASES["G2"]))) == pytest.approx(by_hand, **CLOSE)


# --- What the paper has otherwise -------------------------------------------------------------------------------------


def test_zeros_in_the_second_attention_would_starve_the_components():
    """lintilhac2026 puts 0 where we have -M: at T = 20, s = 5 the components then hold at most 12 % of attention."""
    f = WalshFunction(20, tuple((i,) for i in range(5)), (5**-0.5,) * 5, "phi")
    built = fourier_components(f)
    logits = np.where(np.arange(21) < 5, built.plan.logits, 0.0)
    active = dataclasses.replace(built.plan, logits=logits).selection[0, :5].sum()
    assert active == pytest.approx(math.sqrt(5) / (math.sqrt(5) + 16))
    assert active < 0.13
    assert built.plan.selection[0, :5].sum() == pytest.approx(1, abs=1e-5)


def test_the_whole_residual_would_add_the_bits():
    """Adding the input after the perceptron gives the sum of alpha_i (phi_i + b_i)."""
    f = function(CASES["G1"])
    built = fourier_components(f, inactive=1e-14)
    with float64():
        seen = jax.tree.map(np.asarray, jax.jit(jax.vmap(built.model.activations))(jnp.asarray(points(6))))
    bits = np.pad(points(6), ((0, 0), (0, 1)))
    literal = 1.4 * np.einsum("bn,bn->b", seen.selection[:, 0], seen.state[:, :, -1] + bits)
    np.testing.assert_allclose(literal, f.truth_table() + points(6)[:, :2] @ np.array([0.6, 0.8]), atol=1e-12)


def test_a_bias_exceeds_one_where_the_degree_is_even():
    largest = [np.asarray(fourier_components(parity(k)).model.threshold).max() for k in (1, 2, 3, 4)]
    assert largest == pytest.approx([0.75, 1 + 3 / 8, 2.75 / 3, 1 + 3 / 16])


def test_rows_that_write_positions_make_the_trace_grow_with_the_length():
    """The paper's trace, without them, does not depend on T; the full one does, and they are most of it for k = 1."""
    short, long = (
        fourier_components(WalshFunction(dim, tuple((i,) for i in range(5)), (5**-0.5,) * 5, "phi")) for dim in (20, 80)
    )
    assert short.gradient_squared["F_pos"] / short.gradient_squared["total"] > 0.9
    assert long.trace > 3 * short.trace
    rest = [2 * (built.gradient_squared["total"] - built.gradient_squared["F_pos"]) for built in (short, long)]
    assert rest[1] == pytest.approx(rest[0], rel=0.05)


def test_the_norm_grows_with_the_length():
    norms = {t: fourier_components(WalshFunction(t, ((0, 1),), (1.0,), "phi")).norm_squared["total"] for t in (50, 200)}
    assert norms[200] > 4 * norms[50]


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "options", "advice"),
    [
        (WalshFunction(2, ((0,), (1,), (0, 1)), (1.0, 1.0, 1.0)), {}, "drop the smallest components"),
        (WalshFunction(0, (), (), constant=1.0), {}, "Add a bit"),
        (CONSTANT, {"leakage": 1.0}, "Correct the one that is out of range"),
        (CONSTANT, {"inactive": 0.0}, "Correct the one that is out of range"),
        (CONSTANT, {"signed": "three_heads"}, "Choose one of them"),
        (CONSTANT, {"variant": "paper"}, "Choose one"),
    ],
)
def test_what_cannot_be_built(f, options, advice):
    with pytest.raises((ValueError, TypeError)) as caught:
        fourier_components(f, **options)
    assert advice in str(caught.value) or "Literal" in str(caught.value)  # beartype comes first for literals


@pytest.mark.parametrize(("units", "norm", "trace"), [("even", 1101.22, 407.08), ("all", 1106.53, 442.78)])
def test_both_readings_of_theorem_9(units, norm, trace):
    """Units for the even values of the grid, or for each; printed digits of values derived by other code."""
    function = WalshFunction(5, ((0, 3), (1, 4)), (0.6, 0.8), basis="phi")
    built = fourier_components(function, units=units)
    assert built.norm_squared["total"] == pytest.approx(norm, abs=0.005)
    assert built.trace == pytest.approx(trace, abs=0.005)
    assert verify_fourier(built, key=jr.key(0)).kept
    weights = sum(float(np.sum(np.asarray(leaf) ** 2)) for leaf in jax.tree.leaves(built.model))
    assert weights == pytest.approx(built.norm_squared["total"], rel=1e-12)


def test_other_units_are_refused():
    with pytest.raises(ValueError, match="Choose even or all"):
        _fourier_plan._check(WalshFunction(3, ((0,),), (1.0,)), 0.5, 1e-6, "two_heads", "odd")
