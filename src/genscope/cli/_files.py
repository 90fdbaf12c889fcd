"""Data frames as files for other tools.

Source: None (house design).
Departures: None.
Guarantee: a file is complete or not there; Parquet is exact, CSV writes lists as JSON text.
"""

import json
from pathlib import Path

import polars as pl

from genscope.files import check_place, draft


def write_frame(frame: pl.DataFrame, path: Path, *, csv: bool) -> None:
    """Write a frame as CSV or Parquet: beside its place first, so that a full disk leaves no half of a file."""
    check_place(path, "the trials", "trials.csv")
    with draft(path) as beside:
        flat(frame).write_csv(beside) if csv else frame.write_parquet(beside)


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with lists as JSON text, since a CSV cell holds one text.

    >>> flat(pl.DataFrame({"curve": [[1, 2], None]}))["curve"].to_list()
    ['[1, 2]', None]
    """
    nested = [column for column in frame.get_columns() if column.dtype.is_nested()]
    return frame.with_columns(
        pl.Series(column.name, [None if cell is None else json.dumps(cell) for cell in column.to_list()], pl.String)
        for column in nested
    )
