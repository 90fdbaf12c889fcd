"""Store and Record: results of trials in a SQL database, written once and never edited.

Guarantee: exact; what `add` has returned from is on disk, once, whoever wrote it and whatever is killed afterwards.
"""

import hashlib
import itertools
import json
import operator
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa

from genscope.lab import values
from genscope.lab.plans.selection import Selection
from genscope.lab.plans.study import Trial, canonical
from genscope.lab.storage import checksums, database, integrity, leases, legacy, schema
from genscope.lab.storage.failures import Damaged, clear_errors, patient, stored_json
from genscope.lab.storage.schema import PROVENANCE, SELECTION, STUDY, TRIAL, VERDICT
from genscope.refusal import Refusal

if TYPE_CHECKING:
    import polars

DEFAULT_URL = "sqlite:///genscope.db"
MACHINE_FAILED = "the machine failed, not the trial"  # how the error of such a trial begins
TOO_LONG, DIED = "the trial took longer than ", "the trial's process "  # and of one that ended a worker process
LOST: Mapping[str, Any] = {"lost": True}  # the facts of a provenance that trials name and their store did not hold
_CHUNK = 5_000  # identities in one query: SQLite takes at most 32,766 parameters


@dataclass(frozen=True)
class Record:
    """A finished trial: what it measured or why it failed, how long it took, and where the numbers come from.

    `values` are plain Python scalars and nested lists (`values.plain` makes them); `error` is None unless the trial
    raised an exception, and begins with `MACHINE_FAILED` where that was none of its own; `seconds` leaves out the time
    of compilation.
    """

    trial: Trial
    values: Mapping[str, Any]
    error: str | None = None
    seconds: float = 0.0
    compile_seconds: float = 0.0
    provenance: Mapping[str, Any] = field(default_factory=dict)
    finished: float = field(default_factory=time.time)

    def __post_init__(self):
        for name in ("seconds", "compile_seconds", "finished"):
            if not checksums.is_time(value := getattr(self, name)):
                raise Refusal(
                    f"Record got {name}={value!r}: times are Python numbers, finite and not negative. Convert it with "
                    "float(), or leave it out."
                )

    @property
    def status(self) -> str:
        """`ok` or `failed`; a trial that measured NaN is ok, one that raised an exception failed."""
        return "ok" if self.error is None else "failed"


@dataclass(frozen=True)
class Copied:
    """How many trials a store has, of all revisions, and what became of them in another."""

    trials: int
    new: int
    replaced: int
    """Failed ones of the other store, whose trial had succeeded in this one."""
    lost: int
    """Those that name a provenance which is not there."""


