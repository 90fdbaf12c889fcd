"""`genscope construct token-retrieval` and `recurrent-retrieval`: networks that solve token regression, verified.

Source: mousavi2025, Lemma 11 and Propositions 26 and 28.
Guarantee: that of `constructions.verify_retrieval`; a model that does not verify is not written.
"""

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genscope.cli._built import Out, conclude
from genscope.cli._options import SEED, SEEDS, AsJson, check_options
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from genscope.constructions.retrieval import Retrieval
    from genscope.tasks.token_regression import TokenRegression

LARGEST = {"tokens": 1024, "dimension": 256, "sparsity": 16, "encoding_dimension": 1024}
_SAMPLE = 1000  # prompts among which no Gaussian token is longer than the default norm (mousavi2025, Lemma 12)


class Link(StrEnum):
    """What a label is, given its tokens: the names of `tasks.links.LINKS`."""

    linear = "linear"
    relu = "relu"
    hermite2 = "hermite2"
    average = "average"
    norm2 = "norm2"


Tokens = Annotated[int, typer.Option("--tokens", metavar="N", help="Tokens of a prompt.")]
Dimension = Annotated[int, typer.Option("--dimension", metavar="D", help="Of a token, without its encoding.")]
Sparsity = Annotated[int, typer.Option("--sparsity", metavar="Q", help="Tokens that a label depends on.")]
LinkName = Annotated[Link, typer.Option("--link", help="The label, as a function of its tokens.")]
Error = Annotated[float, typer.Option("--error", metavar="E", help="Largest error allowed.")]
EncodingDimension = Annotated[
    int | None,
    typer.Option("--encoding-dimension", metavar="D", help="Random signs per position. Default: 8 log(2 N²)."),
]
TokenNorm = Annotated[
    float | None,
    typer.Option("--token-norm", metavar="R", help="Longest token. Default: that of 1,000 Gaussian prompts."),
]
Prompts = Annotated[
    int, typer.Option("--prompts", metavar="N", help="Random prompts to verify on, besides adversarial ones.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="K", help="Of encodings, link and prompts.")]


def token_retrieval(
    tokens: Tokens,
    dimension: Dimension,
    sparsity: Sparsity,
    link: LinkName = Link.linear,
    error: Error = 0.01,
    encoding_dimension: EncodingDimension = None,
    token_norm: TokenNorm = None,
    prompts: Prompts = 64,
    out: Out = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Build q attention heads that retrieve the tokens a label depends on, and verify them.

    The label is a random function of the q tokens that a position of the prompt points to. Links hermite2 and norm2 are
    approximated, within half of the error.

    Example: genscope construct token-retrieval --tokens 16 --dimension 8 --sparsity 2
    """

    def build(task: "TokenRegression", norm: float) -> "Retrieval":
        from genscope.constructions.token_retrieval import token_retrieval

        return token_retrieval(task, token_norm=norm, error=error)

    sizes = {"tokens": tokens, "dimension": dimension, "sparsity": sparsity}
    _construct("token-retrieval", build, sizes, link, encoding_dimension, token_norm, prompts, out, seed, as_json)


def recurrent_retrieval(
    tokens: Tokens,
    dimension: Dimension,
    sparsity: Sparsity,
    link: LinkName = Link.linear,
    error: Error = 0.01,
    encoding_dimension: EncodingDimension = None,
    token_norm: TokenNorm = None,
    prompts: Prompts = 64,
    out: Out = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Build a bidirectional RNN that solves simple token regression, and verify it.

    All positions of a prompt point to the same q tokens; the weights do not depend on their number. Links hermite2 and
    norm2 are approximated, within the error; with all others the network is exact.

    Example: genscope construct recurrent-retrieval --tokens 12 --dimension 3 --sparsity 2
    """

    def build(task: "TokenRegression", norm: float) -> "Retrieval":
        from genscope.constructions.recurrent_retrieval import recurrent_retrieval

        return recurrent_retrieval(task, token_range=norm, error=error)

    sizes = {"tokens": tokens, "dimension": dimension, "sparsity": sparsity}
    _construct("recurrent-retrieval", build, sizes, link, encoding_dimension, token_norm, prompts, out, seed, as_json)


MODES = {"token-retrieval": token_retrieval, "recurrent-retrieval": recurrent_retrieval}


def _construct(
    name: str,
    build: Any,
    sizes: dict[str, int],
    link: Link,
    encoding_dimension: int | None,
    token_norm: float | None,
    prompts: int,
    out: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    tokens, dimension, sparsity = sizes.values()
    encoded = math.ceil(8 * math.log(2 * max(tokens, 1) ** 2)) if encoding_dimension is None else encoding_dimension
    _check(name, sizes | {"encoding_dimension": encoded}, prompts, seed)
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    import jax.random as jr

    from genscope.constructions.retrieval import verify_retrieval
    from genscope.random import stream
    from genscope.tasks.token_regression import TokenRegression

    key = jr.key(seed)
    heads = name == "token-retrieval"
    task = TokenRegression.draw(
        stream(key, "task"),
        context_length=tokens,
        dim=dimension,
        sparsity=sparsity,
        link=link.value,
        encoding_dim=encoded,
        max_correlation=0.5 if encoding_dimension is None else 1 - 1 / encoded,  # or only different
        shared_positions=not heads,
        scale="sqrt_d_over_q" if heads else "none",
    )
    norm = math.sqrt(3 * math.e * dimension * math.log(_SAMPLE * tokens)) if token_norm is None else token_norm
    built = build(task, norm)
    verdict = verify_retrieval(built, prompts=prompts, key=stream(key, "prompts"))
    facts = {
        "construction": name,
        **sizes,
        "exact": verdict.exact,
        "max_error": verdict.max_error,
        "promised_error": built.error,
        "inputs_checked": verdict.inputs_checked,
        "norms": built.measured_norms(),
        "source": built.source,
        "promised_norms": dict(built.norms),
        "link": link.value,
        "encoding_dimension": encoded,
        "token_norm": norm,
        "constants": dict(built.constants),
    }
    conclude(
        facts,
        built.model,
        verified=verdict.verified,
        out=out,
        as_json=as_json,
        tell=_print_construction,
        advice=lambda: (
            f"these weights do not do what they should: largest error {verdict.max_error:.2g}, promised "
            f"{built.error:.2g}. Rounding may have the better of them: try a smaller --token-norm or a larger --error."
        ),
    )


def _check(name: str, sizes: dict[str, int], prompts: int, seed: int) -> None:
    for word, size in sizes.items():
        if not 1 <= size <= LARGEST[word]:
            raise Refusal(
                f"construct {name} got --{word.replace('_', '-')} {size}: it lies between 1 and {LARGEST[word]}. "
                "Choose such a number."
            )
    check_options(
        f"construct {name}",
        ("--prompts", prompts, 1 <= prompts <= 10_000, "lies between 1 and 10000"),
        ("--seed", seed, 0 <= seed < SEEDS, SEED),
    )


def _print_construction(facts: dict[str, Any]) -> None:
    from genscope.cli._output import print_table

    typer.echo(
        f"{facts['construction']}: {facts['sparsity']} of {facts['tokens']} tokens of dimension {facts['dimension']}, "
        f"link {facts['link']}, encodings of {facts['encoding_dimension']} signs"
    )
    typer.echo(facts["source"])
    verdict = "exact" if facts["exact"] else "not exact"
    typer.echo(
        f"{verdict}: largest error {facts['max_error']:.2g} on {facts['inputs_checked']} random and adversarial "
        f"prompts, promised {facts['promised_error']:.2g} for tokens up to {facts['token_norm']:.4g}"
    )
    typer.echo(", ".join(f"{name} {value:.6g}" for name, value in facts["constants"].items()) + "\n")
    rows = [[name, f"{norm:.6g}", f"{facts['promised_norms'][name]:.6g}"] for name, norm in facts["norms"].items()]
    print_table("Norms (Frobenius unless named)", ["weight", "norm", "formula"], rows)
