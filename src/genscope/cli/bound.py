"""`genscope bound`: a theorem's number, term by term, or its curve along one of its arguments.

Every bound is a command of its own, whose options are the parameters of its function (`genscope.bounds.ALL`). It is
made when it is asked for: all of them take longer than `genscope --help`.

Guarantee: exact up to rounding; a number beyond the largest float is `null` in JSON and `inf` in tables.
"""

import difflib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from genscope.cli._flags import PlainGroup
from genscope.cli._help import alone, flowing
from genscope.cli._options import AsJson
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from genscope.bounds import Bound
    from genscope.bounds._parameters import Parameter

_COMMON: Mapping[str, tuple[Any, Any]] = {
    "vary": (
        Annotated[
            str | None,
            typer.Option(
                "--vary",
                metavar="NAME=FROM:TO",
                help="Follow the bound along one of its options, in place of its value.",
            ),
        ],
        None,
    ),
    "plot": (
        Annotated[
            Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curve of --vary (.svg, .pdf, .png).")
        ],
        None,
    ),
    "as_json": (AsJson, False),
}


class _Bounds(PlainGroup):
    """A group that makes its members, and names them to whoever asks for something else."""

    def list_commands(self, ctx):
        from genscope import bounds

        return [*bounds.ALL]

    def get_command(self, ctx, cmd_name):
        return _member(cmd_name) if cmd_name in self.list_commands(ctx) else None

    def resolve_command(self, ctx, args):
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            near = difflib.get_close_matches(args[0], known, n=1)
            advice = f"Did you mean {near[0]}?" if near else "Choose one of them."
            ctx.fail(f"got {args[0]!r}: the bounds are {', '.join(known)}. {advice}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Bounds,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Compute a bound, term by term.\n\n"
    "Example: genscope bound linear-cover --weight-norm 1 --input-norm 1 --epsilon 0.1 --points 1000",
)


@app.callback()
def bound() -> None:
    """Take no options of its own."""


def _member(name: str) -> Any:
    from genscope import bounds

    function = bounds.ALL[name]
    member = alone(
        name,
        _command(name, function),
        help=flowing(function, formulas=False),
        epilog=f"Formula and proof: python -m pydoc genscope.bounds.{function.__name__}",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    return typer.main.get_command(member)


def _command(name: str, function: "Callable[..., Bound]") -> Callable[..., None]:
    """The command of a bound, with the signature that typer reads its options from."""
    from genscope.bounds._parameters import Choice, Parameter, parameters

    only = Parameter(Choice("explicit: every constant proved"), Literal["explicit"], "explicit")
    known = {word: each for word, each in parameters(function).items() if word != "form"}
    form = parameters(function).get("form", only)
    common_options = {"form": (_option("form", form), form.default), **_COMMON}

    def command(ctx: Any, **given: Any) -> None:
        common = {word: given.pop(word) for word in common_options}
        _refuse_unknown(name, ctx.args, known)
        _run(name, function, known, {word: value for word, value in given.items() if value is not None}, **common)

    options = {word: (_option(word, each), None if each.required else each.default) for word, each in known.items()}
    signature = [
        inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for word, (annotation, default) in {**options, **common_options}.items()
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    command.__annotations__ = {}  # typer would believe them rather than the signature
    # What typer reads; the attribute is Python's own and unknown to the type of a function.
    command.__signature__ = inspect.Signature([context, *signature])  # pyright: ignore[reportFunctionMemberAccess]
    return command


def _option(word: str, parameter: "Parameter") -> Any:
    from rich.markup import escape

    from genscope.bounds._parameters import Choice

    about = parameter.about.meaning + (" (required)" if parameter.required else "")
    if parameter.plain is bool:
        return Annotated[bool, typer.Option(_flag(word), help=escape(about))]
    if isinstance(parameter.about, Choice):
        return Annotated[parameter.plain, typer.Option(_flag(word), help=escape(about))]
    return Annotated[float | None, typer.Option(_flag(word), metavar="NUMBER", help=escape(about))]


def _flag(word: str) -> str:
    return "--" + word.replace("_", "-")


def _refuse_unknown(name: str, extra: list[str], known: "Mapping[str, Parameter]") -> None:
    if extra:
        raise Refusal(
            f"bound {name} got {' '.join(extra)}: its options are {', '.join(map(_flag, known))}, --form, --vary, "
            "--plot and --json. Remove the others."
        )


def _run(
    name: str,
    function: "Callable[..., Bound]",
    known: "Mapping[str, Parameter]",
    given: dict[str, Any],
    *,
    form: str,
    vary: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    from genscope.bounds._parameters import Number, apply, parameters
    from genscope.cli import _curve
    from genscope.cli._output import echo, print_json

    if "form" in parameters(function):
        given = {**given, "form": form}
    if plot is not None and vary is None:
        raise Refusal(f"bound {name} got --plot without --vary: a curve needs an axis. Add --vary NAME=FROM:TO.")
    for word, value in given.items():
        if word in known and isinstance(about := known[word].about, Number):
            about.accept(f"bound {name}", _flag(word), value)
    axis = None if vary is None else _curve.Axis.parse(name, vary, known)
    varied = set() if axis is None else {axis.name}
    missing = [word for word, each in known.items() if each.required and word not in {*given, *varied}]
    if missing:
        wanted = ", ".join(f"{_flag(word)} ({known[word].about.meaning})" for word in missing)
        raise Refusal(
            f"bound {name} got no value for {wanted}: every required option must be given. Add the missing ones."
        )
    if axis is None:
        bound = apply(function, given)
        print_json(bound.facts()) if as_json else _curve.print_bound(bound)
        return
    curve = [(value, apply(function, {**given, axis.name: value})) for value in axis.values]
    if plot is not None:
        _curve.draw(axis, curve, plot)
    if as_json:
        print_json(_curve.facts(axis, curve) | {"file": None if plot is None else str(plot)})
    elif plot is not None:
        echo(f"{plot}: {name} along {axis.name}, {len(curve)} values")
    else:
        _curve.print_curve(axis, curve)
