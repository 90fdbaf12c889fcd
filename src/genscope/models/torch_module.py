"""A module of PyTorch as a model of genscope: its arithmetic in JAX, its weights as a tree of arrays.

Source: torchax, which runs a module's own `forward` on JAX arrays; nothing else here knows it.
Departures: evaluation mode always (no dropout, stored statistics of batch normalization), on a copy, so that the
given module stays as it is. What is not trained (`requires_grad` is False, and buffers) is no weight: it travels as
its bits, because all of genscope takes floating point arrays for weights. Tied weights are one weight.
Guarantee: `TorchModel.check` compares with PyTorch itself at given inputs, to single precision, and refuses a module
whose outputs are not determined by its inputs; the commands call it before they measure.
"""

import contextlib
import copy
import logging
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from genscope.extras import need
from genscope.precision import float64
from genscope.refusal import Refusal

_INSIDE = "inside."  # before the names of a module that is wrapped
_AGREE = 1e-3  # of the largest output: single precision through a hundred layers stays below
_BITS = {np.dtype(np.float32): jnp.uint32, np.dtype(np.float64): jnp.uint64}


@jax.tree_util.register_pytree_with_keys_class
class TorchModel:
    """A module with its weights, by the names that PyTorch gives them; made by `from_torch`.

    It takes inputs by position or by name, one example or, by `outputs`, a batch of them.
    """

    takes_batches = True  # as modules do, and faster so

    def __init__(self, program: "_Program", weights: Mapping[str, Any], fixed: Mapping[str, Any]):
        """Of a program and its arrays."""
        self.program, self.weights, self.fixed = program, dict(weights), dict(fixed)

    def outputs(self, *inputs: Any, **named: Any) -> Float[Array, "size ..."]:
        """Outputs of a batch."""
        return self.program(self.weights, self.fixed, inputs, named)

    def __call__(self, *inputs: Any, **named: Any) -> Float[Array, "..."]:
        """The output of one example."""
        alone = jax.tree.map(lambda part: jnp.asarray(part)[None], (inputs, named))
        return self.outputs(*alone[0], **alone[1])[0]

    def __repr__(self) -> str:
        """The module's name and the number of its weights."""
        size = sum(math.prod(each.shape) for each in self.weights.values())
        return f"TorchModel({self.program.name}, {size:,} weights in {len(self.weights)} arrays)"

    def check(self, x: Shaped[np.ndarray, "size ..."] | Mapping[str, Shaped[np.ndarray, "size ..."]]) -> None:
        """Refuse a module that PyTorch itself cannot run on this batch, or that is not the same in JAX."""
        inputs, named = ((), x) if isinstance(x, Mapping) else ((x,), {})
        first, second = (self.program.eager(self.weights, inputs, named) for _ in range(2))
        if not np.isfinite(first).all():
            raise Refusal(
                f"{self.program.name} returns {first[~np.isfinite(first)][0]} in PyTorch for the first inputs: "
                "outputs must be finite. Check for buffers that are not finite, and for inputs the module was not "
                "made for."
            )
        if not np.array_equal(first, second):
            raise Refusal(
                f"{self.program.name} returned {_at(first, second)} and then {_at(second, first)} for the same "
                "input, in evaluation mode: curvature and certificates need a deterministic function. Remove "
                "randomness from forward, or make it an input."
            )
        found = self._compiled_outputs(inputs, named)
        scale = max(float(np.abs(first).max(initial=0)), 1e-6)
        if found.shape != first.shape or not np.abs(found - first).max(initial=0) <= _AGREE * scale:
            raise Refusal(
                f"{self.program.name} returns {_at(first, found)} in PyTorch and {_at(found, first)} in JAX for the "
                "same input: torchax gets some part of it wrong. Write that part with other operations, and please "
                "report it."
            )

    def _compiled_outputs(self, inputs: Any, named: Any) -> np.ndarray:
        """As curvature and training see it: traced once, for all values of weights and inputs."""
        run = jax.jit(lambda weights, given: self.program(weights, self.fixed, *given))
        try:
            with float64() if self.program.number is np.float64 else contextlib.nullcontext():
                return np.asarray(run(self.weights, (inputs, named)))
        except Exception as error:  # torchax and JAX have many ways to say it
            reason = next(iter(str(error).splitlines()), "")
            raise Refusal(
                f"{self.program.name} runs in PyTorch but not in JAX ({type(error).__name__}: {reason}): its "
                "forward must consist of PyTorch tensor operations, without NumPy and without branches on values. "
                "Rewrite it, and please report PyTorch operations that are missing."
            ) from error

    def tree_flatten_with_keys(self) -> Any:
        """Weights first, each under its name."""
        named = [*self.weights.items(), *self.fixed.items()]
        keys = [(jax.tree_util.DictKey(name), value) for name, value in named]
        return keys, (self.program, tuple(self.weights), tuple(self.fixed))

    @classmethod
    def tree_unflatten(cls, structure: Any, leaves: Any) -> "TorchModel":
        """The model with these arrays."""
        program, weights, fixed = structure
        leaves = list(leaves)
        return cls(
            program,
            dict(zip(weights, leaves[: len(weights)], strict=True)),
            dict(zip(fixed, leaves[len(weights) :], strict=True)),
        )


