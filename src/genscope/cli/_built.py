"""What the construct commands share: the file of a model, and how they end.

Guarantee: a model that does not verify is not written, and the status is then 1.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from genscope.cli._errors import complain

Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the model to a safetensors file.")]


def conclude(
    facts: dict[str, Any],
    model: Any,
    *,
    verified: bool,
    out: Path | None,
    as_json: bool,
    show: Callable[[dict[str, Any]], None],
    advice: Callable[[], str],
) -> None:
    """Write the model, print the facts with its file, and end with advice where the weights do not verify."""
    from genscope.cli._output import echo, print_json
    from genscope.models.file import save

    if out is not None and verified:
        save(model, out)
    facts["file"] = str(out) if out is not None and verified else None
    if as_json:
        print_json(facts)
    else:
        show(facts)
        if facts["file"] is not None:
            echo(f"model written to {facts['file']}")
    if not verified:
        complain(advice())
        raise typer.Exit(1)
