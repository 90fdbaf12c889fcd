"""`genscope probe`: degree, spectral sparsity, relevant bits and Fourier components of a function, by asking it.

Source: lintilhac2026, Appendix H.
Guarantee: that of `genscope.probe`, which the command prints in words.
"""

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from genscope.cli._options import SEEDS, AsJson
from genscope.cli._user_code import imported, is_reference, users_code
from genscope.refusal import Refusal

_EVERY_SECONDS = 10.0
_SHOWN = 30  # components in the table for people
_BATCHES = (64, 1024, 16384)  # inputs of a model at once: one program is compiled for each
_PROMPTS = (32, 256)  # the same of prompts, which are longer
_FILES = (".safetensors", ".pt", ".pth", ".bin", ".pkl", ".npz", ".ckpt")


Inputs = Literal["integers", "booleans", "signs"]
Values = Literal["bits", "signs"]


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
        int | None, typer.Option("--queries", metavar="N", help="Maximum number of queries. Default: 2,097,152.")
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", metavar="E", help="Share of the function's energy (its variance) that may be left out."
        ),
    ] = 0.0,
    inputs: Annotated[
        Inputs, typer.Option("--inputs", help="What your function gets for the bits 0 and 1; signs are 1 and -1.")
    ] = "integers",
    values: Annotated[
        Values, typer.Option("--values", help="Values of an expression: bits 0 and 1, or signs 1 and -1.")
    ] = "bits",
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="FILE",
            help="Prompts in place of bits: JSON with two prompts, lists zero and one of token ids or pieces of text, "
            "which differ in T places; or file.py:name of a function of a batch of bits.",
        ),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option("--answer", metavar="A,B", help="Logit A minus logit B, at the last token if there are several."),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            "--sample",
            metavar="FILE",
            help="Bits x from a distribution of your own (.npz or .safetensors): report how much the components leave "
            "out on it.",
        ),
    ] = None,
    published: Annotated[
        float | None,
        typer.Option(
            "--published",
            metavar="E",
            help="Also run the testers of LS26, Appendix H, with the proximity parameter E.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="K", help="Seed of the queries.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Find out which function of T bits a black box computes, with a stated confidence.

    Your function takes a batch [n, T] or one input [T] and returns a number for each. With a template, it takes a
    batch of prompts.

    Example: genscope probe my_code:classify --bits 40
    """
    if not 0 <= seed < SEEDS:
        raise Refusal(f"probe got --seed {seed}: it must be between 0 and {SEEDS - 1}. Change it.")
    if published is not None and not 1e-9 <= published < 1:
        raise Refusal(
            f"probe got --published {published:g}: the proximity parameter must be from 1e-9 to below 1. "
            "Give, for example, 0.01."
        )
    own = is_reference(target)
    if not own and not Path(target).is_file() and (template or answer):
        raise Refusal(
            f"probe got --template or --answer for {target}: these options are for a model or function of your own, "
            "named module:name or file.py:name. Name one, or leave them out."
        )
    if template and inputs != "integers":
        raise Refusal(
            f"probe got --inputs {inputs} with --template: a template turns the integers 0 and 1 into prompts. "
            "Leave --inputs out."
        )
    prompts = _Prompts(template, _pair(answer), bits)
    function = _own(target, prompts) if own else _read(target, prompts)
    signed = values == "signs"
    if signed and (own or Path(target).is_file()):
        raise Refusal(
            f"probe got --values signs for {target}: the option only applies to expressions. Leave it out, and let "
            "your function return signs itself."
        )
    from genscope import probe as probes
    from genscope.cli._output import print_json

    with users_code(target):
        found = probes.probe(
            _with_progress(function) if own else function,
            bits,
            confidence=confidence,
            queries=queries,
            tolerance=tolerance,
            inputs=inputs,
            seed=seed,
        )
        seen = None if sample is None else _at_sample(sample, function, found, bits, inputs, signed=signed)
        options = {"confidence": confidence, "queries": queries, "inputs": inputs, "seed": seed}
        theirs = None if published is None else _published(function, bits, published, **options)
    facts = _facts(found, signed=signed) | {"law": prompts.law, "sample": seen, "published": theirs}
    print_json(facts) if as_json else _print_findings(target, bits, facts)


class _Prompts:
    """What becomes of bits before a model or a function sees them, and of what it answers."""

    def __init__(self, template: str | None, answer: tuple[int, int] | None, bits: int):
        self.bits, self.given, self._answer, self._make = bits, template, answer, None
        if template is None:
            return
        from genscope.probe.prompts import Template

        self._make = imported(template) if is_reference(template) else Template.read(Path(template))

    @property
    def plain(self) -> bool:
        """Whether bits and answers stay as they are."""
        return self._make is None and self._answer is None

    @property
    def law(self) -> str:
        """Under which the components are those of the function."""
        if self.given is None:
            return f"uniform over the 2^{self.bits} inputs"
        return f"uniform over the 2^{self.bits} prompts of {self.given}, whichever of them people would write"

    def made(self, x: Any) -> Any:
        """Prompts of a batch of bits: an array, several by name, or texts."""
        if self._make is None:
            return x
        import numpy as np

        found: Any = self._make(x)
        if isinstance(found, dict):
            found = {name: np.asarray(part) for name, part in found.items()}
        elif isinstance(found, list) and not any(isinstance(each, str) for each in found):  # lists of token ids
            found = np.asarray(found)
        sizes = {len(part) for part in (found.values() if isinstance(found, dict) else [found])}
        if sizes != {len(x)}:
            raise Refusal(
                f"{self.given} returned {', '.join(map(str, sorted(sizes)))} prompts for {len(x)} rows of bits: for "
                "a batch [n, T] it must return n prompts, as an array, several named arrays, or a list of texts. "
                "Correct the function."
            )
        return found

    def answered(self, outputs: Any) -> Any:
        """One number for each prompt, if two logits are chosen; else what the model gives."""
        if self._answer is None:
            return outputs
        from genscope.probe.prompts import logit_difference

        return logit_difference(outputs, *self._answer)


def _pair(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        first, second = map(int, text.split(","))
    except ValueError:
        raise Refusal(
            f"probe got --answer {text}: it must be the indices of two logits, the first minus the second. Write, "
            "for example, --answer 1,0."
        ) from None
    return first, second


def _read(target: str, prompts: _Prompts) -> Callable[..., Any]:
    """The function of an expression or of a model file."""
    if Path(target).is_file() or target.endswith(_FILES):
        from genscope.cli._jax import prepare_jax

        prepare_jax()
        from genscope.models.file import load

        return _with_progress(_outputs(load(target), prompts, target))
    from genscope.fourier import parse

    return parse(target, max(prompts.bits, 1))


def _own(target: str, prompts: _Prompts) -> Callable[..., Any]:
    """The user's function of bits; or the outputs of the user's model, if a model, its class or its maker is named."""
    found = imported(target)
    if not isinstance(found, type) and _asks_for_inputs(found):
        if prompts.plain:
            return found
        with users_code(target):
            return _of_prompts(found, prompts)
    from genscope.cli._jax import prepare_jax
    from genscope.cli._model_data import made

    prepare_jax()
    return _outputs(made(found, target), prompts, target)


def _of_prompts(function: Callable[..., Any], prompts: _Prompts) -> Callable[..., Any]:
    """The user's function of a batch of prompts as one of a batch of bits."""
    import numpy as np

    def ask(x: np.ndarray) -> np.ndarray:
        found = prompts.made(x)
        outputs = function(**found) if isinstance(found, dict) else function(found)
        return np.asarray(prompts.answered(np.asarray(outputs)))

    ask(np.zeros((2, prompts.bits), np.int64))  # a mistake shows here, before inputs are tried one by one
    return ask


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


def _outputs(model: Any, prompts: _Prompts, path: str) -> Callable[..., Any]:
    """A model as a function of batches, compiled for a few sizes."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np

    from genscope.models import TorchModel, outputs
    from genscope.models.bit_transformer import BitTransformer
    from genscope.precision import float64

    name = model.program.name if isinstance(model, TorchModel) else type(model).__name__
    whole = isinstance(model, BitTransformer | TorchModel) or prompts.given is not None

    def given(x: np.ndarray) -> Any:
        if prompts.given is None:  # PyTorch reads bits as numbers, as in `learn`
            return x.astype(model.program.number) if isinstance(model, TorchModel) else x == 1
        made = prompts.made(x)
        if isinstance(made, list):
            raise Refusal(
                f"{prompts.given} makes texts, but the model in {path} takes token ids. Use lists of ids, or name a "
                "function that takes texts and queries the model."
            )
        return made

    def values(model: Any, x: Any) -> jax.Array:
        return outputs(model, x) if whole else jax.vmap(model)(x)

    with users_code(prompts.given or path):
        first = given(np.zeros((2, prompts.bits), np.int64))
    with float64():  # arrays keep the precision of the file
        if isinstance(model, TorchModel):
            model.check(first)
        try:
            found = eqx.filter_eval_shape(values, model, jax.tree.map(jnp.asarray, first))
        except Exception as error:
            raise Refusal(
                f"{path} holds a {name}, which does not take {prompts.bits} bits: probe queries models whose input "
                "is T bits. Correct --bits, or name a function or a --template that turns bits into its inputs."
            ) from error
        shape = jax.eval_shape(prompts.answered, found).shape
        if shape != (2,):
            raise Refusal(
                f"{path} holds a {name} with outputs of shape {shape[1:]}: probe needs one number. Choose the "
                "difference of two logits, as in --answer 1,0, or name a function that picks one output."
            )

    run = eqx.filter_jit(lambda model, x: prompts.answered(values(model, x)))
    sizes = _BATCHES if prompts.given is None else _PROMPTS

    def ask(x: np.ndarray) -> np.ndarray:
        found = []
        for start in range(0, len(x), sizes[-1]):
            part = x[start : start + sizes[-1]]
            size = next(size for size in sizes if size >= len(part))
            padded = np.concatenate([part, np.zeros((size - len(part), prompts.bits), x.dtype)])
            with float64():
                found.append(np.asarray(run(model, jax.tree.map(jnp.asarray, given(padded))))[: len(part)])
        return np.concatenate(found)

    return ask


def _at_sample(
    path: Path, function: Callable[..., Any], found: Any, bits: int, inputs: Inputs, *, signed: bool
) -> dict[str, Any]:
    """How far the components are from the function at the user's own inputs."""
    import numpy as np

    from genscope.cli._arrays import read_arrays
    from genscope.fourier import Expression
    from genscope.probe import Oracle

    x = read_arrays(path).get("x")
    if x is None or x.shape[1:] != (bits,) or len(x) < 2 or not np.isin(x, (0, 1)).all():
        what = "no array x" if x is None else f"x of shape {x.shape}"
        raise Refusal(
            f"{path} holds {what} for --bits {bits}: a sample must be an array x of at least two rows of T bits, 0 "
            "or 1. Write it with numpy.savez('sample.npz', x=x)."
        )
    rows = np.asarray(x) == 1
    kind = "booleans" if isinstance(function, Expression) else inputs
    values = Oracle(function, bits, limit=len(rows) + 8, inputs=kind)(rows)
    errors = values - found.function(rows)
    square, variance = float(np.mean(errors**2)), float(np.var(values))
    return {
        "file": str(path),
        "inputs": len(rows),
        "left_out": square / variance if variance else None,
        "largest_error": (2 if signed else 1) * float(np.abs(errors).max()),  # signs are 1 - 2 bits
    }


def _published(
    function: Callable[..., Any],
    bits: int,
    proximity: float,
    *,
    confidence: float,
    queries: int | None,
    inputs: Inputs,
    seed: int,
) -> dict[str, Any]:
    """What Appendix H's testers say, with each reading of its degree test; each may ask as much as ours."""
    import numpy as np

    from genscope import probe as probes
    from genscope.fourier import Expression
    from genscope.probe.oracle import LIMIT

    def asked(number: int) -> dict[str, Any]:
        kind = "booleans" if isinstance(function, Expression) else inputs
        oracle = probes.Oracle(function, bits, limit=queries or LIMIT, inputs=kind)
        rng = np.random.default_rng([seed, number])
        return {"oracle": oracle, "rng": rng, "proximity": proximity, "confidence": confidence}

    found = {
        "degree": probes.published_degree(**asked(1)),
        "degree_by_directions": probes.published_degree(**asked(2), sides="directions"),
        "sparsity": probes.published_sparsity(**asked(3)),
    }
    facts: dict[str, Any] = {"proximity": proximity}
    for name, each in found.items():
        facts |= {name: each.value, f"{name}_levels_rejected": each.at_least, f"{name}_queries": each.queries}
    return facts


def _with_progress(function: Callable[..., Any]) -> Callable[..., Any]:
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
            typer.echo(f"{asked:,} queries, {asked / (now - start):,.0f} per second", err=True)
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
    from genscope.cli._output import counted, echo, print_table

    def known(name: str) -> str:
        return f"at least {facts[f'{name}_at_least']}" if facts[name] is None else str(facts[name])

    relevant = ", ".join(f"x{i}" for i in facts["relevant"][:_SHOWN]) or "none"
    more = f" and {len(facts['relevant']) - _SHOWN} more" if len(facts["relevant"]) > _SHOWN else ""
    typer.echo(f"{target} on {bits} bits")
    typer.echo(f"degree {known('degree')}, sparsity {known('sparsity')} (the constant is not counted)")
    typer.echo(f"relevant bits: {relevant}{more}")
    echo(facts["guarantee"])
    echo(f"Input distribution: {facts['law']}.")
    if (seen := facts["sample"]) is not None:
        share = seen["left_out"]
        missed = (
            "the function is constant" if share is None else f"the components leave out {share:.3g} of the variance"
        )
        echo(
            f"At the {seen['inputs']} inputs of {seen['file']}, which have a law of their own, {missed}; the largest "
            f"error is {seen['largest_error']:.3g}."
        )
    typer.echo(f"{counted(facts['queries'], 'query', 'queries')}, {facts['seconds']:.2g} s\n")
    if (theirs := facts["published"]) is not None:
        _print_published(theirs)
    shown = facts["components"][:_SHOWN]
    if not shown:
        typer.echo("No Fourier components: it is 0 everywhere." if facts["exact"] else "No Fourier components found.")
        return
    of = f", the largest {_SHOWN} of {len(facts['components'])}" if len(facts["components"]) > _SHOWN else ""
    print_table(
        f"Fourier components{of}",
        ["coefficient", "of the parity of"],
        [
            [f"{each['coefficient']:.9g}", ", ".join(f"x{i}" for i in each["support"]) or "nothing (the constant)"]
            for each in shown
        ],
    )


def _print_published(theirs: dict[str, Any]) -> None:
    from genscope.cli._output import echo, print_table

    names = {
        "degree": "degree, cubes along coordinates",
        "degree_by_directions": "degree, cubes along random directions",
        "sparsity": "sparsity, restricted to 12 coordinates",
    }
    rows = [
        [
            words,
            str(theirs[name]) if theirs[name] is not None else f"not below {theirs[f'{name}_levels_rejected']}",
            str(theirs[f"{name}_queries"]),
        ]
        for name, words in names.items()
    ]
    print_table(
        f"Testers of LS26, Appendix H, proximity {theirs['proximity']:g}", ["tester", "first level", "queries"], rows
    )
    echo("They promise nothing: coordinates miss sets, directions see every component alike, whatever its degree.\n")
