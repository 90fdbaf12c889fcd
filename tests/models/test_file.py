"""Model files: what is written comes back bit by bit, and everything else is refused with advice."""

import contextlib
import functools
import io
import json
import os
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genscope.models import BitClassifier, BitTransformer, mousavi2025
from genscope.models.edelman2022 import DeepTransformer, Head, Transformer
from genscope.models.encoding import Bag, Positional
from genscope.models.file import CLASSES, load, save
from genscope.precision import float64

KEY = jr.key(1)


@functools.cache
def models():
    """One of every kind: coordinates and drawn vectors, fixed and trained, biases or none, several heads, deep."""
    return dict(_models())


def _models():
    drawn = Positional.draw(KEY, context_length=5, dim=6, trained=True)
    orthonormal = Bag.orthonormal(context_length=4)
    yield "classifier", BitClassifier(7, dim=8, heads=2, key=KEY)
    yield "two layers", BitTransformer(3, embedding=2, hidden=3, position_ids=(0, 1, 0, 1), key=KEY)
    yield "scalar", Transformer.draw(KEY, encoding=orthonormal, head_dim=2)
    yield (
        "perceptron",
        Transformer.draw(
            KEY, encoding=drawn, head_dim=3, heads=2, widths=(4, 3), biased=True, cls_is_key=False, sigma=jnp.tanh
        ),
    )
    yield "deep", DeepTransformer.draw(KEY, encoding=drawn, head_dim=2, layers=2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_models_come_back_bit_by_bit(path, precision):
    for name, model in models().items():
        if precision == "float64":
            with float64():
                model = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, float)), model)
        save(model, path)
        again = load(path)
        assert jax.tree.structure(again) == jax.tree.structure(model), name
        for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(model), strict=True):
            assert one.dtype == other.dtype == precision
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_the_header_names_classes_and_sizes(path):
    save(models()["scalar"], path)
    with safetensors.safe_open(path, framework="numpy") as opened:
        described = json.loads(opened.metadata()["genscope"])
    assert described["class"] == "Transformer"
    assert described["encoding"]["vectors"] == {"class": "Coordinates", "count": 5, "dim": 5}
    assert described["heads"]["heads"][0]["w_q"] == {"shape": [5, 2], "dtype": "float32"}


def test_a_class_is_saved_under_its_own_name():
    assert all(name == kind.__name__ for name, kind in CLASSES.items())
    assert len({kind.__module__ for kind in CLASSES.values()}) == 8  # none took the place of another of its name


def test_files_of_version_0_1_are_read(path):
    """Its name of the theory's Transformer was not that of the class, and is now."""
    shapes = {"w_qk": (1, 2, 2), "readout.weight": (3, 2), "readout.bias": (3,), "readout.outer": (3,)}
    tensors = {f"model.{name}": np.full(shape, 0.5, "float32") for name, shape in shapes.items()}
    described = {name: {"shape": [*shape], "dtype": "float32"} for name, shape in shapes.items()}
    readout = {name: described.pop(f"readout.{name}") for name in ("weight", "bias", "outer")}
    entry = {"class": "TokenTransformer", **described, "readout": {"class": "TwoLayer", **readout, "offset": None}}
    safetensors.numpy.save_file(tensors, path, {"genscope": json.dumps(entry)})
    model = load(path)
    assert type(model) is mousavi2025.TokenTransformer
    save(model, path)
    assert eqx.tree_equal(load(path), model)


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    save(models()["scalar"], path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        save(models()["classifier"], path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_class_of_others_is_not_written(path):
    class Own(eqx.Module):
        weight: jax.Array

    with pytest.raises(ValueError, match=r"Add yours to the tables of genscope\.models\.file"):
        save(Own(jnp.ones(2)), path)
    assert not path.exists()


def test_places_that_are_no_files(tmp_path):
    for place in (tmp_path, tmp_path / "missing" / "model.safetensors"):
        with pytest.raises(ValueError, match="Give a file name"):
            save(models()["scalar"], place)


class Bomb:
    def __reduce__(self):
        return os.system, ("exit 1",)


@pytest.mark.parametrize("kind", ["pickle", "archive"])
def test_pickles_are_refused_with_the_way_to_convert(path, kind):
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Bomb()))
    else:
        stream = io.BytesIO()
        np.savez(stream, x=np.ones(2))
        path.write_bytes(stream.getvalue())
    with pytest.raises(ValueError, match=r"safetensors\.torch\.save_file"):
        load(path)


def test_files_of_other_programs_are_refused(path):
    safetensors.numpy.save_file({"weight": np.ones(3)}, path)
    with pytest.raises(ValueError, match="Name your own class as package"):
        load(path)
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match="Write it again"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(path.with_name("missing"))


def changed(path, change):
    """The file with its description changed."""
    with safetensors.safe_open(path, framework="numpy") as opened:
        described = json.loads(opened.metadata()["genscope"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    described = change(described, tensors) or described
    safetensors.numpy.save_file(tensors, path, {"genscope": json.dumps(described)})


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d.update({"class": "os.system"}),
        lambda d, t: d.update(cls_is_key=1),
        lambda d, t: d.update(cls_is_key={"function": "relu"}),
        lambda d, t: d.pop("readout") and None,
        lambda d, t: d.update(extra=1),
        lambda d, t: t.update(extra=np.ones(2)),
        lambda d, t: t.pop("model.readout.w") is None or None,
        lambda d, t: d["readout"]["w"].update(shape=[1]),
        lambda d, t: d["readout"]["w"].update(dtype="float64"),
        lambda d, t: d["encoding"]["vectors"].update(count="5"),
        lambda d, t: d["encoding"].update(vectors=None),
        lambda d, t: d["heads"]["heads"][0].update(sigma="relu"),
        lambda d, t: d["heads"]["heads"][0].update(sigma={"function": "eval"}),
        lambda d, t: d["heads"].update(heads=3),
        lambda d, t: [d],
        lambda d, t: "Transformer",
    ],
)
def test_descriptions_that_do_not_fit_are_refused(path, change):
    save(models()["scalar"], path)
    changed(path, change)
    with pytest.raises(ValueError, match="Read the file with the version that wrote it"):
        load(path)


def test_sizes_that_contradict_each_other_are_refused(path):
    save(models()["classifier"], path)

    def shorter(described, tensors):
        tensors["model.w_logit"] = tensors["model.w_logit"][:-1].copy()
        described["w_logit"]["shape"] = [7]

    changed(path, shorter)
    with pytest.raises(ValueError, match="w_logit"):
        load(path)
    save(models()["scalar"], path)
    changed(path, lambda d, t: d["encoding"]["vectors"].update(dim=9))
    with pytest.raises(ValueError, match="each part must read what the previous one returns"):
        load(path)


def test_a_deep_description_is_refused(path):
    safetensors.numpy.save_file({}, path, {"genscope": "[" * 100_000})
    with pytest.raises(ValueError, match="Read the file with the version"):
        load(path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_broken_files_never_end_in_a_traceback_of_ours(path, data):
    """Bytes of the header changed, or the file cut: refused, or still a model."""
    save(Transformer.draw(KEY, encoding=Bag.orthonormal(context_length=2), head_dim=1), path)
    content = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.one_of(st.none(), st.integers(0, len(content))))])
    with contextlib.suppress(ValueError):
        assert isinstance(load(path), eqx.Module)


def test_a_head_alone_is_a_model_too(path):
    head = Head.draw(KEY, dim=4, head_dim=2)
    save(head, path)
    assert isinstance(load(path), Head)
