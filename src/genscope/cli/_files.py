"""Data frames as files for other tools.

Source: None (house design).
Departures: None.
Guarantee: a file is complete or not there; Parquet is exact, CSV writes lists as JSON text.
"""

import json
import os
import tempfile
from pathlib import Path

import polars as pl


def write_frame(frame: pl.DataFrame, path: Path, *, csv: bool) -> None:
    """Write a frame as CSV or Parquet: beside its place first, so that a full disk leaves no half of a file."""
    if path.is_dir() or not path.parent.is_dir():
        what = "a directory" if path.is_dir() else f"but there is no directory {path.parent}"
        raise ValueError(
            f"got {path} for the trials, {what}: they go to a file in an existing directory. "
            "Give a file name such as trials.csv, or make the directory first."
        )
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".genscope-")
    try:
        with open(handle, "wb") as file:
            if csv:
                flat(frame).write_csv(file)
            else:
                frame.write_parquet(file)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


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
