"""Data frames as files for other tools.

Guarantee: a file is complete or not there; Parquet is exact, CSV writes what `lab.frames.flat` makes of it.
"""

import io
from pathlib import Path

import polars as pl

from genscope.files import check_place, draft
from genscope.lab.frames import flat


def write_frame(frame: pl.DataFrame, path: Path, *, csv: bool) -> None:
    """Write a frame as CSV or Parquet: beside its place first, so that a full disk leaves no half of a file."""
    check_place(path, "the trials", "trials.csv")
    content = io.BytesIO()  # polars names no reason when a file of its own cannot be written
    flat(frame).write_csv(content) if csv else frame.write_parquet(content)
    with draft(path) as beside:
        beside.write_bytes(content.getbuffer())
