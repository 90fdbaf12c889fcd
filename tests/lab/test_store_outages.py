"""A PostgreSQL server that restarts, ends connections, refuses or is away, and the race that a lock prevents."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from genscope.lab import Record, Store
from genscope.lab.storage import database, leases
from tests.lab import toys
from tests.lab.store_contract import records, side_by_side, sql, trials
from tests.postgres import PASSWORD

OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'genscope' AND pid <> pg_backend_pid()"


def rows(url):
    return set(sql(url, "SELECT id, point, seed, status, result FROM trial"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('undisturbed')}/store.db"
    with Store(url) as store:
        toys.run_on_threads(2, toys.slow, store=store)
    return rows(url)


def test_a_run_outlives_a_restart_and_lost_connections(postgresql, postgresql_url, undisturbed):
    """Seven times all connections are cut, and once the server itself goes down as in a power cut."""
    seen = queue.Queue()
    with Store(postgresql_url) as store, ThreadPoolExecutor(1) as pool:
        running = pool.submit(toys.run_on_threads, 2, toys.slow, store=store, progress=lambda now: seen.put(now.done))
        for strike in range(1, 9):
            while seen.get(timeout=60) < 10 * strike:
                assert not running.done()
            if strike == 4:
                postgresql.stop()
                time.sleep(0.5)
                postgresql.start()
            else:
                postgresql.sql(OTHERS)
        assert running.result().computed == len(undisturbed)  # none twice
    assert rows(postgresql_url) == undisturbed
    assert sql(postgresql_url, "SELECT count(*) FROM lease") == [(0,)]


def test_a_server_that_stays_away_is_named_and_nothing_is_lost(postgresql, postgresql_url, monkeypatch):
    with Store(postgresql_url) as store:
        store.add(records(trials(2)))
        monkeypatch.setattr(database, "BUSY_SECONDS", 0.5)
        postgresql.stop()
        try:
            with pytest.raises(ConnectionError, match=r"run the same command again") as caught:
                store.add(records(trials(4)))
            with pytest.raises(ConnectionError, match="Check host, port"):
                store.frame("s")
            with pytest.raises(ConnectionError, match="Check host, port"):
                Store(postgresql_url)
        finally:
            postgresql.start()
        assert PASSWORD not in str(caught.value)
        assert store.frame("s").height == 2
        store.add(records(trials(4)))
        assert store.frame("s").height == 4


def race(url, monkeypatch):
    """A second process leases and finishes a batch in the moment in which the first has found it free.

    What the two were given.
    """
    batch = trials(2)
    judged = leases._finished
    started, given = [], []

    def lease_and_finish():
        with Store(url) as other:
            given.append(other.lease([batch]))
            if given[0] is not None:
                other.add(records(batch), leased=batch)

    def interrupted(connection, batch, counts):
        answer = judged(connection, batch, counts)
        if not started:
            started.append(threading.Thread(target=lease_and_finish))
            started[0].start()
            started[0].join(timeout=1.0)  # it cannot end while this transaction has the lock
        return answer

    monkeypatch.setattr(leases, "_finished", interrupted)
    with Store(url) as first:
        mine = first.lease([batch])
        started[0].join()
        return [mine is not None, given[0] is not None]


def test_a_batch_found_free_is_still_free_when_it_is_leased(postgresql_url, monkeypatch):
    assert race(postgresql_url, monkeypatch) == [True, False]


def test_without_the_lock_a_finished_batch_would_be_leased(postgresql_url, monkeypatch):
    with Store(postgresql_url):
        monkeypatch.setattr(database, "lock", lambda connection, what: None)
        assert race(postgresql_url, monkeypatch) == [True, True]


def test_writers_of_the_same_trials_in_other_orders_do_not_block_each_other(postgresql_url):
    shared = trials(300)

    def write(order):
        with Store(postgresql_url) as mine:
            for _ in range(3):
                mine.add(Record(trial, {"loss": 1.0}) for trial in shared[::order])

    side_by_side(write, 1, -1, 1, -1)
    assert sql(postgresql_url, "SELECT count(*) FROM trial") == [(300,)]


def test_a_lock_that_is_never_given_back_is_told(postgresql_url, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
    with Store(postgresql_url) as stuck, Store(postgresql_url) as store, stuck._write() as connection:
        database.lock(connection, "leases")
        with pytest.raises(TimeoutError, match="Let that process finish"):
            store.lease([trials(1)])
        store.add(records(trials(1)))  # who needs no lease goes on
        assert store.frame("s").height == 1


def test_a_user_without_rights_is_told(postgresql, postgresql_url):
    name = postgresql_url.rpartition("/")[2]
    with pytest.raises(PermissionError, match=r"permission denied.*Check the permissions") as caught:
        Store(postgresql.url(name, user="guarded"))
    assert PASSWORD not in str(caught.value)
    with Store(postgresql_url) as store:
        store.add(records(trials(1)))
    postgresql.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guarded", database=name)
    with Store(postgresql.url(name, user="guarded"), read_only=True) as reader:
        assert reader.frame("s").height == 1
    with Store(postgresql.url(name, user="guarded")) as writer, pytest.raises(PermissionError, match="Check the perm"):
        writer.add(records(trials(2)))


def test_a_server_whose_default_is_stricter_makes_no_difference(postgresql, postgresql_url):
    name = postgresql_url.rpartition("/")[2]
    postgresql.sql(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    batches = [trials(1, kind=str(number)) for number in range(8)]

    def work(_):
        with Store(postgresql_url) as mine:
            while (batch := mine.lease(batches)) is not None:
                mine.add(records(batch), leased=batch)

    side_by_side(work, 1, 2, 3)
    assert sql(postgresql_url, "SELECT count(*) FROM trial") == [(8,)]
