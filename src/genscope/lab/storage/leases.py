"""Who computes which batch: leases in the database, so that several processes share a study.

A lease is a row that names its holder and expires unless renewed. One whose process is dead on this machine is taken
over at once, any other when it has expired. Losing a lease costs double work and nothing else: a trial is stored once.

Guarantee: a batch that is free, and no other, is leased, to one holder; finished batches are never leased.
"""

import hashlib
import os
import platform
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from genscope.lab.plans.study import Trial
from genscope.lab.storage import database
from genscope.lab.storage.schema import LEASE, TRIAL


def _host() -> str:
    """Name of this machine, and on Linux of its world of process numbers: containers may share a host's name."""
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


@dataclass(frozen=True)
class Holder:
    """One process's claim to its leases, and the batches that it knows to hold."""

    host: str = field(default_factory=_host)
    pid: int = field(default_factory=os.getpid)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    batches: set[str] = field(default_factory=set)

    def knows_dead(self, host: str, pid: int) -> bool:
        """Whether that process certainly no longer runs."""
        if host != self.host or os.name != "posix":  # elsewhere signal 0 is a real signal
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


def batch_id(batch: Sequence[Trial]) -> str:
    """128 bits of SHA-256 over the identities of a batch's trials."""
    return hashlib.sha256(" ".join(trial.id for trial in batch).encode()).hexdigest()[:32]


def take(
    connection: sa.Connection,
    batches: Sequence[Sequence[Trial]],
    holder: Holder,
    seconds: float,
    counts: sa.ColumnElement[bool],
) -> Sequence[Trial] | None:
    """Lease the first batch that is neither held nor finished; the caller notes it in `holder.batches`.

    Of the stored trials those that `counts` is true of are finished.
    """
    # Under the lock no lease comes or goes, and what a lease that is gone stood for is committed: so a batch found
    # free and unfinished below is still both when its lease is written.
    database.lock(connection, "leases")
    now = database.now(connection)
    held = set()
    for row in connection.execute(sa.select(LEASE)).all():
        unknown = row.holder == holder.name and row.batch not in holder.batches  # the server's answer got lost
        if unknown or row.expires < now or holder.knows_dead(row.host, row.pid):
            stale = (LEASE.c.batch == row.batch) & (LEASE.c.holder == row.holder)
            connection.execute(sa.delete(LEASE).where(stale))
        else:
            held.add(row.batch)
    lease = {"holder": holder.name, "host": holder.host, "pid": holder.pid, "expires": now + seconds}
    for batch in batches:
        name = batch_id(batch)
        if name not in held and not _finished(connection, batch, counts):
            connection.execute(sa.insert(LEASE).values(batch=name, **lease))
            return batch
    return None


def _finished(connection: sa.Connection, batch: Sequence[Trial], counts: sa.ColumnElement[bool]) -> bool:
    stored = sa.select(sa.func.count()).where(TRIAL.c.id.in_([trial.id for trial in batch]), counts)
    return connection.scalar(stored) == len({trial.id for trial in batch})


def renew(connection: sa.Connection, holder: Holder, seconds: float) -> None:
    """Let every lease of the holder run from now."""
    database.lock(connection, "leases")
    expires = database.now(connection) + seconds
    connection.execute(sa.update(LEASE).where(LEASE.c.holder == holder.name).values(expires=expires))


def release(connection: sa.Connection, holder: Holder, batch: Sequence[Trial] | None) -> None:
    """Give back one batch, or with None all batches of the holder."""
    database.lock(connection, "leases")
    mine = LEASE.c.holder == holder.name
    connection.execute(sa.delete(LEASE).where(mine if batch is None else mine & (LEASE.c.batch == batch_id(batch))))


class Heartbeat:
    """A background thread that renews leases while its block runs."""

    def __init__(self, renew: Callable[[], None], every: float):
        self._renew, self._every = renew, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="genscope leases", daemon=True)

    def _beat(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self._renew()
            except OSError:
                continue  # the store is busy or away for a moment: the next beat is in time, or the lease is lost

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=1)  # a beat that waits for a busy store must not hold up the end
