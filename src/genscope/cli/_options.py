"""Options that several commands share. Option names are words.

Departures: the store may also be named by the environment variable GENSCOPE_STORE.
Guarantee: exact.
"""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from genscope.refusal import Refusal

DEFAULT_STORE = "sqlite:///genscope.db"
SEEDS = 2**32  # how many keys a number may choose from
SEED = f"must be between 0 and {SEEDS - 1}"


Budget = Literal["quick", "standard", "paper"]
Retry = Literal["failed"]


BudgetChoice = Annotated[Budget, typer.Option("--budget", help="How much compute to spend.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print how many trials would run, and for how long.")]
RetryFailed = Annotated[Retry | None, typer.Option("--retry", help="Run failed trials again.")]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", help="Run trials in N processes, one core each.")
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Compute on a Dask scheduler's workers: tcp://host:8786."),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        help="Stop a trial that takes longer and count it as failed. Runs trials in processes, one per core unless "
        "--workers says otherwise.",
    ),
]
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
    typer.Option("--accept-changes", help="Add to stored trials although the code has changed since."),
]
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A genscope model file; or package.module:name or file.py:name of a model, or of a class or function that "
        "returns one.",
    ),
]
DataFile = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Inputs x (or several, by name), labels y, perhaps a mask of tokens: .safetensors, or .npz without "
        "pickles.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def store_option(given: str, address: str) -> str:
    """How a command to repeat names the store: not at all if it is the default one, and never with a password."""
    return "" if given == DEFAULT_STORE else f" --store {shlex.quote(address)}"


def check_options(command: str, *checks: tuple[str, float, bool, str]) -> None:
    """Refuse what does not fit, and nothing else: name, value, whether it fits, and what would."""
    wrong = [(name, value, allowed) for name, value, fits, allowed in checks if not fits]
    if wrong:
        given = " and ".join(f"{name} {value:.12g}" for name, value, _ in wrong)
        asked = "; ".join(f"{name} {allowed}" for name, _, allowed in wrong)
        raise Refusal(f"{command} got {given}: {asked}. Correct {'it' if len(wrong) == 1 else 'them'}.")
