"""MODEL and FILE of the commands that look at a model and its data.

Guarantee: nothing in a file is ever run: model files and arrays are read as numbers, pickles are refused. What the
user's own function raises is shown as its own failure, with status 1.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from genscope.cli._user_code import imported, is_reference, users_code
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from genscope.tasks import Batch

_NAMES = ("x", "y")
_HOW = "Write one by numpy.savez('data.npz', x=x, y=y), with numbers or truth values in both."


class Data(NamedTuple):
    """Inputs and labels, example by example."""

    x: np.ndarray
    y: np.ndarray


def load_model(text: str) -> Any:
    """The model of a file that genscope wrote, or the one that `package.module:function` returns."""
    import equinox as eqx
    import jax

    if not is_reference(text):
        from genscope.models.file import load

        return load(text)
    make = imported(text)
    with users_code(text):
        model = make()
    if not callable(model) or not any(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(model)):
        raise Refusal(
            f"{text} returned a {type(model).__name__}: a model is called with one input, and its weights are floating "
            "point JAX arrays in a pytree. Return for example an equinox.Module."
        )
    return model


def load_data(path: Path) -> Data:
    """The arrays x and y of a .safetensors or .npz file."""
    arrays = _arrays(path)
    missing = [name for name in _NAMES if name not in arrays]
    if missing:
        raise Refusal(
            f"{path} holds {', '.join(sorted(arrays)[:5]) or 'no array'}, but no {' and no '.join(missing)}: data are "
            f"an array x of inputs and an array y of labels. {_HOW}"
        )
    data = Data(*(np.asarray(arrays[name]) for name in _NAMES))
    for name, array in zip(_NAMES, data, strict=True):
        if array.dtype.kind not in "biuf" or array.ndim < 1 or array.size == 0:
            raise Refusal(
                f"{name} in {path} is an array of {array.dtype} of shape {array.shape}: it holds numbers or truth "
                f"values, one row per example, at least one. {_HOW}"
            )
        wrong = np.argwhere(~np.isfinite(array))
        if len(wrong):
            raise Refusal(
                f"{name} in {path} holds {array[tuple(wrong[0])]} in example {wrong[0][0]} ({len(wrong)} such numbers "
                "in all): every number must be finite. Leave these examples out, or mend them."
            )
    if len(data.x) != len(data.y):
        raise Refusal(
            f"{path} holds {len(data.x)} inputs x and {len(data.y)} labels y: there is one label for every input. "
            "Write both from the same examples."
        )
    return data


def as_batch(model: Any, data: Data) -> "Batch":
    """The data in the number type of the model, which must take each input and return what a label looks like.

    Call it inside `precision.float64()` if the model has weights of that type: `is_double` tells.
    """
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from genscope.tasks import Batch

    kinds = [leaf.dtype for leaf in jax.tree.leaves(model) if eqx.is_inexact_array(leaf)]
    kind = max(kinds, key=lambda each: each.itemsize)
    batch = Batch(*(jnp.asarray(each, kind) if each.dtype.kind == "f" else jnp.asarray(each) for each in data))
    try:
        # Shapes are checked, not the promotion of number types that tests forbid.
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            found = jax.eval_shape(jax.vmap(model), batch.x)
    except Exception as error:  # whatever the model makes of an input that it is not made for
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise Refusal(
            f"the model refuses inputs of shape {data.x.shape[1:]} and type {data.x.dtype} ({type(error).__name__}: "
            f"{reason}): x holds one input of the model per row. Give x in the shape that the model takes."
        ) from error
    shape = getattr(found, "shape", None)
    if shape != data.y.shape:
        what = type(found).__name__ if shape is None else f"shape {shape[1:]}"
        raise Refusal(
            f"the model returns {what} for an input, and the labels y have shape {data.y.shape[1:]}: a label has the "
            "shape of a prediction. Reshape y, for example by y.reshape(len(y)), or give a model with that output."
        )
    return batch


def is_double(model: Any) -> bool:
    """Whether the model has float64 weights, which JAX keeps only in its 64-bit mode."""
    import jax

    return any(getattr(leaf, "dtype", None) == np.float64 for leaf in jax.tree.leaves(model))


def _arrays(path: Path) -> dict[str, np.ndarray]:
    if path.suffix not in (".safetensors", ".npz"):
        raise Refusal(
            f"got {path} for the data: it is a .safetensors or .npz file with arrays x and y; pickles and other files "
            f"that may run code are not read. {_HOW}"
        )
    with open(path, "rb") as file:  # that it cannot be opened is the system's message
        try:
            if path.suffix == ".safetensors":
                import safetensors.numpy

                return safetensors.numpy.load_file(path)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except Exception as error:  # whatever the libraries make of a broken file
            reason = "it holds pickled objects" if "allow_pickle" in str(error) else str(error)
            raise Refusal(f"{path} cannot be read as arrays of numbers ({reason}). {_HOW}") from error
