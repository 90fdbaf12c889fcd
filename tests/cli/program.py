"""The program in this process, and the file of studies that it is given."""

import functools
from pathlib import Path

import typer.main
import typer.testing
from typer.testing import CliRunner, Result

from genscope.cli._app import app

# The runner reads the signatures of all commands before every call, which takes longer than most calls.
typer.testing._get_command = functools.cache(typer.main.get_command)  # pyright: ignore[reportPrivateImportUsage]

TOYS = Path(__file__).with_name("study_file.py")


def invoke(*arguments) -> Result:
    """A command in this process; what it raised comes out."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="genscope")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
