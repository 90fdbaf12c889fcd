"""The program `genscope`: its commands, and how it ends.

Command files import at their top only what describes their options: `genscope --help` answers at once, and JAX is
loaded by the commands that need it.

Guarantee: exit status 0: done; 1: the answer is no, or the user's own code failed; 2: the request makes no sense;
130 and 143: interrupted and terminated; 141: the reader of the output has gone.
"""

import io
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from genscope.cli import (
    _construct_fourier,
    _construct_tokens,
    bound,
    certify,
    checkpoint,
    construct,
    dominate,
    export,
    figure,
    learn,
    probe,
    report,
    reproduce,
    run,
    serve,
    sharpness,
    store,
)
from genscope.cli import list as list_
from genscope.cli._errors import READER_GONE, Terminated, guarded, silence
from genscope.cli._help import Command, Group, flowing
from genscope.cli._modes import with_modes

COMMANDS: Mapping[str, Callable[..., None]] = {
    "list": list_.list_,
    "learn": learn.learn,
    "run": run.run,
    "reproduce": reproduce.reproduce,
    "construct": construct.construct,
    "certify": certify.certify,
    "dominate": dominate.dominate,
    "checkpoint": checkpoint.checkpoint,
    "probe": probe.probe,
    "sharpness": sharpness.sharpness,
    "report": report.report,
    "figure": figure.figure,
    "export": export.export,
    "serve": serve.serve,
}
MODES: Mapping[str, tuple[str, Mapping[str, Callable[..., None]]]] = {
    # the mode that needs no name, and the others
    "construct": ("expression", _construct_tokens.MODES | _construct_fourier.MODES),
}
GROUPS: Mapping[str, tuple[str, Mapping[str, Callable[..., None]]]] = {
    "store": ("Check a database of results, and copy it.", {"check": store.check, "copy": store.copy}),
}

_LOOK: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": "rich"}

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="How many samples does a Transformer need, and why?\n\n"
    "Results go to standard output, progress to standard error.",
    **_LOOK,
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


def _register() -> None:
    for name, command in COMMANDS.items():
        if name in MODES:
            app.add_typer(with_modes(MODES[name][0], command, MODES[name][1]), name=name)
        else:
            app.command(name, cls=Command, help=flowing(command))(guarded(command))
    for name, (about, commands) in GROUPS.items():
        group = typer.Typer(cls=Group, no_args_is_help=True, help=about, **_LOOK)
        for word, command in commands.items():
            group.command(word, cls=Command, help=flowing(command))(guarded(command))
        app.add_typer(group, name=name)
    app.add_typer(bound.app, name="bound")


_register()


def main() -> None:
    """Run the command line of this process and end it."""
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without ½ still shows the rest
    try:
        app(prog_name="genscope")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
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
