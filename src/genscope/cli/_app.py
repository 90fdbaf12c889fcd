"""The program `genscope`: its commands, and how it ends.

A command's file is loaded when the command is called: `genscope --help` answers from the table below, and JAX is
loaded by the commands that need it.

Guarantee: exit status 0: done; 1: the answer is no, or the user's own code failed; 2: the request makes no sense;
130 and 143: interrupted and terminated; 141: the reader of the output has gone.
"""

import importlib
import io
import os
import signal
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from genscope.cli._errors import READER_GONE, Terminated, complain, described, silence
from genscope.cli._flags import PlainGroup
from genscope.cli._jax import set_threads

COMMANDS: Mapping[str, str] = {
    # what each is for: the first line of its own help; in the file of its name, a function of that name or an `app`
    "list": "Show studies and claims with their state in the store, constructions and bounds.",
    "learn": "Measure how many samples networks need to learn a function, and compare with theory.",
    "run": "Run a study and show its thresholds and the law they follow.",
    "reproduce": "Decide the claims of the papers, and write report.html.",
    "construct": "Build Transformer weights that compute a Boolean expression, and verify them.",
    "certify": "Certify the risk of a trained model: a PAC-Bayes bound for weights drawn around the trained ones.",
    "dominate": "Compare a trained model with the flat network of the function it computes, and print the bound that "
    "follows.",
    "checkpoint": "Measure the attention heads of a model in safetensors files, and bound their capacity.",
    "probe": "Find out which function of T bits a black box computes, with a stated confidence.",
    "sharpness": "Measure the trace and the norm of the Hessian of a model's mean loss, and the sharpness of its "
    "smoothed loss.",
    "report": "Write the stored results as one page: claims, figures, tables.",
    "figure": "Draw one figure of a study, or the report's opening picture, as SVG, PNG or PDF.",
    "export": "Write the trials of a study to a file for other tools.",
    "serve": "Open the explorer in a browser: functions, constructions, bounds, training and studies.",
    "store": "Check a database of results, and copy it.",
    "bound": "Compute a bound, term by term.",
}


def load(name: str) -> Any:
    """The command of that name, with its options."""
    from genscope.cli._help import alone

    module = importlib.import_module(f"genscope.cli.{name}")
    app = getattr(module, "app", None) or alone(name, getattr(module, _FUNCTIONS.get(name, name)))
    command = typer.main.get_command(app)
    command.name = name
    return command


_FUNCTIONS = {"list": "list_"}  # where Python has a function of the command's name


class _Commands(PlainGroup):
    """A group that lists its members without loading them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=summary) for name, summary in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the member that is called."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, None if found is None else load(str(name)), rest


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    help="How many samples does a Transformer need, and why?\n\n"
    "Results go to standard output, progress to standard error.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        import genscope

        typer.echo(f"genscope {genscope.__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def genscope(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options of the program itself."""


def main() -> None:
    """Run the command line of this process and end it."""
    signal.signal(signal.SIGTERM, _terminate)
    set_threads()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without ½ still shows the rest
    try:
        app(prog_name="genscope")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except OSError as error:  # of the help and the version, which no command guards
        complain(described(error))
        status = 2
    else:
        status = 0
    try:
        sys.stdout.flush()
    except OSError:
        silence()
        status = status or READER_GONE
    if status in (130, 143):
        os._exit(status)  # what is computed is stored; threads inside a trial are not waited for
    sys.exit(status)


def _terminate(number: int, frame: object) -> None:
    raise Terminated
