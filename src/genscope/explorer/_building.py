"""Constructions as the page shows them: built once, kept for the questions that follow, in plain numbers.

Imported at the first question, since it brings JAX with it.

Source: edelman2022, Section 5; lintilhac2026, Appendix B.
Guarantee: that of `constructions`; the keys are those of `genscope construct --seed 0`, and so are the numbers.
"""

import functools
import math
import shlex
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Bool, Float

from genscope.constructions import (
    Construction,
    FourierConstruction,
    SparseFunction,
    Verification,
    construct,
    fourier_components,
    verify,
    verify_fourier,
    weight_norms,
)
from genscope.explorer import question_queue
from genscope.explorer.construction_room import FOURIER, Wanted
from genscope.fourier.spectrum import from_expression
from genscope.fourier.walsh import WalshFunction
from genscope.lab.execution.cache import use_compilation_cache
from genscope.models.encoding import Coordinates
from genscope.models.file import encode
from genscope.precision import float64
from genscope.random import stream
from genscope.refusal import Refusal

LARGEST_WEIGHT = 20_000  # entries of a matrix that is sent to the page
KEPT = 8  # constructions

use_compilation_cache()


@dataclass(frozen=True)
class Built:
    """A construction, verified, with what a page says of it."""

    model: Any
    function: SparseFunction | WalshFunction
    facts: dict[str, Any]


@functools.lru_cache(KEPT)
def build(wanted: Wanted) -> Built:
    """Weights for an expression, verified."""
    return _fourier(wanted) if wanted.network in FOURIER else _sparse(wanted)


def attend(wanted: Wanted, bits: Bool[np.ndarray, " T"]) -> dict[str, Any]:
    """What the network does with one input: attention, output, and the value that it should have."""
    built = build(wanted)
    question_queue.check()
    with float64():
        seen = _activations(built.model, jnp.asarray(bits))
    positions = [f"x{j}" for j in range(wanted.context_length)]
    attention = np.asarray(seen.attention, float)
    found: dict[str, Any] = {"output": float(seen.output)}
    if isinstance(built.function, SparseFunction):
        found["target"] = float(
            built.function.values[int(bits[list(built.function.support)] @ _powers(built.function))]
        )
        found["maps"] = [_map("Attention of CLS", ["CLS"], [*positions, "CLS"][: attention.shape[1]], attention)]
        return found
    found["target"] = float(built.function(bits))
    places = [*positions, "out"]
    selection = np.asarray(seen.selection, float)
    heads = [f"head {sign}" for sign in ("+", "−")][: len(selection)] if len(selection) > 1 else ["head"]
    found["maps"] = [
        _map("First attention: row by row, the bits of a component", places, places, attention),
        _map("Second attention: the components, at the output position", heads, places, selection),
    ]
    return found


def file(wanted: Wanted) -> bytes:
    """The model as a safetensors file."""
    built = build(wanted)
    if not built.facts["verified"]:
        raise Refusal(
            f"the weights for {wanted.expression} do not compute it, and a model that fails verification is not "
            "saved. Choose another network."
        )
    return encode(built.model)


def _sparse(wanted: Wanted) -> Built:
    key = jr.key(0)
    function = SparseFunction.parse(wanted.expression, context_length=wanted.context_length)
    # The network's name was checked when the question was read, so it is one of the literals.
    built = construct(function, encoding=wanted.network, key=stream(key, "vectors"))  # pyright: ignore[reportArgumentType]
    question_queue.check()
    verdict = verify(built, function, key=stream(key, "inputs"))
    measured = {name: norm for name, norm in weight_norms(built.model).items() if norm is not None}
    norms = [
        {"name": name, "measured": norm, "promised": built.norms.get(name), "order": built.orders.get(name)}
        for name, norm in measured.items()
    ]
    head, encoding = built.model.heads.heads[0], built.model.encoding
    specials = ["CLS", "bit 0", "bit 1"][: encoding.specials]
    axes = [*specials, *(f"x{j}" for j in range(wanted.context_length))]
    rows = axes if isinstance(encoding.vectors, Coordinates) else []
    weights = [_weight("W_Q", head.w_q, rows), _weight("W_K", head.w_k, rows), _weight("W_V", head.w_v, rows)]
    weights += [_weight("W_C", head.w_c)]
    weights += [_weight(f"W_{i}", layer.weight) for i, layer in enumerate(built.model.readout.hidden, start=1)]
    weights += [_weight("w", built.model.readout.w)]
    command = f"genscope construct {shlex.quote(wanted.expression)} --context-length {wanted.context_length}"
    sharpness = {"gamma": built.gamma, "needed": built.needed if math.isfinite(built.needed) else None}
    facts = _facts(built, verdict, norms, weights) | sharpness
    facts |= {"support": list(function.support), "command": f"{command} --encoding {wanted.network}"}
    return Built(built.model, function, facts)


