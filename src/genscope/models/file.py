"""Model files: safetensors whose header names genscope's own classes and their sizes; nothing in them is ever run.

The header's entry `genscope` is JSON that mirrors the model: a module is {"class": name, field: ...}, an array
{"shape": [...], "dtype": ...} with its numbers in the tensor named by its path, an elementwise function
{"function": name}, a tuple a list, and everything else itself.

Guarantee: exact; a model comes back bit by bit in its own precision, and a file is complete or not there. Pickles and
files of other programs are refused.
"""

import dataclasses
import json
import os
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import safetensors
import safetensors.numpy

from genscope.files import check_place, draft
from genscope.models import (
    bit_classifier,
    bit_transformer,
    edelman2022,
    encoding,
    lintilhac2026,
    mousavi2025,
    parity_chain,
    scalar_attention,
)
from genscope.precision import float64
from genscope.refusal import Refusal

# To let files hold a new class, or a new elementwise function, add it here. A file names it as its definition does.
CLASSES: Mapping[str, type[eqx.Module]] = {
    kind.__name__: kind
    for kind in (
        bit_classifier.BitClassifier,
        bit_transformer.BitTransformer,
        bit_transformer.BitLayer,
        edelman2022.Transformer,
        edelman2022.DeepTransformer,
        edelman2022.Layer,
        edelman2022.Heads,
        edelman2022.Head,
        edelman2022.Readout,
        edelman2022.Hidden,
        encoding.Positional,
        encoding.Bag,
        encoding.Coordinates,
        scalar_attention.ScalarAttention,
        mousavi2025.TokenTransformer,
        mousavi2025.TwoLayer,
        mousavi2025.BidirectionalRNN,
        mousavi2025.Affine,
        lintilhac2026.FourierTransformer,
        lintilhac2026.Projection,
        parity_chain.ChainTransformer,
    )
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {"relu": jax.nn.relu, "tanh": jnp.tanh, "gelu": jax.nn.gelu}

_ENTRY = "genscope"
_PICKLES = (b"\x80", b"PK\x03\x04")  # a bare pickle; an archive as PyTorch and NumPy write it


class _Unfit(Exception):  # says what does not fit; `load` adds the file and the advice
    pass


def save(model: eqx.Module, path: str | os.PathLike[str]) -> None:
    """Write a model of genscope to a file: beside its place first, so that a full disk leaves no half of one."""
    path = Path(path)
    check_place(path, "a model", "model.safetensors")
    content = encode(model)
    with draft(path) as beside:
        beside.write_bytes(content)


def encode(model: eqx.Module) -> bytes:
    """The bytes of the file that `save` would write."""
    return safetensors.numpy.save(*_contents(model))


def load(path: str | os.PathLike[str]) -> Any:
    """The model of a file that `save` wrote."""
    with open(path, "rb") as file:  # that it cannot be opened is the system's message
        start = file.read(9)
    if start.startswith(_PICKLES) and not start.endswith(b"{"):  # the length of a header may begin like a pickle
        raise Refusal(
            f"{path} is a pickle or an archive of pickles, which may run code when it is read: model files must be "
            "safetensors written by genscope. Convert the weights where they were made, in PyTorch with "
            "safetensors.torch.save_file(model.state_dict(), 'model.safetensors'), and name your own class as "
            "package.module:function."
        )
    try:
        with safetensors.safe_open(path, framework="numpy") as opened:
            text = (opened.metadata() or {}).get(_ENTRY)
            tensors = {} if text is None else {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # no mapping
    except Exception as error:  # whatever the library makes of a broken file
        raise Refusal(
            f"{path} is not a complete safetensors file ({error}): genscope reads models that it wrote itself. "
            "Write it again, or download it again."
        ) from error
    if text is None:
        raise Refusal(
            f"{path} holds tensors, but no entry {_ENTRY!r} that names a class of genscope: another program wrote "
            "it. Name your own class as package.module:function, or look at its norms with genscope checkpoint."
        )
    try:
        with float64():  # so that arrays keep the precision of the file
            model = _rebuild(json.loads(text), "model", tensors)
        if tensors or not isinstance(model, eqx.Module):
            raise _Unfit(f"tensors that no field names: {', '.join(sorted(tensors)[:5])}")
    except (_Unfit, json.JSONDecodeError, RecursionError) as error:
        raise Refusal(
            f"{path} does not describe a model of this genscope ({error}): its classes are {', '.join(CLASSES)}. "
            "Read the file with the version that wrote it, or write it again."
        ) from error
    return model


def _contents(model: eqx.Module) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The tensors of a file, and its header."""
    tensors: dict[str, np.ndarray] = {}
    description = json.dumps(_describe(model, "model", tensors))
    return tensors, {_ENTRY: description}


def _describe(value: Any, path: str, tensors: dict[str, np.ndarray]) -> Any:
    """The JSON of a value; its arrays go to `tensors`."""
    if isinstance(value, jax.Array | np.ndarray):
        tensors[path] = np.asarray(value, order="C")  # the library writes memory as it lies
        return {"shape": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, tuple):
        return [_describe(part, f"{path}.{number}", tensors) for number, part in enumerate(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    for name, function in FUNCTIONS.items():
        if value is function:
            return {"function": name}
    for name, kind in CLASSES.items():
        if type(value) is kind:
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(kind)}  # pyright: ignore[reportArgumentType]  # an Equinox module is a dataclass
            given = {name: part for name, part in fields.items() if part is not _unnamed(kind).get(name, tensors)}
            return {"class": name} | {n: _describe(part, f"{path}.{n}", tensors) for n, part in given.items()}
    raise Refusal(
        f"a model file got {path} of type {type(value).__name__}: it can hold the classes {', '.join(CLASSES)} and the "
        f"functions {', '.join(FUNCTIONS)}. Add yours to the tables of genscope.models.file."
    )


def _rebuild(value: Any, path: str, tensors: dict[str, np.ndarray]) -> Any:
    """The value of a JSON; arrays are taken out of `tensors`."""
    if isinstance(value, list):
        return tuple(_rebuild(part, f"{path}.{number}", tensors) for number, part in enumerate(value))
    if not isinstance(value, dict):
        return value
    if value.keys() == {"shape", "dtype"}:
        tensor = tensors.pop(path, None)
        if tensor is None or [*tensor.shape] != value["shape"] or str(tensor.dtype) != value["dtype"]:
            raise _Unfit(f"{path} is not the array of {value['dtype']} {value['shape']} that is announced")
        return jnp.asarray(tensor)
    if value.keys() == {"function"}:
        return _known(FUNCTIONS, value["function"], path)
    kind = _known(CLASSES, value.get("class"), path)
    hints: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(kind)}
    if not {"class", *hints} - _unnamed(kind).keys() <= value.keys() <= {"class", *hints}:
        raise _Unfit(f"{path} has fields {', '.join(map(str, value))}, not those of its class: {', '.join(hints)}")
    given = {name: _rebuild(value[name], f"{path}.{name}", tensors) for name in hints if name in value}
    fields = _unnamed(kind) | given
    with jaxtyping.jaxtyped("context"):  # a letter stands for one size in all shapes of a class
        for name, hint in hints.items():
            value = fields[name]
            plain = isinstance(value, jax.Array) and typing.get_origin(hint) in (None, typing.Union, types.UnionType)
            if not (isinstance(value, hint) if plain else _fits(value, hint)):  # a call would be a scope of its own
                raise _Unfit(f"{path}.{name} is not {hint}")
    return _made(kind, fields)


def _unnamed(kind: type[eqx.Module]) -> dict[str, Any]:
    """Default functions that a file cannot name, such as softmax: it leaves out fields that have them."""
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}  # pyright: ignore[reportArgumentType]  # an Equinox module is a dataclass
    return {name: each for name, each in defaults.items() if callable(each) and each not in FUNCTIONS.values()}


def _made(kind: type[eqx.Module], fields: Mapping[str, Any]) -> eqx.Module:
    """An instance with these fields, as Equinox itself unflattens one: some classes draw theirs from a key."""
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    for base in kind.__mro__:
        if "__check_init__" in vars(base):
            vars(base)["__check_init__"](made)
    return made


def _known(table: Mapping[str, Any], name: Any, path: str) -> Any:
    if not isinstance(name, str) or name not in table:
        raise _Unfit(f"{path} names {name!r}")
    return table[name]


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has the annotated type and shape."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, argument) for argument in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(part, arguments[0]) for part in value)
    if hint in (int, float):
        return type(value) in (int, hint)  # a truth value is no number
    return callable(value) if origin is Callable else isinstance(value, hint)
