"""One study's account: its figures, what failed, how the numbers were obtained, and the commands that repeat them.

Source: product.md, Section 8.
Departures: None.
Guarantee: exact; every finished trial of the study is counted.
"""

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from genscope.lab.figure import Figure, Heatmap
from genscope.lab.threshold import Search
from genscope.report import words
from genscope.report.sections import Table, section

_AGAIN = "sqlite:///again.db"
_SHOWN = 12  # distinct values or errors listed before the rest is only counted


@dataclass(frozen=True)
class Shown:
    """A figure as the page shows it."""

    anchor: str
    title: str
    caption: str
    source: str
    svg: Markup | None
    notes: Sequence[str]
    tables: Sequence[Table]
    data: Table | None
    command: str

    @property
    def empty(self) -> bool:
        """Nothing but a note: no drawing and no table."""
        return self.svg is None and not self.tables and self.data is None


@dataclass(frozen=True)
class Account:
    """A study as the page shows it."""

    anchor: str
    name: str
    title: str
    source: str
    revision: int
    about: Sequence[str]
    figures: Sequence[Shown]
    failures: Table | None
    facts: Sequence[tuple[str, str]]

    @property
    def paper(self) -> str:
        """The citation key that the source begins with."""
        return self.source.partition(",")[0].strip()


def account(
    manifest: Mapping[str, Any], frame: pl.DataFrame, provenances: Mapping[str, Mapping[str, Any]], anchor: str
) -> Account:
    """The account of a study from its manifest, its records and where they come from."""
    about = [" ".join(part.split()) for part in manifest.get("trial", "").split("\n\n")]
    figures = [
        _shown(facts, manifest, frame, f"{anchor}-{number}")
        for number, facts in enumerate(manifest.get("figures", ()), start=1)
    ]
    return Account(
        anchor=anchor,
        name=manifest["name"],
        title=manifest["title"],
        source=manifest["source"],
        revision=manifest["revision"],
        about=[part for part in about if part],
        figures=figures,
        failures=_failures(manifest, frame),
        facts=[*_effort(manifest, frame), *_origin(provenances)],
    )


def _shown(facts: Mapping[str, Any], manifest: Mapping[str, Any], frame: pl.DataFrame, anchor: str) -> Shown:
    try:
        figure = Figure.from_manifest(facts)
    except ValueError as error:  # a store written by a newer genscope: its other figures can still be read
        title = str(facts.get("title", "A figure"))
        return Shown(anchor, title, "", "", None, [f"This figure cannot be drawn. {error}"], (), None, "")
    made = section(figure, frame, _search(manifest, frame), anchor)
    svg = None if made.svg is None else Markup(made.svg)
    command = _command(figure, manifest, frame)
    return Shown(anchor, figure.title, figure.caption, figure.source, svg, made.notes, made.tables, made.data, command)


def _command(figure: Figure, manifest: Mapping[str, Any], frame: pl.DataFrame) -> str:
    """What computes the trials of a figure in a store of its own, and draws them."""
    budget = _budget(manifest, frame)
    parts = ["genscope", "run", manifest["name"], "--budget", budget]
    for axis, wanted in figure.where.items():
        if axis in manifest["axes"]:
            values = wanted if isinstance(wanted, tuple) else (wanted,)
            parts += ["--where", f"{axis}={','.join(str(value) for value in values)}"]
    if isinstance(figure, Heatmap) and figure.seed is not None and not manifest["budgets"][budget]["search"]:
        parts += ["--seed", str(figure.seed)]
    return f"{shlex.join(parts)} --store {_AGAIN}\ngenscope report --store {_AGAIN} --out again.html"


def _budget(manifest: Mapping[str, Any], frame: pl.DataFrame) -> str:
    """The budget whose points are most like the stored ones; of equals, the cheapest."""
    plans = manifest["budgets"]

    def likeness(budget: str) -> float:
        planned = plans[budget]["points"]
        axes = [axis for axis in (planned[0] if planned else ()) if axis in frame.columns]
        stored = set(frame.select(axes).unique().rows()) if axes else set()
        wanted = {tuple(point.get(axis) for axis in axes) for point in planned}
        return len(stored & wanted) / max(1, len(stored | wanted))

    return max(plans, key=likeness)


def _search(manifest: Mapping[str, Any], frame: pl.DataFrame) -> Search | None:
    """The search that chose the sizes; settings that this version does not know are left out."""
    settings = manifest["budgets"][_budget(manifest, frame)]["search"]
    known = {each.name for each in dataclasses.fields(Search)}
    return Search(**{name: value for name, value in settings.items() if name in known}) if settings else None


def _failures(manifest: Mapping[str, Any], frame: pl.DataFrame) -> Table | None:
    """The exceptions that trials raised, how often, and the command that meets the first of each again."""
    failed = frame.filter(pl.col("status") == "failed")
    if failed.is_empty():
        return None
    axes = [axis for axis in manifest["axes"] if axis in frame.columns]
    rows = []
    for (error,), group in failed.group_by("error", maintain_order=True):
        first = group.row(0, named=True)
        where = [part for axis in axes for part in ("--where", f"{axis}={first[axis]}")]
        again = shlex.join(["genscope", "run", manifest["name"], *where, "--seed", str(first["seed"])])
        last_line = str(error).strip().splitlines()[-1:] or ["no message"]
        rows.append([last_line[0], str(group.height), again])
    left = [[f"{len(rows) - _SHOWN} other errors", "", ""]] if len(rows) > _SHOWN else []
    return Table("Trials that raised an exception", ["error", "trials", "again"], rows[:_SHOWN] + left)


def _effort(manifest: Mapping[str, Any], frame: pl.DataFrame) -> Iterator[tuple[str, str]]:
    if frame.is_empty():
        yield "trials", "none finished yet"
        return
    failed = frame.filter(pl.col("status") == "failed").height
    odd = _not_finite(frame)
    yield "trials", f"{frame.height} finished, {failed} raised an exception, {odd} measured a number that is not finite"
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
    if search := _search(manifest, frame):
        yield "search", _design(search)
    if manifest.get("paired"):
        yield "same data for every", ", ".join(name.replace("_", " ") for name in manifest["paired"])
    run, compiled = (sum(frame[name].to_list()) for name in ("seconds", "compile_seconds"))
    yield "time", f"{words.duration(run)} running, {words.duration(compiled)} compiling"
    yield "last finished", f"{frame['finished'].max():%Y-%m-%d %H:%M} UTC"


def _design(search: Search) -> str:
    axis, outcome = search.axis.replace("_", " "), search.outcome.replace("_", " ")
    return (
        f"along {axis} from {search.lowest} to {search.highest} for the size at which {outcome} has probability "
        f"{search.level:g}, until its interval at {100 * search.confidence:g} % is within {100 * search.width:g} % of "
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


def _origin(provenances: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Where the trials were computed; several values where they came from several places."""
    for name in ("genscope", "study", "libraries", "device", "machine", "python"):
        found = [facts[name] for facts in provenances.values() if facts.get(name)]
        told = sorted({_commit(value) if name in ("genscope", "study") else words.value(value) for value in found})
        if told:
            yield {"genscope": "commit", "study": "study's file"}.get(name, name), "; ".join(told)


def _commit(facts: Mapping[str, Any]) -> str:
    if "file" in facts:
        inside = facts.get("commit")
        return f"{facts['file']}, {_commit(inside) if inside else 'not under version control'}"
    return f"{facts['commit'][:12]}{' with uncommitted changes' if facts.get('dirty') else ''}"
