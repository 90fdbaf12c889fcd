"""MODEL and FILE of the commands that look at a model and its data.

Guarantee: nothing in a file is ever run: model files and arrays are read as numbers, pickles are refused. What the
user's own function raises is shown as its own failure, with status 1.
"""

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from genscope.cli._arrays import HOW, read_arrays
from genscope.cli._user_code import imported, is_reference, users_code
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from genscope.tasks import Batch
    from genscope.train import Loss

_LABELS, _MASK = "y", "mask"
_COMPARED = 2  # examples, for which PyTorch is asked as well
_CHECKED = 2**24  # numbers that are looked at together


class Data(NamedTuple):
    """Inputs, one array or several by name, and labels, example by example."""

    x: Any
    y: np.ndarray

    @property
    def described(self) -> str:
        """Shapes and types of one input."""
        several = self.x if isinstance(self.x, dict) else {"": self.x}
        return ", ".join(f"{name} {part.shape[1:]} and type {part.dtype}".strip() for name, part in several.items())


def load_model(text: str) -> Any:
    """The model of a file that genscope wrote, or of what a reference names: a model, or what returns one."""
    if not is_reference(text):
        if text.endswith(".py"):
            raise Refusal(
                f"got {text}, a file of Python: name what is in it as well, a model or a function that returns one. "
                f"Write {text}:NAME."
            )
        from genscope.models.file import load

        return load(text)
    return made(imported(text), text)


def made(found: Any, text: str) -> Any:
    """A model as it is, or the one that a function or a class makes without arguments."""
    if not is_model(found) and (needed := _needed(found)):
        raise Refusal(
            f"{text} needs arguments ({', '.join(needed)}), and genscope gives none: what a reference names must be a "
            "model, or make one by itself. Name a function without arguments that returns the model."
        )
    with users_code(text):
        model = found if is_model(found) else found()
    if _is_torch(model):
        from genscope.models import from_torch

        return from_torch(model)
    if not is_model(model):
        raise Refusal(
            f"{text} returned an object of type {type(model).__name__}: a model must be callable on one input, with "
            "floating-point JAX arrays in a pytree as its weights. Return, for example, an equinox.Module or a "
            "torch.nn.Module."
        )
    return model


