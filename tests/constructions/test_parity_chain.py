"""The chain of thought for parity: every input, every step; norms and traces; what a causal mask does."""

import dataclasses
import tomllib
from pathlib import Path

import jax
import jax.flatten_util
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.bounds.parity_chain import blocks, chain, chain_scales, one_pass
from genscope.constructions.fourier_components import fourier_components
from genscope.constructions.parity_chain import parity_chain, verify_chain
from genscope.fourier import points
from genscope.fourier.walsh import parity
from genscope.models import file
from genscope.precision import float64
from genscope.tasks.parity_chain import ParityChain, prompts
from tests.seeds import seed

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "lintilhac2026_chain.toml").read_text())["chain_trace"]
KEY = jr.key(seed(0))


CODED = {"causal": False, "dim": 4}


def step_trace(model, step):
    """Trace of the Hessian of one step over all inputs, 2 E‖∇f‖², as the network interpolates."""
    length = model.context_length
    task = ParityChain(jnp.ones(length, bool), length)

    @jax.jit
    def square(bits):
        gradient = jax.grad(lambda model: model(prompts(bits, task.target(bits)), jnp.asarray(step)))(model)
        return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient))

    with float64():
        return 2 * float(jnp.mean(jax.lax.map(square, jnp.asarray(points(length).astype(bool)), batch_size=64)))


@pytest.fixture(
    scope="module",
    params=[{"causal": False}, {"causal": True}, CODED, {"causal": True, "dim": 4}],
    ids=["all see all", "causal", "short codes", "short codes, causal"],
)
def eight(request):
    return parity_chain(8, **request.param)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def numpy_step(model, bits, step):
    """The network of one step written out for the positions that exist, by plain NumPy."""
    length = model.context_length
    here = length + step + 1
    ids = np.arange(here) % length
    codes = np.eye(length)
    if model.frequencies:
        angle = 2 * np.pi * np.outer(np.arange(length), model.frequencies) / length
        codes = np.hstack([np.cos(angle), np.sin(angle)]) / np.sqrt(len(model.frequencies))
    tokens = np.column_stack([codes[ids], bits[:here]])
    score, key, value, expand, contract, select = (
        np.asarray(getattr(model, name)) for name in ("score", "key", "value", "expand", "contract", "select")
    )
    scores = tokens @ score @ key @ tokens.T
    if model.causal:
        scores = np.where(np.tri(here, dtype=bool), scores, -np.inf)
    hidden = np.maximum(softmax(scores) @ tokens @ value @ expand.T - np.asarray(model.threshold), 0)
    state = np.column_stack([tokens[:, :-1], np.zeros(here)]) + hidden @ contract.T
    return softmax(state[-1] @ select @ state.T) @ state @ np.asarray(model.readout)


def test_every_step_on_every_input(eight):
    verdict = verify_chain(eight, key=KEY)
    assert verdict.exhaustive
    assert verdict.inputs_checked == 256
    assert verdict.kept
    assert not verdict.exact  # the inactive positions have some mass
    assert verdict.max_error < 5e-7


def test_the_network_is_its_numpy_twin(eight):
    bits = np.random.default_rng(seed(0)).integers(2, size=(3, 16)).astype(bool)
    run = jax.jit(lambda model, row, step: model(row, step))
    with float64():
        for row in bits:
            for step in (0, 3, 7):
                found = float(run(eight.model, jnp.asarray(row), step))
                assert found == pytest.approx(numpy_step(eight.model, row, step), abs=1e-12)


def test_a_long_chain_on_drawn_inputs():
    verdict = verify_chain(parity_chain(32), key=KEY, samples=16)
    assert verdict.kept
    assert not verdict.exhaustive


def test_short_codes_at_their_lengths():
    """Squared norms at T = 64 (one-hot: 25,442) and 1,024 (566,938); the longer one on drawn steps of one string."""
    built = parity_chain(64, dim=12)
    assert verify_chain(built, key=KEY, samples=2).kept
    assert sum(built.norm_squared.values()) == pytest.approx(9697, abs=1)
    assert sum(parity_chain(64).norm_squared.values()) == pytest.approx(25_442, abs=1)
    built = parity_chain(1024, dim=24)
    assert sum(built.norm_squared.values()) == pytest.approx(37_412, abs=1)
    x = np.random.default_rng(seed(0)).integers(2, size=1024)
    truth = np.cumsum(x) % 2
    bits = np.concatenate([x, [0], truth[:-1]])
    for step in (1, 700):
        assert numpy_step(built.model, bits, step) == pytest.approx(truth[step], abs=built.error)


def test_codes_too_close_are_caught():
    """The planted error: scales as if the codes were orthogonal."""
    built, sharp = parity_chain(12, dim=4), parity_chain(12)
    with float64():
        blunt = dataclasses.replace(
            built.model,
            key=built.model.key / 3,
            select=jnp.asarray(sharp.model.select[0, 0] * np.diag([1.0] * 4 + [0])),
        )
    assert verify_chain(built, key=KEY).kept
    assert not verify_chain(dataclasses.replace(built, model=blunt), key=KEY).kept


@pytest.mark.slow
def test_longer_chains():
    assert verify_chain(parity_chain(12), key=KEY).inputs_checked == 4096
    assert verify_chain(parity_chain(12), key=KEY).kept
    assert verify_chain(parity_chain(64), key=KEY, samples=100).kept
    assert verify_chain(parity_chain(32, causal=True), key=KEY).kept


