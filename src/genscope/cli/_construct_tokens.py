"""`genscope construct token-retrieval` and `recurrent-retrieval`: networks that solve token regression, verified.

Source: mousavi2025, Lemma 11 and Propositions 26 and 28.
Guarantee: that of `constructions.verify_retrieval`; a model that does not verify is not written.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from genscope.cli._built import Out, conclude
from genscope.cli._options import SEED, SEEDS, AsJson, check_options
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from genscope.constructions import Retrieval, Verification

LARGEST = {"tokens": 1024, "dimension": 256, "sparsity": 16, "encoding_dimension": 1024}
_SAMPLE = 1000  # prompts among which no Gaussian token is longer than the default norm (mousavi2025, Lemma 12)


Link = Literal["linear", "relu", "hermite2", "average", "norm2"]  # the names of `tasks.links.LINKS`


Tokens = Annotated[int, typer.Option("--tokens", metavar="N", help="Tokens of a prompt.")]
Dimension = Annotated[int, typer.Option("--dimension", metavar="D", help="Dimension of a token, without its encoding.")]
Sparsity = Annotated[int, typer.Option("--sparsity", metavar="Q", help="Tokens that a label depends on.")]
LinkName = Annotated[Link, typer.Option("--link", help="The label, as a function of its tokens.")]
Error = Annotated[float, typer.Option("--error", metavar="E", help="Largest error allowed.")]
EncodingDimension = Annotated[
    int | None,
    typer.Option("--encoding-dimension", metavar="D", help="Random signs per position. Default: 8 log(2 N²)."),
]
TokenNorm = Annotated[
    float | None,
    typer.Option("--token-norm", metavar="R", help="Largest norm of a token. Default: that in 1,000 Gaussian prompts."),
]
Prompts = Annotated[
    int, typer.Option("--prompts", metavar="N", help="Random prompts to verify on, besides adversarial ones.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="K", help="Seed of encodings, link and prompts.")]


def _mode(name: str, about: str) -> Callable[..., None]:
    """The command that builds one of the two networks: they solve the same task, and take the same options."""

    def construct(
        tokens: Tokens,
        dimension: Dimension,
        sparsity: Sparsity,
        link: LinkName = "linear",
        error: Error = 0.01,
        encoding_dimension: EncodingDimension = None,
        token_norm: TokenNorm = None,
        prompts: Prompts = 64,
        out: Out = None,
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        sizes = {"tokens": tokens, "dimension": dimension, "sparsity": sparsity}
        coded = math.ceil(8 * math.log(2 * max(tokens, 1) ** 2)) if encoding_dimension is None else encoding_dimension
        _check(name, sizes | {"encoding_dimension": coded}, prompts, seed)
        norm = math.sqrt(3 * math.e * dimension * math.log(_SAMPLE * tokens)) if token_norm is None else token_norm
        distinct = 0.5 if encoding_dimension is None else 1 - 1 / coded  # the largest correlation, or only different
        built, verdict = _built(name, sizes, link, coded, distinct, norm, error, prompts, seed)
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
            "link": link,
            "encoding_dimension": coded,
            "token_norm": norm,
            "constants": dict(built.constants),
        }
        conclude(
            facts,
            built.model,
            verified=verdict.verified,
            out=out,
            as_json=as_json,
            show=_print_construction,
            advice=lambda: (
                f"these weights do not do what they should: largest error {verdict.max_error:.2g}, promised "
                f"{built.error:.2g}. Rounding may have the better of them: try a smaller --token-norm or a larger "
                "--error."
            ),
        )

    construct.__doc__ = about
    return construct


MODES = {
    "token-retrieval": _mode(
        "token-retrieval",
        """Build q attention heads that retrieve the tokens a label depends on, and verify them.

        The label is a random function of the q tokens that a position of the prompt points to. Links hermite2 and norm2
        are approximated, within half of the error.

        Example: genscope construct token-retrieval --tokens 16 --dimension 8 --sparsity 2
        """,
    ),
    "recurrent-retrieval": _mode(
        "recurrent-retrieval",
        """Build a bidirectional RNN that solves simple token regression, and verify it.

        All positions of a prompt point to the same q tokens; the weights do not depend on their number. Links hermite2
        and norm2 are approximated, within the error; with all others the network is exact.

        Example: genscope construct recurrent-retrieval --tokens 12 --dimension 3 --sparsity 2
        """,
    ),
}


def _built(
    name: str,
    sizes: dict[str, int],
    link: Link,
    encoding_dim: int,
    max_correlation: float,
    norm: float,
    error: float,
    prompts: int,
    seed: int,
) -> tuple["Retrieval", "Verification"]:
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    import jax.random as jr

    from genscope.constructions.recurrent_retrieval import recurrent_retrieval
    from genscope.constructions.retrieval import verify_retrieval
    from genscope.constructions.token_retrieval import token_retrieval
    from genscope.random import stream
    from genscope.tasks.token_regression import TokenRegression

    key = jr.key(seed)
    heads = name == "token-retrieval"
    task = TokenRegression.draw(
        stream(key, "task"),
        context_length=sizes["tokens"],
        dim=sizes["dimension"],
        sparsity=sizes["sparsity"],
        link=link,
        encoding_dim=encoding_dim,
        max_correlation=max_correlation,
        shared_positions=not heads,
        scale="sqrt_d_over_q" if heads else "none",
    )
    built = (
        token_retrieval(task, token_norm=norm, error=error)
        if heads
        else recurrent_retrieval(task, token_range=norm, error=error)
    )
    return built, verify_retrieval(built, prompts=prompts, key=stream(key, "prompts"))


def _check(name: str, sizes: dict[str, int], prompts: int, seed: int) -> None:
    for word, size in sizes.items():
        if not 1 <= size <= LARGEST[word]:
            raise Refusal(
                f"construct {name} got --{word.replace('_', '-')} {size}: it must be between 1 and {LARGEST[word]}. "
                "Change it."
            )
    check_options(
        f"construct {name}",
        ("--prompts", prompts, 1 <= prompts <= 10_000, "must be between 1 and 10000"),
        ("--seed", seed, 0 <= seed < SEEDS, SEED),
    )


def _print_construction(facts: dict[str, Any]) -> None:
    from genscope.cli._output import echo, print_table

    echo(
        f"{facts['construction']}: {facts['sparsity']} of {facts['tokens']} tokens of dimension {facts['dimension']}, "
        f"link {facts['link']}, encodings of {facts['encoding_dimension']} signs"
    )
    echo(facts["source"])
    kept = facts["max_error"] <= facts["promised_error"]
    verdict = "exact" if facts["exact"] else "verified" if kept else "not verified"
    echo(
        f"{verdict}: largest error {facts['max_error']:.2g} on {facts['inputs_checked']} random and adversarial "
        f"prompts, promised {facts['promised_error']:.2g} for tokens up to {facts['token_norm']:.4g}"
    )
    echo(", ".join(f"{name} {value:.6g}" for name, value in facts["constants"].items()) + "\n")
    rows = [[name, f"{norm:.6g}", f"{facts['promised_norms'][name]:.6g}"] for name, norm in facts["norms"].items()]
    print_table("Norms (Frobenius unless named)", ["weight", "norm", "formula"], rows)