def from_torch(module: Any, *, output: str | int | None = None) -> TorchModel:
    """A `torch.nn.Module` as a model; `output` picks one of several outputs, by its name or place.

    Without it, the one called `logits` is taken. Weights are the parameters that require a gradient; a module without
    any can be probed, and nothing else.
    """
    need("torch", given=f"got a {type(module).__name__} for PyTorch")
    import torch  # pyright: ignore[reportMissingImports]  # an extra
    import torchax  # pyright: ignore[reportMissingImports]  # an extra

    if not isinstance(module, torch.nn.Module):
        raise Refusal(
            f"from_torch got a {type(module).__name__}: it takes a torch.nn.Module. Give the module itself, with "
            "its weights loaded."
        )
    module = getattr(module, "_orig_mod", module)  # what torch.compile was given
    _check(module, torch)
    picked = _picked(copy.deepcopy(module), output, torch).eval()
    for each in picked.modules():
        if getattr(each, "num_batches_tracked", None) is not None:
            each.num_batches_tracked.zero_()  # without effect in evaluation mode: models that differ in it are the same
    double = any(each.dtype == torch.float64 for each in picked.parameters())
    with float64() if double else contextlib.nullcontext():
        with warnings.catch_warnings(), _quiet("transformers"):
            warnings.simplefilter("ignore")  # torchax asks for every attribute, and some are deprecated
            states, function = torchax.extract_jax(picked)
        trained = {name for name, each in picked.named_parameters(remove_duplicate=False) if each.requires_grad}
        fixed = {name: value for name, value in states.items() if name not in trained}
        kinds = {name: np.dtype(value.dtype) for name, value in fixed.items() if np.dtype(value.dtype) in _BITS}
        for name, kind in kinds.items():
            fixed[name] = jax.lax.bitcast_convert_type(fixed[name], _BITS[kind])
    weights = {name.removeprefix(_INSIDE): states[name] for name in states if name in trained}
    program = _Program(type(module).__name__, picked, function, kinds, np.float64 if double else np.float32)
    return TorchModel(program, weights, fixed)


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Where nothing but errors of this package is logged."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _check(module: Any, torch: Any) -> None:
    """Refuse what has no derivatives here."""
    name, weights = type(module).__name__, dict(module.named_parameters())
    for each in module.modules():
        if isinstance(each, torch.jit.ScriptModule) or torch.nn.utils.parametrize.is_parametrized(each):
            raise Refusal(
                f"from_torch got {name}, with a part that is scripted or has parametrized weights, a "
                f"{type(each).__name__}: only a forward of plain tensor operations on the module's own weights can "
                "run in JAX. Give the module as it was before torch.jit, or call "
                "torch.nn.utils.parametrize.remove_parametrizations."
            )
    for path, each in {**weights, **dict(module.named_buffers())}.items():
        if each.device.type != "cpu":
            raise Refusal(
                f"from_torch got {name}, whose {path} is on the device {each.device}: weights must be in main "
                "memory. Move the module with module.to('cpu')."
            )
        if isinstance(each, torch.nn.parameter.UninitializedTensorMixin):
            raise Refusal(
                f"from_torch got {name}, whose {path} has no shape yet: a lazy module creates its weights when it "
                "sees its first batch. Call it once on a batch."
            )
        real = each.is_floating_point() or each.is_complex()
        if real and each.dtype not in (torch.float32, torch.float64):
            raise Refusal(
                f"from_torch got {name}, whose {path} is of type {each.dtype}: weights must be real and at least "
                "single precision. Convert the module with module.float(), or split complex weights."
            )
        if each.is_floating_point() and path in weights and not bool(torch.isfinite(each).all()):
            raise Refusal(
                f"from_torch got {name}, whose {path} holds numbers that are not finite: training diverged, or "
                "weights were not loaded. Give a module with finite weights."
            )