def _fourier(wanted: Wanted) -> Built:
    key = jr.key(0)
    function = from_expression(wanted.expression, wanted.context_length).to_phi()
    # As above: one of the literals.
    built = fourier_components(function, variant=wanted.network, key=stream(key, "trace"))  # pyright: ignore[reportArgumentType]
    question_queue.check()
    verdict = verify_fourier(built, key=stream(key, "inputs"))
    model = built.model
    parts = {"A": model.score, "K": model.key, "V": model.value, "E": model.expand, "b": model.threshold}
    parts |= {"F": model.contract, "W2": model.select, "w": model.readout}
    parts |= {} if model.bias is None else {"b0": model.bias}
    norms = [
        {
            "name": name,
            "measured": float(np.linalg.norm(np.asarray(part, float))),
            "promised": math.sqrt(built.norm_squared[name]),
            "order": None,
        }
        for name, part in parts.items()
    ]
    places = [*(f"x{j}" for j in range(wanted.context_length)), "out", "bit"]
    weights = [
        _weight(
            name, np.asarray(part, float).reshape(-1, np.shape(part)[-1]), places if name in ("A", "K", "V") else []
        )
        for name, part in parts.items()
        if np.ndim(part)
    ]
    terms = zip((*function.supports, ()), (*function.coefficients, function.constant), strict=True)
    components = ";".join(f"{','.join(map(str, support))}:{value!r}" for support, value in terms if value)
    facts = _facts(built, verdict, norms, weights)
    facts |= {"trace": built.trace, "trace_sem": built.trace_sem, "parameters": built.parameters}
    facts |= {"support": list(function.relevant), "components": function.sparsity}
    facts["command"] = (
        f"genscope construct fourier --components {shlex.quote(components)} --context-length {wanted.context_length} "
        f"--variant {wanted.network}"
    )
    return Built(model, function, facts)


def _facts(
    built: Construction | FourierConstruction, verdict: Verification, norms: list[Any], weights: list[Any]
) -> dict[str, Any]:
    return {
        "source": built.source,
        "exact": verdict.exact,
        "verified": verdict.verified,
        "max_error": verdict.max_error,
        "promised_error": built.error,
        "inputs_checked": verdict.inputs_checked,
        "exhaustive": verdict.exhaustive,
        "norms": norms,
        "weights": weights,
    }


@eqx.filter_jit
def _activations(model: Any, bits: Any) -> Any:
    return model.activations(bits)


def _powers(function: SparseFunction) -> np.ndarray:
    return 1 << np.arange(function.support_size)


def _map(title: str, rows: list[str], columns: list[str], values: Float[np.ndarray, "rows columns"]) -> dict[str, Any]:
    return {"title": title, "rows": rows, "columns": columns, "values": values.tolist()}


def _weight(name: str, weight: Any, rows: list[str] | None = None) -> dict[str, Any]:
    """A matrix for a heat map, its rows labeled where they have names; a tall one lies down."""
    matrix = np.atleast_2d(np.asarray(weight, float))
    shape = list(np.shape(weight))
    lying = matrix.shape[0] > 2 * matrix.shape[1]
    shown = matrix.T if lying else matrix
    return {
        "name": name,
        "shape": shape,
        "transposed": lying,
        "labels": rows or None,
        "values": shown.tolist() if shown.size <= LARGEST_WEIGHT else None,
    }
