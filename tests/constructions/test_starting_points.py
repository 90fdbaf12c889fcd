"""A construction as a starting point: trained on, looked into, written to a file and read back."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from genscope import constructions
from genscope.constructions import SparseFunction
from genscope.models.file import load, save
from genscope.precision import float64
from genscope.random import stream
from genscope.tasks import SparseParity
from genscope.train import Whole, adam, fit, squared

KEY = jr.key(0)


def test_train_on_from_a_construction_look_at_it_and_keep_it(tmp_path):
    task = SparseParity.draw(stream(KEY, "task"), context_length=16, support_size=3)
    built = constructions.symmetric(SparseFunction.of(task))
    data = task.sample(stream(KEY, "data"), 64)
    start = built.start()
    assert {leaf.dtype for leaf in jax.tree.leaves(start)} == {jnp.dtype("float32")}

    # what it represents is a minimum: training from it stays there, and finds back to it from beside it
    beside = eqx.tree_at(lambda m: m.readout.w, start, start.readout.w + 0.05)
    settled, found = (fit(m, Whole(data), squared, 100, optimizer=adam(1e-3)) for m in (start, beside))
    assert settled.losses[0] < 1e-10
    assert settled.loss < 1e-6
    assert found.losses[0] > 1e-3
    assert found.loss < found.losses[0] / 20

    assert isinstance(found.model, type(start))
    attention = found.model.activations(data.x[0]).attention[0]
    assert float(attention[task.support].sum()) > 0.9
    assert attention.shape == (17,)

    for model in (found.model, built.model):
        save(model, tmp_path / "model.safetensors")
        again = load(tmp_path / "model.safetensors")
        assert jax.tree.structure(again) == jax.tree.structure(model)
        for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(model), strict=True):
            assert one.dtype == other.dtype
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    with float64():
        assert again(data.x[0]) == built.model(data.x[0])
