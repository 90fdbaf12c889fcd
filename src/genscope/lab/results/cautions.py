"""What a reader of a run's numbers should know of its trials: failures, mixtures, and values that are no numbers."""

from collections.abc import Iterator

import polars as pl

from genscope.lab.results.reading import Reading


def cautions(reading: Reading) -> Iterator[str]:
    """One sentence for each kind of trial to beware of."""
    frame = reading.frame
    for remark in reading.remarks:
        yield f"{remark} (--retry failed runs them again)" if "raised an exception" in remark else remark
    if "diverged" in frame.columns and frame.schema["diverged"] == pl.Boolean and (number := frame["diverged"].sum()):
        yield f"{number} of {len(frame)} trials diverged"
    floats = [column for column in frame.get_columns() if column.dtype.is_float()]
    odd = frame.filter(pl.any_horizontal(*(~column.is_finite() for column in floats))) if floats else frame.clear()
    if len(odd):
        yield f"{len(odd)} of {len(frame)} trials measured a number that is not finite"
