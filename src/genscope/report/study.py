"""One study in the report: the figures of a selection, what failed, how it was obtained, and how to repeat it.

Guarantee: exact; all numbers are those of the selection's reading, and every finished trial of it is counted.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from genscope.lab import Figure, Reading, Search, Selection
from genscope.lab.results.again import again
from genscope.lab.results.raised import own_line
from genscope.lab.statistics.threshold import words_of
from genscope.report import words
from genscope.report.reduced import Reduced, reduced
from genscope.report.sections import WordTable, section_of
from genscope.report.thumbnail import thumbnail

_AGAIN = "sqlite:///again.db"
_SHOWN = 12  # distinct values or errors listed before the rest is only counted


@dataclass(frozen=True)
class ShownFigure:
    """A figure as the page shows it: under what it found, with what it shows as its subject."""

    anchor: str
    title: str
    subject: str
    caption: str
    source: str
    svg: Markup | None
    notes: Sequence[str]
    tables: Sequence[WordTable]
    data: Sequence[WordTable]
    folded: bool
    claims: Sequence[str]
    numbers: InitVar[Sequence[Reduced]]

    def __post_init__(self, numbers: Sequence[Reduced]) -> None:
        object.__setattr__(self, "_numbers", numbers)  # no field: the explorer passes fields on as JSON

    @functools.cached_property
    def thumbnail(self) -> Markup | None:
        """A small drawing without words; none where there is no drawing. Few are looked at, so it is drawn if asked."""
        made = thumbnail(self._numbers, f"{self.anchor}t")  # pyright: ignore[reportAttributeAccessIssue]  # see above
        return None if made is None else Markup(made)

    @property
    def name(self) -> str:
        """What it shows, whatever was found."""
        return self.subject or self.title

    @property
    def empty(self) -> bool:
        """Nothing but notes: no drawing."""
        return self.svg is None

    @property
    def absent(self) -> bool:
        """Nothing at all, for want of trials."""
        return self.svg is None and not self.notes


@dataclass(frozen=True)
class ShownStudy:
    """A study as the page shows it: one selection, the titles of the others."""

    anchor: str
    name: str
    title: str
    source: str
    revision: int
    about: Sequence[str]
    notes: Sequence[str]
    selection: str
    others: Sequence[str]
    figures: Sequence[ShownFigure]
    failures: WordTable | None
    facts: Sequence[tuple[str, str]]
    command: str

    @property
    def paper(self) -> str:
        """The citation key that the source begins with."""
        return self.source.partition(",")[0].strip()


def show(
    manifest: Mapping[str, Any],
    selection: Selection,
    reading: Reading,
    *,
    others: Sequence[Selection],
    anchor: str,
) -> ShownStudy:
    """A study from its manifest and what is read of a selection."""
    about = [" ".join(part.split()) for part in manifest.get("trial", "").split("\n\n")]
    used = {*reading.frame["provenance"]}
    origins = [facts for name, facts in reading.origins.items() if name in used]
    return ShownStudy(
        anchor=anchor,
        name=manifest["name"],
        title=manifest["title"],
        source=manifest["source"],
        revision=manifest["revision"],
        about=[part for part in about if part],
        notes=reading.remarks,
        selection=selection.title,
        others=[each.title for each in others],
        figures=[
            _figure(facts, reading, f"{anchor}-{number}")
            for number, facts in enumerate(manifest.get("figures", ()), start=1)
        ],
        failures=_failures(selection, reading),
        facts=[*_effort(manifest, selection, reading), *_origin(origins)],
        command=_repeat(selection),
    )


def _figure(facts: Mapping[str, Any], reading: Reading, anchor: str) -> ShownFigure:
    try:
        figure = Figure.from_manifest(facts)
    except ValueError as error:  # a store written by a newer genscope: its other figures can still be read
        title = str(facts.get("title", "A figure"))
        told = [f"This figure cannot be drawn. {error}"]
        return ShownFigure(anchor, title, "", "", "", None, told, (), (), False, (), ())
    found = reduced(figure, reading)
    made = section_of(figure, found, anchor)
    return ShownFigure(
        anchor=anchor,
        title=made.heading,
        subject="" if made.heading == figure.title else figure.title,
        caption=figure.caption,
        source=figure.source,
        svg=None if made.svg is None else Markup(made.svg),
        notes=made.notes,
        tables=made.tables,
        data=made.data,
        folded=figure.folded,
        claims=figure.claims,
        numbers=found,
    )


def _repeat(selection: Selection) -> str:
    """What computes the selection in a store of its own, and draws it."""
    again = f"--store {_AGAIN}\ngenscope report --store {_AGAIN} --out again.html"
    return f"{selection.command} {again}" if selection.command else ""


def _failures(selection: Selection, reading: Reading) -> WordTable | None:
    """The exceptions that trials raised, how often, and the command that meets the first of each again."""
    failed = reading.frame.filter(pl.col("status") == "failed")
    if failed.is_empty():
        return None
    rows = []
    for (error,), group in failed.group_by("error", maintain_order=True):
        command = again(selection, reading.failed.get(group["id"][0]), str(error))
        rows.append([own_line(str(error)), str(group.height), command])
    left = [[f"{len(rows) - _SHOWN} other errors", "", ""]] if len(rows) > _SHOWN else []
    return WordTable("Trials that raised an exception", ["error", "trials", "again"], rows[:_SHOWN] + left)


def _effort(manifest: Mapping[str, Any], selection: Selection, reading: Reading) -> Iterator[tuple[str, str]]:
    frame = reading.frame
    if frame.is_empty():
        yield "trials", "none finished yet"
        return
    failed = frame.filter(pl.col("status") == "failed").height
    odd, more = _not_finite(frame), f", {reading.missing} missing" if reading.missing else ""
    told = f"{failed} raised an exception, {odd} measured a number that is not finite{more}"
    yield "trials", f"{frame.height} finished, {told}"
    outcomes = [
        column for column in frame.get_columns() if column.dtype == pl.Boolean and column.name not in manifest["axes"]
    ]
    if outcomes:
        yield "outcomes", ", ".join(f"{column.name.replace('_', ' ')} {column.sum()}" for column in outcomes)
    for axis in manifest["axes"]:
        if axis in frame.columns:
            values = sorted(value for value in frame[axis].unique().to_list() if value is not None)
            more = f" and {len(values) - _SHOWN} more, up to {words.value(values[-1])}" if len(values) > _SHOWN else ""
            yield axis.replace("_", " "), ", ".join(map(words.value, values[:_SHOWN])) + more
    seeds = frame["seed"].unique().sort().to_list()
    yield "seeds", f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    if selection.search is not None:
        yield "search", _design(selection.search)
    if manifest.get("paired"):
        yield "same data for every", ", ".join(name.replace("_", " ") for name in manifest["paired"])
    run, compiled = (sum(frame[name].to_list()) for name in ("seconds", "compile_seconds"))
    yield "time", f"{words.duration(run)} running, {words.duration(compiled)} compiling"
    yield "last finished", f"{frame['finished'].max():%Y-%m-%d %H:%M} UTC"


def _design(search: Search) -> str:
    axis, outcome = search.axis.replace("_", " "), search.outcome.replace("_", " ")
    levels = " and ".join(map(words_of, search.levels))
    return (
        f"along {axis} from {search.lowest} to {search.highest} for the size at which {outcome} has probability "
        f"{levels}, until its interval at {100 * search.confidence:g} % is within {100 * search.width:g} % of "
        f"it, in rounds of {search.round}, with at most {search.trials} trials at a point"
    )


def _not_finite(frame: pl.DataFrame) -> int:
    """How many trials measured NaN or an infinity, alone or inside an array."""
    rows: set[int] = set()
    for column in frame.get_columns():
        long = pl.DataFrame({"row": range(frame.height), "value": column})
        while isinstance(long.schema["value"], pl.List):
            long = long.explode("value")
        if long.schema["value"].is_float():
            rows |= {*long.filter(~pl.col("value").is_finite())["row"].to_list()}
    return len(rows)


def _origin(provenances: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Where the trials were computed; several values where they came from several places."""
    for name in _ORIGINS:
        found = [facts[name] for facts in provenances if facts.get(name)]
        told = sorted({_TOLD.get(name, words.value)(value) for value in found})
        if told:
            yield _ORIGINS[name], "; ".join(told)


def _commit(facts: Mapping[str, Any]) -> str:
    if "file" in facts:
        inside = facts.get("commit")
        return f"{facts['file']}, {_commit(inside) if inside else 'not under version control'}"
    return f"{facts['commit'][:12]}{' with uncommitted changes' if facts.get('dirty') else ''}"


_ORIGINS = {
    "genscope": "commit",
    "study": "study's file",
    "sources": "digest of the code",
    "libraries": "libraries",
    "device": "device",
    "machine": "machine",
    "instructions": "instructions",
    "threads": "threads",
    "python": "python",
}
_TOLD = {
    "genscope": _commit,
    "study": _commit,
    "sources": lambda facts: f"{facts['digest']} of {len(facts['parts'])} parts",
}
