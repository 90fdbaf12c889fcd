"""`genscope learn`: the samples that networks need to learn a function, and what theory says.

Guarantee: what is stored already is not computed again; thresholds have intervals, or are bounds.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from genscope.cli import _options
from genscope.cli._errors import complain
from genscope.extras import need
from genscope.files import picture_kind
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from genscope.questions import Answer


OptimizerName = Literal["adam", "adamw", "sgd"]


def learn(
    function: Annotated[
        str, typer.Argument(metavar="EXPR", help="Boolean expression such as 'maj(x1,x4,x7)', or my_file.py:task.")
    ],
    context_length: Annotated[
        str,
        typer.Option(
            "--context-length",
            metavar="T,T",
            help="Numbers of bits, among which those of EXPR are placed at random; three or more give a law.",
        ),
    ],
    network: Annotated[
        list[str] | None,
        typer.Option(
            "--network",
            metavar="NAME,NAME",
            help="transformer, bit-transformer, deep, mlp, rnn, gru, lstm, linear, ideal, or my_file.py:build; may be "
            "repeated. Default: transformer.",
        ),
    ] = None,
    layers: Annotated[
        int | None, typer.Option("--layers", metavar="N", help="Layers of the network deep. Default: 2.")
    ] = None,
    heads: Annotated[
        int | None, typer.Option("--heads", metavar="N", help="Heads of the network deep. Default: 4.")
    ] = None,
    dim: Annotated[
        int | None, typer.Option("--dim", metavar="N", help="Width of the network deep. Default: 32.")
    ] = None,
    noise: Annotated[
        float, typer.Option("--noise", metavar="P", help="Share of training labels that are flipped.")
    ] = 0,
    bias: Annotated[
        str, typer.Option("--bias", metavar="P", help="Probability that a bit is 1, or balanced, for balanced labels.")
    ] = "balanced",
    accuracy: Annotated[
        float, typer.Option("--accuracy", metavar="P", help="Share of held-out examples that a run must get right.")
    ] = 1.0,
    error: Annotated[
        float | None,
        typer.Option("--error", metavar="X", help="Mean squared error to reach, of a task whose labels are numbers."),
    ] = None,
    success: Annotated[float, typer.Option("--success", metavar="P", help="Share of trials that must succeed.")] = 0.8,
    restarts: Annotated[
        int, typer.Option("--restarts", metavar="K", help="Networks per sample; the one that agrees best counts.")
    ] = 1,
    fixed_support: Annotated[
        bool, typer.Option("--fixed-support", help="Keep the bits where the expression has them.")
    ] = False,
    rate: Annotated[float | None, typer.Option("--rate", metavar="X", help="Learning rate of all networks.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", metavar="N", help="Maximum number of training steps.")] = None,
    optimizer: Annotated[OptimizerName | None, typer.Option("--optimizer", help="Optimizer of all networks.")] = None,
    budget: _options.BudgetChoice = "standard",
    width: Annotated[
        float | None, typer.Option("--width", metavar="X", help="Stop once the interval is within a factor 1 + X.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the answer: .svg, .png or .pdf.")
    ] = None,
    dry_run: _options.DryRun = False,
    retry: _options.RetryFailed = None,
    workers: _options.Workers = None,
    cluster: _options.Cluster = None,
    time_limit: _options.TimeLimit = None,
    accept_changes: _options.AcceptChanges = False,
    store: _options.StoreUrl = _options.DEFAULT_STORE,
    as_json: _options.AsJson = False,
) -> None:
    """Measure how many samples networks need to learn a function, and compare with theory.

    Each trial draws the relevant bits, a sample and initial weights at random. Stored trials are not run again; after
    an interruption, the same command resumes.

    Example: genscope learn "maj(x1,x4,x7)" --context-length 40 --network transformer,mlp --budget quick
    """
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    from genscope.cli._output import echo, print_json
    from genscope.cli._running import check_dry_run, finished, print_cost
    from genscope.cli._user_code import users_code
    from genscope.lab.results.mixtures import failed_trials
    from genscope.questions.prepared import prepare

    if plot is not None:
        need("report", given=f"learn got --plot {plot}")
        picture_kind(plot)  # before minutes are spent on what it would show
    check_dry_run("learn", dry_run, retry)
    named = _networks(network or ["transformer"], layers, heads, dim)
    with users_code(next((name for name in [function, *named] if ".py:" in name), function)):
        asked = prepare(
            function,
            context_length=_lengths(context_length),
            network=named,
            budget=budget,
            noise=noise,
            bias=_bias(bias),
            accuracy=accuracy,
            error=error,
            success=success,
            restarts=restarts,
            fixed_support=fixed_support,
            rate=rate,
            steps=steps,
            optimizer=optimizer,
            width=width,
        )
    computed_by = {"store": store, "workers": workers, "cluster": cluster, "time_limit": time_limit}
    if dry_run:
        print_cost(asked.selection, as_json=as_json, **computed_by)
        return
    with finished(asked.study, asked.selection, retry=retry, accept_changes=accept_changes, **computed_by) as (
        stored,
        summary,
    ):
        answer, where = asked.collect(stored), _options.store_option(store, stored.url)
    frame = answer.reading.frame
    for warning in (*answer.remarks, *([summary.outdated] if summary.outdated else [])):
        complain(f"warning: {warning}")
    failed = failed_trials(frame)
    nothing = 0 < len(failed) == len(frame)
    drawn = plot is not None and not nothing
    if drawn:
        answer.plot(plot)
    print_json(answer.facts()) if as_json else _print_answer(answer, where)
    if drawn and not as_json:
        echo(f"{plot}: {answer.study.title}")
    if nothing:
        complain(f"every trial failed. The first one says:\n{failed['error'][0].rstrip()}")
        raise typer.Exit(1)


def _networks(given: list[str], layers: int | None, heads: int | None, dim: int | None) -> list[str]:
    names = list(dict.fromkeys(name.strip() for text in given for name in text.split(",") if name.strip()))
    if (layers, heads, dim) != (None, None, None) and "deep" not in names:
        raise Refusal(
            f"learn got --layers, --heads or --dim with the networks {', '.join(names)}: these options set the size "
            "of the network deep. Add --network deep, or leave them out."
        )
    sized = f"deep-{2 if layers is None else layers}x{4 if heads is None else heads}x{32 if dim is None else dim}"
    return [sized if name == "deep" else name for name in names]


def _lengths(text: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(word) for word in text.split(",") if word.strip()))
    except ValueError:
        raise Refusal(
            f"learn got --context-length {text}: it must be one or more whole numbers, separated by commas. Write, "
            "for example, 64,256."
        ) from None


def _bias(text: str) -> float | None:
    if text == "balanced":
        return None
    try:
        return float(text)
    except ValueError:
        raise Refusal(
            f"learn got --bias {text}: it must be a probability or the word balanced. Write, for example, 0.5."
        ) from None


def _print_answer(answer: "Answer", store: str) -> None:
    from genscope.cli._output import counted, echo, print_table
    from genscope.questions.answer import interval, kind, size
    from genscope.questions.networks import shown
    from genscope.report import words

    function = answer.function
    if answer.placements is not None:
        placed_at = answer.placements.items()
        class_ = ", ".join(
            f"{'an unknown number' if n is None else f'{n:,}'} at T = {length}" for length, n in placed_at
        )
        echo(
            f"{answer.question.asked}: {counted(function['support'], 'relevant bit')}, degree {function['degree']}, "
            f"{counted(function['sparsity'], 'Fourier component')}, total influence "
            f"{words.number(function['influence'])}; bits are 1 with probability "
            f"{words.number(answer.question.probability)}."
        )
        echo(f"{answer.question.placing} Functions in the class: {class_}.")
    echo(f"{answer.question.criterion}\n")
    rows: list[list[Any]] = [
        [
            shown(row["network"]),
            f"{row['context_length']:,}",
            *interval(row),
            _plateau(row),
            str(row["trials"]),
            words.duration(row["seconds"]),
        ]
        for row in answer.rows
    ]
    title = f"Samples at which {100 * answer.question.success:g} % of trials succeed"
    print_table(title, ["network", "T", "samples", "95 % interval", "plateau", "trials", "computing"], rows, names=2)
    for name, law in answer.laws.items():
        echo(f"{shown(name)}: {law['verdict']}")
    print_table(
        "What theory says",
        ["statement", "T", "samples", "trust", "says"],
        [
            [each.name, f"{each.context_length:,}", size(each.sample_size), kind(each), each.says]
            for each in answer.statements
        ],
        names=2,
    )
    for length, norms in (answer.construction or {}).items():
        said = ", ".join(f"{name.replace('_', ' ')} {words.number(value)}" for name, value in norms.items())
        echo(f"Construction at T = {int(length):,}, as genscope bound head reads it: {said}")
    for name, recipe in answer.recipes.items():
        echo(f"{shown(name)}: {recipe}")
    echo(f"\n{answer.sentence}")
    if answer.next_step:
        echo(answer.next_step)
    echo(f"Stored as {answer.study.name}; next: genscope report{store}")


def _plateau(row: dict[str, Any]) -> str:
    from genscope.report import words

    known = row["plateau"]
    if known is None:
        return "unknown"
    return " ".join(words.measured(*known.values()))
