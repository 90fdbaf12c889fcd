"""Stored trials as data frames. Apart from `values` and the store, since polars takes as long to load as a database.

Guarantee: exact; every value comes back as it was.
"""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from genscope.lab.values import MARK

NAMES = ("id", "seed", "status", "error", "seconds", "compile_seconds", "finished", "provenance")


def of_rows(rows: Sequence[Sequence[Any]], revision: int) -> pl.DataFrame:
    """Rows of `NAMES`, then a point and its results as JSON texts; ordered by point and seed."""
    *fixed, points, results = [*zip(*rows, strict=True)][: len(NAMES) + 2] if rows else [()] * (len(NAMES) + 2)
    kinds = (pl.String, pl.Int64, pl.String, pl.String, pl.Float64, pl.Float64, pl.Float64, pl.String)
    common = pl.DataFrame(
        [pl.Series(name, column, kind) for name, column, kind in zip(NAMES, fixed, kinds, strict=True)]
    ).with_columns(
        (pl.col("finished") * 1e6).cast(pl.Datetime("us", "UTC")), pl.lit(revision, pl.Int64).alias("revision")
    )
    texts = pl.DataFrame({"id": pl.Series(points, dtype=pl.String)})
    known = texts.unique(maintain_order=True)  # a point has many seeds, and its text is parsed once
    axes = known.hstack(columns(known["id"].to_list()))
    axes = texts.join(axes, on="id", how="left", maintain_order="left").drop("id")
    measured = columns(results)
    ordered = [*axes.columns, "seed", *measured.columns, *NAMES[2:], "revision", "id"]
    return pl.concat([axes, common, measured], how="horizontal").select(ordered).sort([*axes.columns, "seed"])


def columns(texts: Sequence[str]) -> pl.DataFrame:
    """One column per name, one row per JSON text; null where a text lacks the name."""
    if all(text == "{}" for text in texts):
        return pl.DataFrame(height=len(texts))
    frame = pl.Series(texts, dtype=pl.String).str.json_decode(infer_schema_length=None).struct.unnest()
    names = list(dict.fromkeys(name.removeprefix(MARK) for name in frame.columns))
    for bare in names:
        name = MARK + bare
        if name not in frame.columns:
            continue
        numbers = frame[name].cast(_numeric(frame.schema[name]))
        if bare in frame.columns:
            frame = frame.with_columns(frame[bare].cast(numbers.dtype))
            numbers = frame.select(pl.coalesce(bare, numbers)).to_series()
        frame = frame.with_columns(numbers.alias(bare))
    return frame.select(names)


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as CSV may hold it: lists as JSON text, and before a text that begins like a formula an apostrophe.

    Spreadsheets compute cells that begin with =, +, -, @, a tab or a carriage return, some also after empty lines; a
    formula may call out.

    >>> flat(pl.DataFrame({"curve": [[1, 2], None], "kind": ["=1+1", "a=b"], "loss": [-1.0, 2.0]})).rows()
    [('[1, 2]', "'=1+1", -1.0), (None, 'a=b', 2.0)]
    """
    nested = [column for column in frame.get_columns() if column.dtype.is_nested()]
    texts = [pl.col(name) for name, kind in frame.schema.items() if kind == pl.String]
    return frame.with_columns(
        *(
            pl.when(text.str.contains(r"^\n*[=+\-@\t\r]")).then(pl.lit("'") + text).otherwise(text).name.keep()
            for text in texts
        ),
        *(
            pl.Series(column.name, [None if cell is None else json.dumps(cell) for cell in column.to_list()], pl.String)
            for column in nested
        ),
    )


def _numeric(kind: Any) -> Any:
    return pl.List(_numeric(kind.inner)) if isinstance(kind, pl.List) else pl.Float64()