class Store:
    """Results by URL: a SQLite file by default, PostgreSQL for a team."""

    def __init__(self, url: str = DEFAULT_URL, *, read_only: bool = False, lease_seconds: float = 60.0):
        parts = database.parse(url)
        self.url = database.shown(parts)
        self.read_only = read_only
        self.lease_seconds = lease_seconds
        self._holder = leases.Holder()
        if read_only or database.exists(parts):
            # Looked at through a connection that cannot write: what is not ours stays as it is, byte for byte.
            self._engine = database.engine(parts, read_only=True)
            with self._closed_after(always=not read_only), self.reading() as connection:
                integrity.look_quickly(connection, parts, self.url)
                self._version = schema.check(connection, self.url, read_only=read_only)
                if misfits := list(schema.misfits(connection, self._version)) if self._version else []:
                    raise Damaged(self.url, "; ".join(misfits))
        if not read_only:
            self._engine = database.engine(parts, read_only=False)
            with self._closed_after(), clear_errors(self.url):
                database.prepare_for_writing(self._engine)
                with self._write() as connection:
                    schema.bring_up_to_date(connection, self.url)
            self._version = schema.VERSION

    def close(self) -> None:
        """Close all connections; the store may be used again and then opens new ones."""
        self._engine.dispose()

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.url!r}{', read_only=True' if self.read_only else ''})"

    @contextmanager
    def _closed_after(self, *, always: bool = False) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._engine.dispose()
            raise
        if always:
            self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection that sees one moment of the store and writes nothing."""
        with clear_errors(self.url), database.reader(self._engine).connect() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        if self.read_only:
            raise Refusal(
                f"The store {self.url} was opened read-only, so nothing can be written. Open it without read_only."
            )
        with clear_errors(self.url), self._engine.execution_options(write=True).begin() as connection:
            yield connection

    # Trials

    def add(
        self, records: Iterable[Record], *, leased: Sequence[Trial] | None = None, retried: float | None = None
    ) -> None:
        """Store finished trials in one transaction; one that is already stored stays, unless it is `retried`.

        The same transaction gives back the batch `leased`. Here and below, failures that were stored up to the moment
        `retried` do not count: their trials run again, and are replaced when they have a new outcome.
        """
        rows, facts = [], {}
        for record in records:
            source = _identity(dict(record.provenance))
            facts[source] = json.dumps(record.provenance)
            rows.append(
                {
                    "id": record.trial.id,
                    "study": record.trial.study,
                    "revision": record.trial.revision,
                    "point": values.encode(record.trial.point),
                    "seed": record.trial.seed,
                    "status": record.status,
                    "result": values.encode(record.values),
                    "error": _storable(record.error),
                    "seconds": record.seconds,
                    "compile_seconds": record.compile_seconds,
                    "provenance": source,
                    "finished": record.finished,
                }
            )
        if rows:
            # In one order, whoever writes: two writers of the same trials wait for each other and never in a circle.
            rows.sort(key=operator.itemgetter("id"))
            self._insert(rows, [{"id": name, "facts": facts[name]} for name in sorted(facts)], leased, retried)

    @patient
    def _insert(
        self,
        rows: list[dict[str, Any]],
        sources: list[dict[str, str]],
        leased: Sequence[Trial] | None,
        retried: float | None,
    ):
        with self._write() as connection:
            if retried is not None:
                for ids in _chunks([row["id"] for row in rows]):
                    connection.execute(sa.delete(TRIAL).where(TRIAL.c.id.in_(ids), ~_counts(retried)))
            connection.execute(database.insert_new(connection, PROVENANCE), checksums.sealed(PROVENANCE, sources))
            connection.execute(database.insert_new(connection, TRIAL), checksums.sealed(TRIAL, rows))
            if leased is not None:
                leases.release(connection, self._holder, leased)
        if leased is not None:
            self._holder.batches.discard(leases.batch_id(leased))

    @patient
    def done(self, study: str, revision: int | None = None, *, retried: float | None = None) -> set[str]:
        """Identities of the finished trials of a study, failed ones among them; of all revisions, or of one."""
        query = sa.select(TRIAL.c.id).where(TRIAL.c.study == study, _counts(retried))
        if revision is not None:
            query = query.where(TRIAL.c.revision == revision)
        with self.reading() as connection:
            return {name for (name,) in _plain_rows(connection, query)}

    @patient
    def stored_seeds(self, study: str, revision: int, seeds: range, *, retried: float | None = None) -> dict[str, int]:
        """Per point, by its canonical text, how many of the seeds (of step 1) are stored; points without are left out.

        It reads an index alone: for a million trials a fraction of the time that `done` takes.
        """
        chosen = (TRIAL.c.seed >= seeds.start) & (TRIAL.c.seed < seeds.stop) & _counts(retried)
        counts: Counter[str] = Counter()
        for text, number in self._by_point(study, revision, chosen, sa.func.count()):
            counts[text] += number
        return dict(counts)

    @patient
    def mean_seconds(self, study: str, revision: int) -> dict[str, tuple[int, float]]:
        """Per point, by its canonical text, the number of its trials and their mean time, compilation aside."""
        numbers: Counter[str] = Counter()
        sums: defaultdict[str, float] = defaultdict(float)
        columns = sa.func.count(), sa.func.sum(TRIAL.c.seconds)
        for text, number, seconds in self._by_point(study, revision, sa.true(), *columns):
            self._check_time(seconds)
            numbers[text] += number
            sums[text] += seconds
        return {text: (number, sums[text] / number) for text, number in numbers.items()}

    def _by_point(self, study: str, revision: int, chosen: sa.ColumnElement[bool], *columns: Any) -> list[list[Any]]:
        """Columns over each point; a point whose axes were written in two orders comes twice."""
        query = sa.select(TRIAL.c.point, *columns).where(TRIAL.c.study == study, TRIAL.c.revision == revision, chosen)
        with self.reading() as connection:
            rows = _plain_rows(connection, query.group_by(TRIAL.c.point))
        return [[canonical(values.decode(text)), *rest] for text, *rest in rows]

    @patient
    def results(self, trials: Sequence[Trial], *, retried: float | None = None) -> dict[str, dict[str, Any] | None]:
        """Values of those of the trials that are finished, by identity; None for one that failed."""
        found: dict[str, dict[str, Any] | None] = {}
        with self.reading() as connection:
            for ids in _chunks([trial.id for trial in trials]):
                for row in self._sound(connection, TRIAL, TRIAL.c.id.in_(ids), _counts(retried)):
                    found[row["id"]] = values.decode(row["result"]) if row["status"] == "ok" else None
        return found

    @patient
    def failed(self, study: str, revision: int) -> list[Trial]:
        """The trials of a study that raised an exception."""
        query = sa.select(TRIAL.c.point, TRIAL.c.seed).where(
            TRIAL.c.study == study, TRIAL.c.revision == revision, TRIAL.c.status == "failed"
        )
        with self.reading() as connection:
            return [
                Trial(study, revision, values.decode(point), seed) for point, seed in connection.execute(query).all()
            ]

    def last_failure(self, study: str, revision: int) -> float | None:
        """When the last trial of a study raised an exception, in seconds since 1970; None if none did."""
        return self.last_finished(study, revision, TRIAL.c.status == "failed")

    @patient
    def last_finished(self, study: str, revision: int, *where: sa.ColumnElement[bool]) -> float | None:
        """When the newest trial of a study was finished, of those that meet all conditions."""
        query = sa.select(sa.func.max(TRIAL.c.finished)).where(
            TRIAL.c.study == study, TRIAL.c.revision == revision, *where
        )
        with self.reading() as connection:
            found = connection.scalar(query)
        if found is not None:
            self._check_time(found)
        return found

    def _check_time(self, found: Any) -> None:
        if not checksums.is_time(found):
            raise Damaged(self.url, f"a time in the table {TRIAL.name} is no number of seconds")

    @patient
    def frame(
        self, study: str, revision: int | None = None, *, where: Sequence[sa.ColumnElement[bool]] = ()
    ) -> "polars.DataFrame":
        """One flat row per finished trial of a study, ordered by point and seed.

        Axes, `seed`, measured values (null where a trial failed), then `status`, `error`, `seconds`, ...; without
        `revision`, the one that ran last, since numbers of different revisions do not belong together. `where` keeps
        the rows of `schema.TRIAL` that meet all of its conditions (`lab.results.browsing` makes them).
        """
        from genscope.lab import frames

        with self.reading() as connection:
            revision = self._revision(connection, study) if revision is None else revision
            asked = [*frames.NAMES, "point", "result", *([checksums.NAME] if self._version >= schema.CHECKSUMS else ())]
            chosen = sa.select(*(TRIAL.c[name] for name in asked)).where(
                TRIAL.c.study == study, TRIAL.c.revision == revision, *where
            )
            rows = _plain_rows(connection, chosen)
            if checksums.NAME in asked and not where:
                integrity.check_count(connection, self.url, study, revision, len(rows))
        self._refuse(checksums.unsound(TRIAL, asked, rows, study=study, revision=revision), len(rows), TRIAL)
        return frames.of_rows(rows, revision)

    def _revision(self, connection: sa.Connection, study: str) -> int:
        latest = connection.scalar(sa.select(STUDY.c.revision).where(STUDY.c.name == study))
        if latest is None:
            latest = connection.scalar(sa.select(sa.func.max(TRIAL.c.revision)).where(TRIAL.c.study == study))
        if latest is None:
            known = sorted({*connection.scalars(sa.select(STUDY.c.name))})
            raise Refusal(
                f"The store {self.url} has no study {study!r}: it holds {', '.join(known) or 'none yet'}. Choose "
                "one of these, or run the study first."
            )
        return latest

    @patient
    def counts(self) -> dict[str, dict[str, int]]:
        """Per study, how many trials of the revision that ran last are `ok` and how many `failed`."""
        each = sa.select(TRIAL.c.study, TRIAL.c.revision, TRIAL.c.status, sa.func.count().label("number"))
        each = each.group_by(TRIAL.c.study, TRIAL.c.revision, TRIAL.c.status).subquery()
        query = (
            sa.select(STUDY.c.name, each.c.status, each.c.number)
            .outerjoin_from(STUDY, each, (each.c.study == STUDY.c.name) & (each.c.revision == STUDY.c.revision))
            .order_by(STUDY.c.name)
        )
        counts: dict[str, dict[str, int]] = {}
        with self.reading() as connection:
            for name, status, number in connection.execute(query):
                counts.setdefault(name, {"ok": 0, "failed": 0})
                if status is not None:
                    counts[name][status] = number
        return counts

    @patient
    def provenances(self, study: str, revision: int | None = None) -> dict[str, dict[str, Any]]:
        """The facts behind the column `provenance` of a study's frame."""
        with self.reading() as connection:
            revision = self._revision(connection, study) if revision is None else revision
            used = sa.select(TRIAL.c.provenance).where(TRIAL.c.study == study, TRIAL.c.revision == revision)
            rows = self._sound(connection, PROVENANCE, PROVENANCE.c.id.in_(used.distinct()))
        return {row["id"]: stored_json(self.url, row["facts"]) for row in rows}

    @patient
    def sources(self, study: str, revision: int) -> dict[str, tuple[int, dict[str, str]]]:
        """Digests of the code that computed trials of a study: how many each, and its parts by file; most at the end.

        Failed trials, and those that were stored without a digest, are not counted.
        """
        query = sa.select(TRIAL.c.provenance, sa.func.count()).where(
            TRIAL.c.study == study, TRIAL.c.revision == revision, TRIAL.c.status == "ok"
        )
        with self.reading() as connection:
            numbers = {name: number for name, number in _plain_rows(connection, query.group_by(TRIAL.c.provenance))}
            rows = self._sound(connection, PROVENANCE, PROVENANCE.c.id.in_(list(numbers)))
        found: dict[str, tuple[int, dict[str, str]]] = {}
        for row in rows:
            facts = stored_json(self.url, row["facts"]).get("sources")
            if facts:
                before, _ = found.get(facts["digest"], (0, {}))
                found[facts["digest"]] = before + numbers[row["id"]], facts["parts"]
        return dict(sorted(found.items(), key=lambda item: item[1][0]))

    # Leases

    @patient
    def lease(self, batches: Sequence[Sequence[Trial]], *, retried: float | None = None) -> Sequence[Trial] | None:
        """The first batch that nobody holds and that is not finished, now held by this store; None if there is none.

        The lease expires after `lease_seconds` unless renewed.
        """
        with self._write() as connection:
            taken = leases.take(connection, batches, self._holder, self.lease_seconds, _counts(retried))
        if taken is not None:
            self._holder.batches.add(leases.batch_id(taken))
        return taken

    @patient
    def renew(self) -> None:
        """Renew all leases of this store."""
        with self._write() as connection:
            leases.renew(connection, self._holder, self.lease_seconds)

    @patient
    def release(self, batch: Sequence[Trial] | None = None) -> None:
        """Give back one batch, or all that this store holds."""
        with self._write() as connection:
            leases.release(connection, self._holder, batch)
        self._holder.batches.difference_update(
            list(self._holder.batches) if batch is None else [leases.batch_id(batch)]
        )

    # What the report reads beside the trials

    @patient
    def put_manifest(self, study: str, revision: int, manifest: Mapping[str, Any]) -> None:
        """Describe a study by JSON-able facts; replaces what was there."""
        row = {"name": study, "revision": revision, "manifest": json.dumps(manifest), "updated": time.time()}
        with self._write() as connection:
            connection.execute(database.insert_or_replace(connection, STUDY), checksums.sealed(STUDY, [row]))

    @patient
    def manifests(self) -> dict[str, dict[str, Any]]:
        """The manifests of all studies, by name."""
        with self.reading() as connection:
            rows = sorted(self._sound(connection, STUDY), key=operator.itemgetter("name"))
        return {row["name"]: stored_json(self.url, row["manifest"]) for row in rows}

    @patient
    def put_selection(self, selection: Selection) -> None:
        """Keep what was asked for, as asked for last."""
        row = {"id": selection.id, "study": selection.study, "revision": selection.revision, "asked": time.time()}
        row["facts"] = json.dumps(selection.facts())
        with self._write() as connection:
            connection.execute(database.insert_or_replace(connection, SELECTION), checksums.sealed(SELECTION, [row]))

    @patient
    def selections(self, study: str) -> list[Selection]:
        """What was asked for of the revision of a study that ran last, the latest at the end; or all that is stored."""
        with self.reading() as connection:
            revision = self._revision(connection, study)
            rows = sorted(self._selections(connection), key=operator.itemgetter("asked"))
        mine = [row for row in rows if (row["study"], row["revision"]) == (study, revision)]
        found = [Selection.from_facts(study, revision, stored_json(self.url, row["facts"])) for row in mine]
        return found or [self.everything(study)]

    @patient
    def everything(self, study: str) -> Selection:
        """All stored trials of the revision of a study that ran last."""
        with self.reading() as connection:
            revision = self._revision(connection, study)
            rows = self._sound(connection, STUDY, STUDY.c.name == study)
        return legacy.everything(study, revision, stored_json(self.url, rows[0]["manifest"]) if rows else {})

    def _selections(self, connection: sa.Connection) -> list[dict[str, Any]]:
        if self._version < schema.SELECTIONS:  # opened for reading only
            return legacy.selections(connection)
        return self._sound(connection, SELECTION)

    def put_verdict(self, claim: str, budget: str, verdict: Mapping[str, Any]) -> None:
        """Store the decision on a claim, with its numbers; earlier ones are kept."""
        row = {"claim": claim, "budget": budget, "verdict": json.dumps(verdict), "finished": time.time()}
        name = hashlib.sha256(json.dumps(row).encode()).hexdigest()[:32]
        self.put_rows(VERDICT, [{"id": name, **row}])

    @patient
    def verdicts(self, *, history: bool = False) -> list[dict[str, Any]]:
        """The newest verdict on each claim, or all, as `claim`, `budget`, `verdict`, `finished` (seconds since 1970).

        Ordered by claim, then from old to new.
        """
        names = ("claim", "budget", "verdict", "finished")
        with self.reading() as connection:
            rows = sorted(self._sound(connection, VERDICT), key=operator.itemgetter("claim", "finished"))
        found = [{n: row[n] for n in names} | {"verdict": stored_json(self.url, row["verdict"])} for row in rows]
        newest = {item["claim"]: item for item in found}
        return found if history else list(newest.values())

    def copy_to(self, target: "Store") -> Copied:
        """Copy every result, as of one moment, into another store, which keeps what it has; leases stay behind.

        A trial that failed there and succeeded here is replaced. Others may write meanwhile. A store that is damaged is
        copied by `rescue.copy_sound`.
        """
        new = replaced = 0
        named: Counter[str] = Counter()
        with self.reading() as source:
            for table in (PROVENANCE, TRIAL, VERDICT):
                query = self.select(table).order_by(table.c.id)
                result = source.execution_options(yield_per=_CHUNK).execute(query)
                for rows in result.mappings().partitions():
                    added, exchanged = target.put_rows(table, self.checked(table, rows))
                    if table is TRIAL:
                        new, replaced = new + added, replaced + exchanged
                        named.update(row["provenance"] for row in rows)
            known = {*source.scalars(sa.select(PROVENANCE.c.id))}
            studies, selections = self._sound(source, STUDY), self._selections(source)
        target.put_rows(STUDY, studies)
        target.put_rows(SELECTION, selections)
        target.put_lost(lost := named.keys() - known)
        return Copied(named.total(), new, replaced, sum(named[name] for name in lost))

    def put_lost(self, provenances: Iterable[str]) -> None:
        """Say of provenances that they are lost, unless they are here."""
        self.put_rows(PROVENANCE, [{"id": name, "facts": json.dumps(LOST)} for name in provenances])

    def select(self, table: sa.Table) -> sa.Select[Any]:
        """A query of all columns that a table has in this store, for `checked`."""
        return sa.select(*schema.columns(table, self._version))

    def _sound(self, connection: sa.Connection, table: sa.Table, *where: Any) -> list[dict[str, Any]]:
        """Rows of a table, each as it was written."""
        return self.checked(table, connection.execute(self.select(table).where(*where)).mappings())

    def checked(self, table: sa.Table, found: Iterable[Any]) -> list[dict[str, Any]]:
        """Rows that were selected, if each is as it was written."""
        rows = [dict(row) for row in found]
        self._refuse(sum(not checksums.is_sound(table, row) for row in rows), len(rows), table)
        return rows

    def _refuse(self, number: int, total: int, table: sa.Table) -> None:
        if number:
            raise Damaged(self.url, f"{number} of {total} rows of the table {table.name} are not as they were written")

    @patient
    def put_rows(self, table: sa.Table, rows: list[dict[str, Any]]) -> tuple[int, int]:
        """Store rows of another store in one transaction; how many were new, and how many failed trials were replaced.

        Of two manifests of a study the newer one stays; a trial that succeeded replaces one that failed; of all else
        what is there stays.
        """
        rows = sorted(rows, key=operator.itemgetter(table.columns[0].name))
        if not rows:
            return 0, 0
        replaced = 0
        with self._write() as connection:
            if table is TRIAL:
                for ids in _chunks([row["id"] for row in rows if row["status"] == "ok"]):
                    failed = sa.delete(TRIAL).where(TRIAL.c.id.in_(ids), TRIAL.c.status == "failed")
                    replaced += connection.execute(failed).rowcount
            newest = database.insert_or_replace(connection, STUDY, newer="updated")
            insert = newest if table is STUDY else database.insert_new(connection, table)
            counting = insert.execution_options(preserve_rowcount=True)
            added = connection.execute(counting, checksums.sealed(table, rows)).rowcount
        return added - replaced, replaced


def _counts(retried: float | None) -> sa.ColumnElement[bool]:
    """Of which rows of trials it is true that they are not to run again."""
    return sa.true() if retried is None else (TRIAL.c.status != "failed") | (TRIAL.c.finished > retried)


def _plain_rows(connection: sa.Connection, query: sa.Select[Any]) -> Sequence[Sequence[Any]]:
    """The driver's own tuples: a hundred thousand of SQLAlchemy's rows take as long as everything else."""
    result = connection.execute(query)
    rows = result.cursor.fetchall()  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
    result.close()
    return rows


def _storable(text: str | None) -> str | None:
    """What an exception said, as text that every database takes: no NUL, no half of a character."""
    return text and text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    iterator = iter(ids)
    while chunk := list(itertools.islice(iterator, _CHUNK)):
        yield chunk


def _identity(facts: dict[str, Any]) -> str:
    """128 bits of SHA-256 over the facts of a provenance."""
    return hashlib.sha256(canonical(facts).encode()).hexdigest()[:32]