def _needed(function: Any) -> list[str]:
    """Arguments without which it cannot be called."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # Python does not know
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is each.empty and each.kind not in optional]


def is_model(found: Any) -> bool:
    """Whether it has weights and can be called."""
    import equinox as eqx
    import jax

    if isinstance(found, type) or not callable(found):
        return False
    return _is_torch(found) or any(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(found))


def _is_torch(found: Any) -> bool:
    torch = sys.modules.get("torch")  # whoever made a module has imported it
    return torch is not None and isinstance(found, torch.nn.Module)


def load_data(path: Path) -> Data:
    """Inputs x, or several by their own names, and labels y; where there is a mask of tokens, labels obey it."""
    arrays = dict(read_arrays(path))
    if _LABELS not in arrays or len(arrays) < 2:
        missing = [name for name in ("x", _LABELS) if name not in arrays]
        raise Refusal(
            f"{path} holds {', '.join(sorted(arrays)[:5]) or 'no array'}, but no {' and no '.join(missing)}: the "
            "data must be an array x of inputs, or several arrays named like the model's arguments, and an array y "
            f"of labels. {HOW}"
        )
    for name, array in arrays.items():
        _check_array(path, name, array)
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise Refusal(
            f"{path} holds {', '.join(f'{size} rows of {name}' for name, size in sizes.items())}: there must be one "
            "label for every input. Write all arrays from the same examples."
        )
    y = arrays.pop(_LABELS)
    if _MASK in arrays:
        from genscope.train import masked

        y = masked(y, arrays.pop(_MASK))
    return Data(arrays["x"] if list(arrays) == ["x"] else arrays, y)


def _check_array(path: Path, name: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "biuf" or array.ndim < 1 or array.size == 0:
        raise Refusal(
            f"{name} in {path} is an array of {array.dtype} of shape {array.shape}: it must hold numbers or truth "
            f"values, one row per example, with at least one example. {HOW}"
        )
    if array.dtype.kind != "f":
        return
    rows = max(1, _CHECKED // max(1, array[0].size))
    for first in range(0, len(array), rows):  # of a mapped file, in parts
        part = array[first : first + rows]
        if not np.isfinite(part).all():
            wrong = np.argwhere(~np.isfinite(part))
            raise Refusal(
                f"{name} in {path} holds {part[tuple(wrong[0])]} in example {first + wrong[0][0]}: every number "
                "must be finite. Leave such examples out, or repair them."
            )


def as_batch(model: Any, data: Data, loss: "Loss") -> "Batch":
    """The data in the number type of the model, which must take each input and return what the loss takes.

    Call it inside `precision.float64()` if the model has weights of that type: `is_double` tells.
    """
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from genscope.models import TorchModel, outputs
    from genscope.tasks import Batch

    kinds = [leaf.dtype for leaf in jax.tree.leaves(model) if eqx.is_inexact_array(leaf)]
    if not kinds:  # only a module of PyTorch comes this far without weights
        raise Refusal(
            f"no parameter of {model.program.name} requires a gradient: only those that do are measured. Call "
            "requires_grad_(True) on some of them, or ask what the module computes by genscope probe."
        )
    kind = max(kinds, key=lambda each: each.itemsize)

    def typed(part: np.ndarray) -> Any:
        """As it is, which may be in a mapped file, where JAX makes the right type of it anyway."""
        if part.dtype.kind != "f" or jnp.asarray(part[:0]).dtype == kind:
            return part
        return jnp.asarray(part, kind)

    batch = Batch(jax.tree.map(typed, data.x), jnp.asarray(typed(data.y)))
    if isinstance(model, TorchModel):
        asked = _extreme(data.x)
        model.check(jax.tree.map(lambda part: np.asarray(part)[asked], batch.x))
    try:
        # Shapes are checked, not the promotion of number types that tests forbid.
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            inputs = jax.tree.map(lambda part: jax.ShapeDtypeStruct(part.shape, jnp.asarray(part[:0]).dtype), batch.x)
            found = jax.eval_shape(lambda x: outputs(model, x), inputs)
    except Exception as error:  # whatever the model makes of an input that it is not made for
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise Refusal(
            f"the model failed on inputs of shape {data.described} ({type(error).__name__}: {reason}): x must hold "
            "one model input per row, and several inputs must be named like the model's arguments. Give inputs in "
            "the shape that the model takes."
        ) from error
    shape = getattr(found, "shape", None)
    if shape is None or shape[:1] != data.y.shape[:1]:
        raise Refusal(
            f"the model returns {type(found).__name__ if shape is None else f'shape {shape[1:]}'} for an input: a "
            "prediction must be one array. Give a model that returns one."
        )
    loss.check(shape, data.y)
    if not isinstance(model, TorchModel):
        _check_slope(model, batch, loss)
        check_embeddings(model, batch.x)
    return batch


def _check_slope(model: Any, batch: "Batch", loss: "Loss") -> None:
    """Refuse a model, or a loss of the user's, that JAX cannot differentiate."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from genscope.models import outputs

    weights, rest = eqx.partition(model, eqx.is_inexact_array)

    def total(weights: Any, x: Any, y: Any) -> Any:
        found = outputs(eqx.combine(weights, rest), x)
        return jnp.sum(loss(found, y) if loss.labels == "any" else found)

    few = jax.tree.map(lambda part: jnp.asarray(part[:_COMPARED]), (batch.x, batch.y))
    try:
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            jax.eval_shape(jax.grad(total), weights, *few)
    except (Refusal, typer.Exit):
        raise
    except Exception as error:  # JAX has many ways to say it
        reason = next(iter(str(error).splitlines()), "")
        own = f"the model or the loss {loss.name}" if loss.labels == "any" else "the model"
        raise Refusal(
            f"{own} has no gradient in JAX ({type(error).__name__}: {reason}): curvature and certificates need the "
            "gradient by the weights. Write that part with operations that JAX can differentiate."
        ) from error


def check_embeddings(model: Any, x: Any, what: str = "example") -> None:
    """Refuse inputs that ask an embedding of a JAX model for a row that it does not have: JAX takes another row."""
    import jax

    from genscope.models.embedding import embedding_rows, example_without_row

    if not (rows := embedding_rows(model)):
        return
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        example = example_without_row(model, x)
    if example is None:
        return
    several = x if isinstance(x, dict) else {"x": x}
    given = ", ".join(f"{name} from {np.min(at[example])} to {np.max(at[example])}" for name, at in several.items())
    most = max(rows)
    sizes = f"embedding has {most:,} rows" if len(rows) == 1 else f"largest embedding has {most:,} rows"
    raise Refusal(
        f"{what} {example} has {given}, for a model whose {sizes}: every token id must be the number of a row, from 0 "
        "on; JAX would take another row without a word. Correct the ids, or give a model with a larger vocabulary."
    )


def _extreme(x: Any) -> list[int]:
    """The first examples, and those with the smallest and the largest whole number of each array: an embedding has no
    row for every token id, which PyTorch says and JAX does not.
    """
    several = x.values() if isinstance(x, dict) else [x]
    found = set(range(min(_COMPARED, len(next(iter(several))))))
    for part in several:
        if part.dtype.kind in "iu":
            found |= {int(place) // part[0].size for place in (part.argmin(), part.argmax())}
    return sorted(found)


def is_double(model: Any) -> bool:
    """Whether the model has float64 weights, which JAX keeps only in its 64-bit mode."""
    import jax

    return any(getattr(leaf, "dtype", None) == np.float64 for leaf in jax.tree.leaves(model))