def _picked(module: Any, output: str | int | None, torch: Any) -> Any:
    """The module with one tensor for its output."""

    class Picked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = module

        def forward(self, *inputs: Any, **named: Any) -> Any:
            return _pick(self.inside(*inputs, **named), output, type(module).__name__, torch)

    return Picked()


def _pick(found: Any, output: str | int | None, name: str, torch: Any) -> Any:
    if output is None and isinstance(found, torch.Tensor):
        return found
    names = list(found) if isinstance(found, Mapping) else [str(each) for each in getattr(found, "_fields", ())]
    wanted = "logits" if output is None and "logits" in names else output
    places = tuple(found.values()) if isinstance(found, Mapping) else found
    several = isinstance(places, tuple | list)
    if isinstance(wanted, str) and wanted in names:
        chosen = places[names.index(wanted)]  # pyright: ignore[reportIndexIssue]
    elif isinstance(wanted, int) and several and -len(places) <= wanted < len(places):
        chosen = places[wanted]
    else:
        chosen = None
    if not isinstance(chosen, torch.Tensor):
        what = f"a {type(found).__name__}" + (f" of {len(places)} outputs" if several else "")
        known = f", {', '.join(names)}" if names else ""
        raise Refusal(
            f"{name} returns {what}{known}, and "
            f"{'none is chosen' if output is None else f'output {output!r} is asked for'}: a model must return one "
            "tensor. Choose it by name or index, as in genscope.from_torch(module, "
            f"output={repr(names[0]) if names else 0})."
        )
    return chosen


class _Program:
    """A module without its weights, as a function of them; equal to itself alone."""

    def __init__(self, name: str, picked: Any, function: Any, kinds: Mapping[str, np.dtype], number: Any):
        self.name, self._picked, self._function, self._kinds, self.number = name, picked, function, kinds, number

    def __call__(self, weights: Mapping[str, Any], fixed: Mapping[str, Any], inputs: Any, named: Any) -> Array:
        """Outputs of a batch, in JAX."""
        states = {_INSIDE + name: value for name, value in weights.items()}
        for name, value in fixed.items():
            kind = self._kinds.get(name)
            states[name] = value if kind is None else jax.lax.bitcast_convert_type(value, kind)
        arrays = jax.tree.map(jnp.asarray, (inputs, dict(named)))
        # PyTorch promotes types and ranks, whatever JAX is told to do.
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return self._function(states, *arrays)

    def eager(self, weights: Mapping[str, Any], inputs: Any, named: Any) -> np.ndarray:
        """Outputs of a batch, in PyTorch; weights may have been trained here."""
        import torch  # pyright: ignore[reportMissingImports]  # an extra

        def tensor(part: Any) -> Any:
            array = np.asarray(part)
            return torch.tensor(array.astype(self.number) if array.dtype.kind == "f" else array)

        given = jax.tree.map(tensor, (inputs, dict(named)))
        try:
            with torch.no_grad():
                states = {_INSIDE + name: torch.tensor(np.asarray(value)) for name, value in weights.items()}
                return torch.func.functional_call(self._picked, states, *given).numpy()
        except Refusal:
            raise
        except Exception as error:  # whatever the module makes of an input that it is not made for
            several = [*map(_described, given[0]), *(f"{name} {_described(part)}" for name, part in given[1].items())]
            reason = next(iter(str(error).splitlines()), "")
            raise Refusal(
                f"{self.name} failed on inputs of shape {', '.join(several)} "
                f"({type(error).__name__}: {reason}): each row must "
                "be one input of the module, token ids must be in its vocabulary, and several inputs must be named "
                "like its arguments. Give them in the shape and type that it takes."
            ) from error


def _described(part: Any) -> str:
    """Shape and type of one input, and the range of token ids."""
    told = f"{tuple(part.shape[1:])} and type {part.dtype}"
    return f"{told} from {part.min()} to {part.max()}" if np.asarray(part).dtype.kind in "iu" else told


def _at(found: np.ndarray, other: np.ndarray) -> str:
    """The number in which two arrays differ most, or their shape."""
    if found.shape != other.shape:
        return f"shape {found.shape}"
    return f"{found.reshape(-1)[np.argmax(np.abs(found - other))]:.6g}"
