"""`genscope export`: the trials of a study as a file for other tools.

Guarantee: Parquet holds what `Store.frame` gives, exactly; CSV writes lists as JSON text, and an apostrophe before a
text that a spreadsheet would take for a formula.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from genscope.cli._options import DEFAULT_STORE, AsJson, Budget, StoreUrl
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from genscope.lab import Reading, Store


Format = Literal["parquet", "csv"]


def export(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Name of a study in the store.")],
    format: Annotated[
        Format | None, typer.Option("--format", help="Kind of file. Default: what FILE ends with, else parquet.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Default: STUDY.parquet or .csv. A file of that name is replaced."),
    ] = None,
    budget: Annotated[Budget | None, typer.Option("--budget", help="Only the trials of this budget.")] = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Write the trials of a study to a file for other tools.

    Example: genscope export edelman2022-and --out trials.csv
    """
    from genscope.cli._errors import complain
    from genscope.cli._files import write_frame
    from genscope.cli._output import echo, print_json
    from genscope.lab import Store
    from genscope.lab.results.cautions import cautions

    ending = out.suffix.lower() if out is not None else ""
    if format is None and ending not in ("", ".csv", ".parquet"):
        raise Refusal(
            f"export got --out {out}: the file's name must end in .csv or .parquet, or --format must say which."
        )
    with Store(store, read_only=True) as opened:
        reading = _reading(opened, study, budget)
    frame, warnings = reading.frame, [*cautions(reading)]
    kind: Format = format or ("csv" if ending == ".csv" else "parquet")
    path = out or Path(f"{study}.{kind}")
    write_frame(frame, path, csv=kind == "csv")
    facts = {"study": study, "file": str(path), "format": kind, "rows": frame.height, "columns": frame.columns}
    for warning in warnings:
        complain(f"warning: {warning}")
    if as_json:
        print_json(facts | {"warnings": warnings, "sources": _sources(reading)})
    else:
        echo(f"{path}: {frame.height} trials, {frame.width} columns")


def _sources(reading: "Reading") -> dict[str, str | None]:
    """By the values of the column `provenance`, the digest of the code, as the warnings name it."""
    return {
        name: reading.origins.get(name, {}).get("sources", {}).get("digest") for name in reading.frame["provenance"]
    }


def _reading(store: "Store", study: str, budget: Budget | None) -> "Reading":
    """All stored trials of a study, or those of its largest selection at a budget."""
    from genscope.lab.results.reading import largest, read

    if budget is None:
        return read(store, store.everything(study))
    selections = store.selections(study)
    found = [each for each in selections if each.budget == budget]
    if not found:
        known = "; ".join(each.title for each in selections)
        raise Refusal(f"got {study} at budget {budget}: the store holds {known}. Choose one, or leave it out.")
    return largest(store, found)[1]
