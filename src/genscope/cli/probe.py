"""`genscope probe`: degree, spectral sparsity, relevant bits and Fourier components of a function, by asking it.

Source: lintilhac2026, Appendix H.
Guarantee: that of `genscope.probe`, which the command prints in words.
"""

import inspect
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from genscope.cli._options import SEEDS, AsJson
from genscope.cli._user_code import imported, is_reference, users_code
from genscope.refusal import Refusal

_EVERY_SECONDS = 10.0
_SHOWN = 30  # components in the table for people
_BATCHES = (64, 1024, 16384)  # inputs of a model at once: one program is compiled for each
_FILES = (".safetensors", ".pt", ".pth", ".bin", ".pkl", ".npz", ".ckpt")


class Inputs(StrEnum):
    """What the user's function gets."""

    integers = "integers"
    booleans = "booleans"
    signs = "signs"


class Values(StrEnum):
    """What an expression is worth."""

    bits = "bits"
    signs = "signs"


def probe(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="Boolean expression; module:name or file.py:name of a function or model; a model file.",
        ),
    ],
    bits: Annotated[int, typer.Option("--bits", metavar="T", help="Number of bits.")],
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="P", help="Confidence of answers that are not exact.")
    ] = 0.99,
    queries: Annotated[
        int | None, typer.Option("--queries", metavar="N", help="Inputs that may be asked. Default: 2,097,152.")
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", metavar="E", help="Share of the function's energy (its variance) that may be left out."
        ),
    ] = 0.0,
    inputs: Annotated[
        Inputs, typer.Option("--inputs", help="What your function gets for the bits 0 and 1; signs are 1 and -1.")
    ] = Inputs.integers,
    values: Annotated[
        Values, typer.Option("--values", help="An expression is worth 0 or 1, or the signs 1 and -1 of these.")
    ] = Values.bits,
    seed: Annotated[int, typer.Option("--seed", metavar="K", help="Seed of the queries.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Find out which function of T bits a black box computes, with a stated confidence.

    Your function takes a batch [n, T] or one input [T] and returns a number for each.

    Example: genscope probe my_code:classify --bits 40
    """
    if not 0 <= seed < SEEDS:
        raise Refusal(f"probe got --seed {seed}: it lies between 0 and {SEEDS - 1}. Choose such a number.")
    own = is_reference(target)
    function = _own(target, bits) if own else _read(target, bits)
    if values is Values.signs and (own or Path(target).is_file()):
        raise Refusal(
            f"probe got --values signs for {target}: it changes what an expression is worth. Let a function return "
            "signs itself."
        )
    from genscope import probe as probes
    from genscope.cli._output import print_json

    with users_code(target):
        found = probes.probe(
            _told(function) if own else function,
            bits,
            confidence=confidence,
            queries=queries,
            tolerance=tolerance,
            inputs=inputs.value,
            seed=seed,
        )
    facts = _facts(found, signed=values is Values.signs)
    print_json(facts) if as_json else _print_findings(target, bits, facts)


def _read(target: str, bits: int) -> Callable[..., Any]:
    """The function of an expression or of a model file."""
    if Path(target).is_file() or target.endswith(_FILES):
        from genscope.cli._jax import prepare_jax

        prepare_jax()
        from genscope.models.file import load

        return _told(_outputs(load(target), bits, target))
    from genscope.fourier import parse

    return parse(target, max(bits, 1))


def _own(target: str, bits: int) -> Callable[..., Any]:
    """The user's function of bits; or the outputs of the user's model, if a model, its class or its maker is named."""
    found = imported(target)
    if not isinstance(found, type) and _asks_for_inputs(found):
        return found
    from genscope.cli._jax import prepare_jax
    from genscope.cli._model_data import made

    prepare_jax()
    return _outputs(made(found, target), bits, target)


def _asks_for_inputs(found: Any) -> bool:
    """Whether it is a plain function with an argument that must be given."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return True
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = any(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters)
    several = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
    return (needed or several) and not _has_weights(found)


def _has_weights(found: Any) -> bool:
    if inspect.isroutine(found):
        return False
    from genscope.cli._model_data import is_model

    return is_model(found)


def _outputs(model: Any, bits: int, path: str) -> Callable[..., Any]:
    """A model as a function of batches, compiled for a few sizes."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np

    from genscope.models import TorchModel, outputs
    from genscope.models.bit_transformer import BitTransformer
    from genscope.precision import float64

    whole = isinstance(model, BitTransformer | TorchModel)
    with float64():  # arrays keep the precision of the file
        try:
            shape = eqx.filter_eval_shape(model, jax.ShapeDtypeStruct((bits,), bool)).shape
        except Exception as error:
            raise Refusal(
                f"{path} holds a {type(model).__name__}, which does not take {bits} bits: probe asks models "
                "whose input is T bits. Correct --bits, or write a function that makes its inputs of bits."
            ) from error
        if shape != ():
            raise Refusal(
                f"{path} holds a {type(model).__name__} with outputs of shape {shape}: probe asks for one number. "
                "Write a function that chooses one of the outputs."
            )

    @eqx.filter_jit
    def run(model: Any, x: jax.Array) -> jax.Array:
        return outputs(model, x) if whole else jax.vmap(model)(x)

    def ask(x: np.ndarray) -> np.ndarray:
        size = next(size for size in _BATCHES if size >= len(x))
        padded = np.concatenate([x, np.zeros((size - len(x), bits), x.dtype)]) == 1
        with float64():
            return np.asarray(run(model, jnp.asarray(padded)))[: len(x)]

    return ask


def _told(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a line now and then on standard error for those who wait long."""
    import numpy as np

    start = last = time.monotonic()
    asked = 0

    def ask(x: np.ndarray) -> Any:
        nonlocal asked, last
        answer = function(x)
        asked += len(x) if x.ndim == 2 else 1
        now = time.monotonic()
        if now >= last + _EVERY_SECONDS:
            typer.echo(f"{asked} queries, {asked / (now - start):.0f} per second", err=True)
            last = now
        return answer

    return ask


def _facts(found: Any, *, signed: bool) -> dict[str, Any]:
    scale, shift = (-2.0, 1.0) if signed else (1.0, 0.0)
    function = found.function
    components = [
        {"support": list(support), "coefficient": scale * coefficient}
        for support, coefficient in zip(function.supports, function.coefficients, strict=True)
    ]
    constant = shift + scale * function.constant
    components += [{"support": [], "coefficient": constant}] if constant else []
    return {
        "degree": found.degree,
        "sparsity": found.sparsity,
        "relevant": list(found.relevant),
        "components": sorted(components, key=lambda c: (-abs(c["coefficient"]), c["support"])),
        "queries": found.queries,
        "seconds": found.seconds,
        "confidence": found.confidence,
        "exact": found.exact,
        "degree_at_least": found.degree_at_least,
        "sparsity_at_least": found.sparsity_at_least,
        "left_out": found.left_out,
        "guarantee": found.guarantee,
    }


def _print_findings(target: str, bits: int, facts: dict[str, Any]) -> None:
    from genscope.cli._output import print_table

    def known(name: str) -> str:
        return f"at least {facts[f'{name}_at_least']}" if facts[name] is None else str(facts[name])

    relevant = ", ".join(f"x{i}" for i in facts["relevant"][:_SHOWN]) or "none"
    more = f" and {len(facts['relevant']) - _SHOWN} more" if len(facts["relevant"]) > _SHOWN else ""
    typer.echo(f"{target} on {bits} bits")
    typer.echo(f"degree {known('degree')}, sparsity {known('sparsity')} (the constant is not counted)")
    typer.echo(f"relevant bits: {relevant}{more}")
    typer.echo(facts["guarantee"])
    typer.echo(f"{facts['queries']} queries, {facts['seconds']:.2g} s\n")
    shown = facts["components"][:_SHOWN]
    of = f", the largest {_SHOWN} of {len(facts['components'])}" if len(facts["components"]) > _SHOWN else ""
    print_table(
        f"Fourier components{of}",
        ["coefficient", "of the parity of"],
        [
            [f"{each['coefficient']:.9g}", ", ".join(f"x{i}" for i in each["support"]) or "nothing (the constant)"]
            for each in shown
        ],
    )
