from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from genscope.models.file import load, save
from genscope.models.lintilhac2026 import FourierTransformer, Projection
from genscope.precision import float64
from tests.chance import assert_mean
from tests.reference.lintilhac2026 import fourier_transformer

NAMES = ["score", "key", "value", "expand", "threshold", "contract", "select", "readout", "bias"]


def drawn(*, minimal=False, one_token=False, projection=None, bias=True, heads=2, length=4, units=3):
    """A model with normal weights everywhere, which no construction has."""
    rng = np.random.default_rng(0)
    d = 1 + (length + 1 + one_token if projection is None else projection.dim)
    shapes = {"score": (d, d), "key": (d, d), "value": (d, d), "threshold": (units,)}
    shapes |= {"expand": (units,), "contract": (units,)} if minimal else {"expand": (units, d), "contract": (d, units)}
    shapes |= {"select": (heads, d, d), "readout": (heads, d), "bias": ()}
    with float64():
        weights: dict[str, Any] = {
            name: jnp.asarray(rng.normal(size=shape)) for name, shape in shapes.items() if bias or shape
        }
        weights |= {"context_length": length, "one_token": one_token, "projection": projection}
        return FourierTransformer(bias=weights.pop("bias", None), **weights)


CASES = {
    "full": {},
    "minimal": {"minimal": True, "bias": False, "heads": 1},
    "one-token": {"one_token": True},
    "projected": {"projection": Projection(dim=3, seed=5)},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_network_is_its_definition_and_survives_a_file(case, tmp_path):
    model = drawn(**case)
    weights = {name: None if (w := getattr(model, name)) is None else np.asarray(w) for name in NAMES}
    positions = None
    if model.projection is not None:
        with float64():
            positions = np.asarray(model.projection.positions(model.positions, jnp.dtype("float64")))
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert jax.tree.structure(again) == jax.tree.structure(model)
    inputs = np.array([[0, 0, 0, 0], [1, 0, 1, 1], [0, 1, 1, 0]])
    with float64():
        found = np.asarray(jax.jit(jax.vmap(again))(jnp.asarray(inputs, bool if model.bias is None else int)))
    expected = [fourier_transformer(weights, x, positions, model.one_token) for x in inputs]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_activations_tell_who_attends_to_whom():
    model = drawn(one_token=True)
    with float64():
        both = jax.jit(lambda x: (model.activations(x), model.tokens(x)))(jnp.asarray([True, False, True, True]))
        seen, tokens = jax.tree.map(np.asarray, both)
    assert tokens[:, -1].tolist() == [1, 0, 1, 1, 0, 1]  # the output position has bit 0, the one-token bit 1
    np.testing.assert_allclose(seen.attention.sum(axis=1), 1)
    np.testing.assert_allclose(seen.selection.sum(axis=1), 1)
    assert seen.hidden.shape == (6, 3)
    assert seen.state.shape == (6, 7)
    assert seen.output.shape == ()


def test_random_positions_do_not_depend_on_the_precision():
    projection = Projection(dim=400, seed=1)
    single = projection.positions(50, jnp.dtype("float32"))
    with float64():
        double = projection.positions(50, jnp.dtype("float64"))
    np.testing.assert_allclose(single, np.asarray(double), rtol=1e-6)
    assert_mean(400 * np.asarray(double).ravel() ** 2, 1, planted=1.15)
    assert not np.array_equal(single, Projection(dim=400, seed=2).positions(50, jnp.dtype("float32")))


def test_parts_that_do_not_fit_are_refused():
    model = drawn()
    arrays = {name: getattr(model, name) for name in NAMES}
    with pytest.raises(ValueError, match="Make the sizes agree"):
        FourierTransformer(**arrays, context_length=5)
    for wrong in ({"dim": 0, "seed": 0}, {"dim": 3, "seed": -1}):
        with pytest.raises(ValueError, match="Correct the one"):
            Projection(**wrong)
