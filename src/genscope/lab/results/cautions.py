"""What a reader of numbers should know of the trials behind them: those that raised, diverged or measured no number."""

from collections.abc import Iterator

import polars as pl

from genscope.lab.results.raised import own_line


def failed_trials(frame: pl.DataFrame) -> pl.DataFrame:
    """The trials that raised an exception."""
    return frame.filter(pl.col("status") == "failed")


def cautions(frame: pl.DataFrame) -> Iterator[str]:
    """One sentence for each kind of trial to beware of."""
    failed = failed_trials(frame)
    if len(failed):
        said = own_line(failed["error"][0] or "")
        yield (
            f"{len(failed)} of {len(frame)} trials raised an exception; the first says: {said} "
            "(--retry failed runs them again)"
        )
    if "diverged" in frame.columns and frame.schema["diverged"] == pl.Boolean and (number := frame["diverged"].sum()):
        yield f"{number} of {len(frame)} trials diverged"
    floats = [column for column in frame.get_columns() if column.dtype.is_float()]
    odd = frame.filter(pl.any_horizontal(*(~column.is_finite() for column in floats))) if floats else frame.clear()
    if len(odd):
        yield f"{len(odd)} of {len(frame)} trials measured a number that is not finite"
