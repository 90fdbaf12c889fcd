"""The tables of a store, their version, and the steps from older versions.

Guarantee: exact; a store is either brought to the present version in one transaction or left as it was.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from genscope.lab.storage import checksums, database, legacy
from genscope.lab.storage.failures import Damaged
from genscope.refusal import Refusal

VERSION = 4
READABLE = 1  # the oldest version that can be read as it is: since then indices changed, selections and checksums came
SELECTIONS = 3  # the version since which what was asked for is stored
CHECKSUMS = 4  # the version since which rows have checksums


def _index_by_status_and_point(connection: sa.Connection) -> None:
    """Counting and comparing a million trials takes their indices alone."""
    connection.exec_driver_sql("DROP INDEX trial_study")
    connection.exec_driver_sql("CREATE INDEX trial_status ON trial (study, revision, status)")
    connection.exec_driver_sql("CREATE INDEX trial_point ON trial (study, revision, point, seed)")


def _store_selections(connection: sa.Connection) -> None:
    """What was asked for is stored; for older trials it is told from what is there."""
    connection.exec_driver_sql(
        "CREATE TABLE selection (id TEXT NOT NULL, study TEXT NOT NULL, revision INTEGER NOT NULL, "
        "facts TEXT NOT NULL, asked DOUBLE PRECISION NOT NULL, PRIMARY KEY (id))"
    )
    if rows := legacy.selections(connection):
        insert = "INSERT INTO selection (id, study, revision, facts, asked)"
        connection.execute(sa.text(f"{insert} VALUES (:id, :study, :revision, :facts, :asked)"), rows)


def _add_checksums(connection: sa.Connection) -> None:
    """Every row is as it was written, or is noticed; and which code computed how many trials is read off an index."""
    for table in CHECKED:
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {checksums.NAME} BIGINT")
        names, [key] = checksums.covered(table), table.primary_key.columns
        part = f"WHERE {key.name} > :last ORDER BY {key.name} LIMIT {_AT_ONCE}"
        query = sa.text(f"SELECT {', '.join(names)} FROM {table.name} {part}")
        update = sa.text(f"UPDATE {table.name} SET {checksums.NAME} = :sum WHERE {key.name} = :key")
        last = ""
        while rows := connection.execute(query, {"last": last}).mappings().all():
            connection.execute(
                update, [{"sum": checksums.checksum(row.values()), "key": row[key.name]} for row in rows]
            )
            last = rows[-1][key.name]
    connection.exec_driver_sql("DROP INDEX trial_status")
    connection.exec_driver_sql("CREATE INDEX trial_status ON trial (study, revision, status, provenance)")


# MIGRATIONS[n] takes a store from version n to n + 1; it writes plain SQL, since the tables below only know the newest.
MIGRATIONS: Mapping[int, Callable[[sa.Connection], None]] = {
    1: _index_by_status_and_point,
    2: _store_selections,
    3: _add_checksums,
}
_AT_ONCE = 5_000

TABLES = sa.MetaData()

META = sa.Table("meta", TABLES, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text))

STUDY = sa.Table(
    "study",
    TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("manifest", sa.Text, nullable=False),
    sa.Column("updated", sa.Double, nullable=False),
    sa.Column(checksums.NAME, sa.BigInteger),
)

TRIAL = sa.Table(
    "trial",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("study", sa.Text, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("point", sa.Text, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("result", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("compile_seconds", sa.Double, nullable=False),
    sa.Column("provenance", sa.Text, nullable=False),
    sa.Column("finished", sa.Double, nullable=False),
    sa.Column(checksums.NAME, sa.BigInteger),
    sa.Index("trial_status", "study", "revision", "status", "provenance"),
    sa.Index("trial_point", "study", "revision", "point", "seed"),
)

SELECTION = sa.Table(
    "selection",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("study", sa.Text, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column("asked", sa.Double, nullable=False),
    sa.Column(checksums.NAME, sa.BigInteger),
)

PROVENANCE = sa.Table(
    "provenance",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column(checksums.NAME, sa.BigInteger),
)

LEASE = sa.Table(
    "lease",
    TABLES,
    sa.Column("batch", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
)

VERDICT = sa.Table(
    "verdict",
    TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("claim", sa.Text, nullable=False),
    sa.Column("budget", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("finished", sa.Double, nullable=False),
    sa.Column(checksums.NAME, sa.BigInteger),
)

CHECKED = (STUDY, TRIAL, SELECTION, PROVENANCE, VERDICT)


def tables(version: int) -> list[sa.Table]:
    """The tables with results that a store of some version has."""
    return [table for table in CHECKED if table is not SELECTION or version >= SELECTIONS]


def columns(table: sa.Table, version: int) -> list[sa.Column[Any]]:
    """The columns that a table has in a store of some version."""
    return [column for column in table.columns if column.name != checksums.NAME or version >= CHECKSUMS]


def misfits(connection: sa.Connection, version: int) -> Iterator[str]:
    """Tables, columns and indices that a store of this version lacks, and what only a newer one has.

    A store that says to be older than it is would be read without its checksums.
    """
    inspector, should = sa.inspect(connection), (META, LEASE, *tables(version))
    columns_of = inspector.get_multi_columns()  # one question to a server
    found = {name: {column["name"] for column in each} for (_, name), each in columns_of.items()}
    for table in (META, LEASE, *CHECKED):
        has, names = found.get(table.name), {column.name for column in columns(table, version)}
        if table not in should:
            if has is not None:
                yield f"schema: there is a table {table.name}, which version {version} has not"
        elif has is None:
            yield f"schema: there is no table {table.name}"
        else:
            yield from (f"schema: the table {table.name} has no column {name}" for name in sorted(names - has))
            if checksums.NAME in has - names:
                yield f"schema: the table {table.name} has a column {checksums.NAME}, which version {version} has not"
    if version == VERSION and TRIAL.name in found:
        known = {index["name"] for index in inspector.get_indexes(TRIAL.name)}
        for index in TRIAL.indexes:
            if index.name not in known:
                yield f"schema: there is no index {index.name}"


def version(connection: sa.Connection, name: str) -> int:
    """The version of the tables in a database; 0 when it is empty, an error when it is not a genscope store."""
    found = set(sa.inspect(connection).get_table_names())
    if not found:
        return 0
    if META.name in found and {column["name"] for column in sa.inspect(connection).get_columns(META.name)} == {
        "name",
        "value",
    }:
        stored = connection.scalar(sa.select(META.c.value).where(META.c.name == "genscope schema"))
        if stored is not None:
            if re.fullmatch("[1-9][0-9]{0,8}", str(stored)):
                return int(stored)
            raise Damaged(name, f"schema: the version of the tables is said to be {str(stored)[:40]!r}")
    if len(found & TABLES.tables.keys()) > 2:
        raise Damaged(name, f"schema: the table {META.name} is lost, or does not say the version of the others")
    raise Refusal(
        f"The database {name} holds tables of another program ({', '.join(sorted(found)[:5])}), so it was left "
        "untouched: a store needs a database of its own. Give another file, or another database on the server."
    )


def check(connection: sa.Connection, name: str, *, read_only: bool) -> int:
    """The version of a store; refuse one that this program cannot use."""
    present = version(connection, name)
    if present > VERSION:
        raise Refusal(
            f"The store {name} has version {present}, made by a newer genscope; this one reads versions up to "
            f"{VERSION}. Install a newer genscope, or use another store."
        )
    if read_only and present < READABLE:
        what = f"has version {present}" if present else "is empty"
        raise Refusal(
            f"The store {name} {what}, and it is opened read-only: version {READABLE} is needed. Open it once for "
            "writing (any genscope run does), which brings it up to date."
        )
    return present


def bring_up_to_date(connection: sa.Connection, name: str) -> None:
    """Make the tables of an empty database, or lift an older store step by step, inside one write transaction."""
    database.lock(connection, "schema")
    present = check(connection, name, read_only=False)
    if present == VERSION:
        return
    if present == 0:
        TABLES.create_all(connection)
        connection.execute(sa.insert(META).values(name="genscope schema", value=str(VERSION)))
        return
    for step in range(present, VERSION):
        MIGRATIONS[step](connection)
    connection.execute(sa.update(META).where(META.c.name == "genscope schema").values(value=str(VERSION)))