def test_a_causal_mask_halves_the_output():
    """Erratum: position t must see T + t. With w = 1 every output is at most ½, and half of the answers are wrong."""
    halved = parity_chain(8, causal=True, readout=1.0)
    verdict = verify_chain(halved, key=KEY)
    assert not verdict.kept
    assert verdict.max_error == 1
    x = jnp.asarray(points(8).astype(bool))
    with float64():
        answers = np.asarray(jax.jit(jax.vmap(halved.model.answer))(x))[:, -1]
    assert np.mean(answers == np.asarray(x).sum(axis=1) % 2) == 0.5


def test_norms_are_those_of_the_weights(eight):
    for name, value in eight.norm_squared.items():
        assert float(np.sum(np.asarray(getattr(eight.model, name)) ** 2)) == pytest.approx(value, rel=1e-12)


def test_the_identities_have_an_entry_for_every_dimension_of_a_code(eight):
    """Erratum: "only a single nonzero entry"; with one, only one step of the chain would work."""
    for name in ("score", "key", "select"):
        assert np.count_nonzero(np.asarray(getattr(eight.model, name))) == (4 if eight.model.frequencies else 8)


@pytest.mark.parametrize("step", [0, 1, 2, 7])
def test_traces_by_differentiation(eight, step):
    trace = step_trace(eight.model, step)
    if eight.model.frequencies:  # no closed form with leakage, which moves the trace by 2 % at most
        limit = chain(8, step=step, limit=True, codes=(4, 0.0)).trace
        assert eight.model.causal or trace == pytest.approx(limit, rel=0.02)
    elif not eight.model.causal:
        assert trace == pytest.approx(chain(8, step=step).trace, rel=1e-6)  # inactive positions: mass 4e-7
    elif str(step) in GOLDEN["causal_at_8"]:
        assert trace == pytest.approx(GOLDEN["causal_at_8"][str(step)], abs=0.5)


@pytest.mark.slow
def test_the_trace_is_that_of_the_hessian():
    """At an interpolator the Hessian of the squared loss is twice the sum of the products of gradients."""
    built = parity_chain(2)
    bits = jnp.asarray([[0, 0, 0, 0], [1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 0, 1]])
    with float64():
        flat, rebuild = jax.flatten_util.ravel_pytree(built.model)

        def loss(weights):
            outputs = jax.vmap(lambda row: rebuild(weights)(row, 1))(bits)
            return jnp.mean((outputs - jnp.asarray([0.0, 1.0, 1.0, 0.0])) ** 2)

        assert float(loss(flat)) < 1e-12
        trace = float(jnp.trace(jax.jit(jax.hessian(loss))(flat)))
    assert trace == pytest.approx(step_trace(built.model, 1), rel=1e-5)
    assert trace == pytest.approx(chain(2).trace, rel=1e-5)


def test_rescaled_weights_are_weights_of_the_same_function():
    """Norms and trace of `tuned` belong to a network: factors, centred scores and ReLUs rescaled by hand."""
    built, tuned = parity_chain(8), blocks("chain", 8, weights="tuned")
    sharpness, select = chain_scales(8)
    scale = np.sqrt(tuned.norm_squared["expand"] / 4)
    where = np.diag([1.0] * 8 + [0.0])
    model = built.model
    with float64():
        lighter = dataclasses.replace(
            model,
            score=jnp.asarray(np.sqrt(sharpness) * where),
            key=jnp.asarray(np.sqrt(sharpness) * where),
            expand=scale * model.expand,
            threshold=scale * model.threshold,
            contract=model.contract / scale,
            select=jnp.asarray(select * (where - np.outer(where.sum(axis=1), where.sum(axis=0)) / 8)),
        )
    for name, value in tuned.norm_squared.items():
        assert float(np.sum(np.asarray(getattr(lighter, name)) ** 2)) == pytest.approx(value, rel=1e-9)
    assert verify_chain(dataclasses.replace(built, model=lighter), key=KEY).kept
    relaxed = chain(8, step=3).rescaled(scale**2)  # with leakage; `tuned` has none
    assert step_trace(lighter, 3) == pytest.approx(relaxed.trace, rel=1e-5)
    assert relaxed.trace < tuned.trace < 1.05 * relaxed.trace


def test_one_pass_is_the_construction_of_one_component():
    """Closed forms of two files, derived apart: a binomial mean here, sums over inputs there."""
    for length in (2, 7, 10):
        built, closed = fourier_components(parity(length)), one_pass(length)
        blocks = [built.norm_squared[letter] for letter in ("A", "K", "V", "E", "b", "F", "W2", "w")]
        assert blocks == pytest.approx([*closed.norm_squared.values()], rel=1e-12)
        assert built.norm_squared["total"] == pytest.approx(closed.total, rel=1e-12)
        assert built.trace == pytest.approx(closed.trace, rel=2e-6)


def test_a_file_holds_the_network(tmp_path):
    built = parity_chain(4, causal=True, dim=2)
    file.save(built.model, tmp_path / "chain.safetensors")
    again = file.load(tmp_path / "chain.safetensors")
    assert again.causal
    assert (again.context_length, again.frequencies) == (4, built.model.frequencies)
    assert all(
        np.array_equal(*leaves) for leaves in zip(jax.tree.leaves(built.model), jax.tree.leaves(again), strict=True)
    )


def test_what_is_refused():
    with pytest.raises(ValueError, match="Correct the one that is out of range"):
        parity_chain(1)
    with pytest.raises(ValueError, match="Correct the one that is out of range"):
        parity_chain(8, leakage=1.0)
    with pytest.raises(ValueError, match="Fill positions that are not yet written with zeros"):
        parity_chain(4).model(jnp.zeros(4, bool), 0)
