"""`genscope export`: the trials of a study as a file for other tools.

Source: product.md, Section 2.
Departures: None.
Guarantee: exact; Parquet holds what `Store.frame` gives, CSV writes lists as JSON text.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from genscope.cli._options import DEFAULT_STORE, AsJson, StoreUrl


class Format(StrEnum):
    """Kinds of files."""

    parquet = "parquet"
    csv = "csv"


def export(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Name of a study in the store.")],
    format: Annotated[Format, typer.Option("--format", help="Kind of file.")] = Format.parquet,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Default: STUDY.parquet or .csv. A file of that name is replaced."),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Write the trials of a study to a file for other tools.

    Example: genscope export edelman2022-and --format csv --out trials.csv
    """
    from genscope.cli._files import write_frame
    from genscope.cli._output import print_json
    from genscope.lab import Store

    with Store(store, read_only=True) as opened:
        frame = opened.frame(study)
    path = out or Path(f"{study}.{format.value}")
    write_frame(frame, path, csv=format is Format.csv)
    facts = {"study": study, "file": str(path), "format": format.value, "rows": frame.height, "columns": frame.columns}
    if as_json:
        print_json(facts)
    else:
        typer.echo(f"{path}: {frame.height} trials, {frame.width} columns")
