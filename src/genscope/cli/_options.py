"""Options that several commands share. Option names are words.

Departures: the store may also be named by the environment variable GENSCOPE_STORE.
Guarantee: exact.
"""

from enum import StrEnum
from typing import Annotated

import typer

DEFAULT_STORE = "sqlite:///genscope.db"
SEEDS = 2**32  # how many keys a number may choose from

StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="GENSCOPE_STORE",
        help="Database of results, on disk or on a server.",
    ),
]
AcceptChanges = Annotated[
    bool,
    typer.Option(
        "--accept-changes", metavar="", help="Add trials to stored ones that were computed by code changed since."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON object instead of tables.")]


class Budget(StrEnum):
    """How much computing a run may cost."""

    quick = "quick"
    standard = "standard"
    paper = "paper"
