"""Looking through the trials of a study in a store: filtered, sorted, a page at a time, computed by the database.

A filter is a text such as `context_length=300 accuracy>=0.9 status=failed`: conditions that all hold.

Guarantee: exact; only what is shown leaves the database. A value that a trial does not have, and a number that is not
finite, meets no condition except `!=`, and comes last in every order.
"""

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import sqlalchemy as sa

from genscope.lab import values
from genscope.lab.storage import database
from genscope.lab.storage.schema import LEASE, TRIAL
from genscope.lab.storage.store import Store
from genscope.refusal import Refusal

Kind = Literal["number", "flag", "text", "array"]

_SEEN = 200  # trials that are looked at for the names and kinds of what was measured
_FIXED: Mapping[str, Kind] = {
    "seed": "number",
    "status": "text",
    "seconds": "number",
    "compile_seconds": "number",
    "finished": "number",
    "error": "text",
    "id": "text",
}
_OPERATORS = ("<=", ">=", "!=", "=", "<", ">", "~")
_CONDITION = re.compile(r"(\w+)\s*(<=|>=|!=|=|<|>|~)(.*)", re.DOTALL)
_FLAGS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


@dataclass(frozen=True)
class Column:
    """A name of the table, what it holds, and where: in the row itself, or in its JSON of axes or of values."""

    name: str
    kind: Kind
    place: Literal["row", "point", "result"]


@dataclass(frozen=True)
class Condition:
    """A comparison that trials must meet."""

    column: Column
    operator: str
    value: Any


@dataclass(frozen=True)
class Trials:
    """The trials of one revision of a study, as far as they meet all conditions."""

    study: str
    revision: int
    columns: Mapping[str, Column]
    conditions: Sequence[Condition] = ()

    def where(self, text: str) -> "Trials":
        """Those that also meet the conditions of a filter."""
        return Trials(self.study, self.revision, self.columns, [*self.conditions, *_parse(text, self.columns)])

    def count(self, store: Store) -> int:
        """How many there are."""
        with store.reading() as connection:
            query = sa.select(sa.func.count()).select_from(TRIAL).where(*self._clauses(store))
            return connection.scalar(query) or 0

    def page(self, store: Store, *, order: str, descending: bool, first: int, size: int) -> list[dict[str, Any]]:
        """Some of them in an order, each as a flat dictionary."""
        column = known(order, self.columns)
        with store.reading() as connection:
            key = _expression(store.dialect, column)
            ordered = (key.desc() if descending else key.asc()).nulls_last()
            query = (
                store.select(TRIAL).where(*self._clauses(store)).order_by(ordered, TRIAL.c.id).offset(first).limit(size)
            )
            return [_flat(row) for row in store.checked(TRIAL, connection.execute(query).mappings())]

    def frame(self, store: Store) -> pl.DataFrame:
        """All of them as `Store.frame` has them."""
        return store.frame(self.study, self.revision, where=self._conditions(store))

    def _clauses(self, store: Store) -> list[Any]:
        return [TRIAL.c.study == self.study, TRIAL.c.revision == self.revision, *self._conditions(store)]

    def _conditions(self, store: Store) -> list[Any]:
        return [_clause(store.dialect, condition) for condition in self.conditions]


def trials(store: Store, study: str, axes: Sequence[str], revision: int) -> Trials:
    """All trials of a study; what they measured is known from the first of them."""
    query = sa.select(TRIAL.c.point, TRIAL.c.result).where(TRIAL.c.study == study, TRIAL.c.revision == revision)
    with store.reading() as connection:
        rows = connection.execute(query.limit(_SEEN)).all()
    points, results = ([values.decode(row[place]) for row in rows] for place in (0, 1))
    found = {axis: Column(axis, _kind(axis, points), "point") for axis in axes}
    measured = dict.fromkeys(name for result in results for name in result)
    found |= {name: Column(name, _kind(name, results), "result") for name in measured}
    found |= {name: Column(name, kind, "row") for name, kind in _FIXED.items()}
    return Trials(study, revision, found)


def trial(store: Store, identity: str) -> dict[str, Any] | None:
    """One trial as a flat dictionary, with its study and revision."""
    with store.reading() as connection:
        found = connection.execute(store.select(TRIAL).where(TRIAL.c.id == identity)).mappings()
        rows = store.checked(TRIAL, found)
    return _flat(rows[0]) | {"study": rows[0]["study"], "revision": rows[0]["revision"]} if rows else None


def holders(store: Store) -> list[tuple[str, int, int]]:
    """Who works on the store now: host, process and the number of batches it holds."""
    with store.reading() as connection:
        held = (
            sa.select(LEASE.c.host, LEASE.c.pid, sa.func.count())
            .where(LEASE.c.expires > database.now(connection))
            .group_by(LEASE.c.host, LEASE.c.pid)
            .order_by(LEASE.c.host, LEASE.c.pid)
        )
        return [(host.partition(" ")[0], pid, number) for host, pid, number in connection.execute(held)]


def known(name: str, columns: Mapping[str, Column]) -> Column:
    """The column of a name, if trials can be compared by it."""
    if name in columns and columns[name].kind != "array":
        return columns[name]
    plain = [each.name for each in columns.values() if each.kind != "array"]
    near = difflib.get_close_matches(name, plain, n=1)
    advice = f"Did you mean {near[0]}?" if near else "Choose one of them."
    what = "an array" if name in columns else "not a column"
    raise Refusal(f"got {name[:60]!r}, {what} of this study: its columns are {', '.join(plain)}. {advice}")


def _kind(name: str, rows: Sequence[Mapping[str, Any]]) -> Kind:
    """What the first value that there is looks like."""
    value = next((row[name] for row in rows if row.get(name) is not None), None)
    if isinstance(value, bool):
        return "flag"
    return "array" if isinstance(value, list) else "text" if isinstance(value, str) else "number"


def _parse(text: str, columns: Mapping[str, Column]) -> list[Condition]:
    try:
        words = shlex.split(text)
    except ValueError:
        raise Refusal(f"got the filter {text[:60]!r}, in which a quotation mark is not closed. Close it.") from None
    return [_condition(word, columns) for word in words]


def _condition(word: str, columns: Mapping[str, Column]) -> Condition:
    match = _CONDITION.fullmatch(word)
    if match is None:
        raise Refusal(
            f"got the condition {word[:60]!r}: a condition is a column, one of {' '.join(_OPERATORS)} and a value, "
            "without spaces. Write it like context_length=300, or like error~'out of memory'."
        )
    name, operator, value = match.groups()
    column = known(name, columns)
    wrong = f"got the condition {word[:60]!r}: {name} is a {column.kind}"
    if column.kind == "text":
        if operator not in ("=", "!=", "~"):
            raise Refusal(f"{wrong}, which is text: compare it with = or !=, or search it with ~.")
        return Condition(column, operator, value)
    if column.kind == "flag":
        if operator not in ("=", "!=") or value not in _FLAGS:
            raise Refusal(f"{wrong}, which is yes or no. Write {name}=yes or {name}=no.")
        return Condition(column, operator, _FLAGS[value])
    number = _number(value)
    if operator == "~" or number is None:
        raise Refusal(f"{wrong}, which is a number: compare it with = != < <= > or >=. Write, for example, {name}>=1.")
    return Condition(column, operator, number)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _expression(dialect: str, column: Column) -> Any:
    """A column as SQL; SQLite reads JSON from text, PostgreSQL after a cast."""
    if column.place == "row":
        return TRIAL.c[column.name]
    text = TRIAL.c[column.place]
    json = sa.cast(text, sa.JSON) if dialect == "postgresql" else sa.type_coerce(text, sa.JSON)
    part = json[column.name]
    return {"number": part.as_float, "flag": part.as_boolean, "text": part.as_string}[column.kind]()


def _clause(dialect: str, condition: Condition) -> Any:
    found, value = _expression(dialect, condition.column), condition.value
    match condition.operator:
        case "=":
            return found == value
        case "!=":
            return sa.or_(found != value, found.is_(None))
        case "<":
            return found < value
        case "<=":
            return found <= value
        case ">":
            return found > value
        case ">=":
            return found >= value
        case _:
            return found.contains(value, autoescape=True)


def _flat(row: Mapping[Any, Any]) -> dict[str, Any]:
    own = {name: row[name] for name in _FIXED}
    return {**values.decode(row["point"]), **values.decode(row["result"]), **own, "provenance": row["provenance"]}
