"""Many writers, readers beside them, a full disk and many rows: nobody waits too long, and nothing is lost."""

import json
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path

import pytest
import sqlalchemy.event

from genscope.lab import Record, Store, Study, grid, run, select
from tests.lab import toys
from tests.lab.store_contract import records, sql, trials

ROOT = Path(__file__).parents[2]

WRITER = """
    import json, sys, time
    from genscope.lab import Record, Store, Trial
    _, url, name = sys.argv
    written, longest = 0, 0.0
    with Store(url) as store:
        print("open", flush=True)
        end = time.monotonic() + float(sys.stdin.readline())
        while (start := time.monotonic()) < end or written < 40:
            batch = [Trial("s", 1, {"by": name}, seed) for seed in range(written, written + 4)]
            assert store.lease([batch]) is batch
            store.add([Record(trial, {"curve": [0.5] * 20}) for trial in batch], leased=batch)
            written += 4
            longest = max(longest, time.monotonic() - start)
    print(json.dumps([written, longest]))
"""


def start(code, *arguments):
    """Start Python code as a process."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def write_and_read(url, seconds, processes=4):
    """Let processes write as fast as they can while this one reads; their batches, and the longest wait for one."""
    writers = [start(WRITER, url, number) for number in range(processes)]
    for writer in writers:
        assert writer.stdout.readline() == "open\n", writer.communicate()[1]
    for writer in writers:
        writer.stdin.write(f"{seconds}\n")
        writer.stdin.flush()
    looks, before = 0, 0
    while any(writer.poll() is None for writer in writers):
        with Store(url, read_only=True) as reader:  # as `list`, `report` and the explorer do
            reader.counts()
            found = len(reader.done("s"))
        assert found >= before  # what a reader has seen stays
        before, looks = found, looks + 1
        time.sleep(0.1)
    told = [writer.communicate() for writer in writers]
    assert [error for _, error in told] == [""] * processes  # no "database is locked" reaches anybody
    written, waits = zip(*(json.loads(out) for out, _ in told), strict=True)
    assert looks > 2
    with Store(url) as store:
        assert store.frame("s").height == sum(written)
    assert sql(url, "SELECT count(*) FROM lease") == [(0,)]
    print(f"{sum(written)} trials, longest wait {max(waits):.2f} s, {looks} looks")
    return max(waits)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/store.db" if request.param == "sqlite" else request.getfixturevalue("postgresql_url")


def test_writers_and_readers_get_along(url):
    assert write_and_read(url, 1, processes=3) < 20


@pytest.mark.slow
def test_four_processes_write_for_a_minute(url):
    assert write_and_read(url, 60) < 20


def test_a_run_on_a_full_disk_ends_and_goes_on(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    study = toys.fixed.replace(seeds=60)
    with Store(url) as store:
        run(study, select(study, seeds=1), store=store)
        [[pages]] = sql(url, "PRAGMA page_count")

        def limit(connection, _):
            connection.execute(f"PRAGMA max_page_count = {pages + 10}")

        sqlalchemy.event.listen(store._engine, "connect", limit)
        store.close()
        with pytest.raises(OSError, match=r"disk is full.*Free some space and run the same command again"):
            run(study, store=store)
        sqlalchemy.event.remove(store._engine, "connect", limit)
        store.close()
        before = store.done(study.name)
        assert 6 < len(before) < 360
        assert run(study, store=store).computed == 360 - len(before)
    assert sql(url, "PRAGMA integrity_check") == [("ok",)]


def test_a_file_that_may_not_grow_loses_nothing(tmp_path):
    code = """
        import resource, sys
        from genscope.lab import Record, Store, Trial
        with Store(sys.argv[1]) as store:
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
            try:
                for number in range(10_000):
                    store.add([Record(Trial("s", 1, {"size": 1}, number), {"curve": [0.5] * 200})])
            except OSError as error:
                print(number, error)
    """
    url = f"sqlite:///{tmp_path}/store.db"
    out, error = start(code, url).communicate(timeout=120)
    assert error == ""
    number, _, said = out.partition(" ")
    assert "everything committed so far is safe" in said
    assert "run the same command again" in said
    with Store(url) as store:
        assert store.frame("s").height == int(number)
        store.add(records(trials(1, study="other")))
    assert sql(url, "PRAGMA integrity_check") == [("ok",)]


def fill(store, study, seeds):
    """Store trials of all points, in transactions of a size that bulk loading likes."""
    for point in study.points:
        found = study.trials(point, range(seeds))
        measured = [{"loss": 1e-3 * trial.seed, "solved": trial.seed % 3 == 0, "curve": [0.1] * 5} for trial in found]
        store.add(
            Record(trial, values, seconds=0.1) if trial.seed % 100 else Record(trial, {}, error="ValueError: no")
            for trial, values in zip(found, measured, strict=True)
        )


def copied(tmp_path, there, points, seeds):
    """Copy trials to another store and back; the rows of both ends, and the most memory that Python took."""
    study = Study("s", "", "", print, points=grid(size=list(range(points))), seeds=seeds)
    urls = [f"sqlite:///{tmp_path}/first.db", there, f"sqlite:///{tmp_path}/last.db"]
    with Store(urls[0]) as first, Store(urls[1]) as second, Store(urls[2]) as third:
        fill(first, study, seeds)
        tracemalloc.start()
        first.copy_to(second)
        second.copy_to(third)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        same = first.frame("s").equals(third.frame("s"))
    return same, peak


def test_a_copy_there_and_back_is_the_same(tmp_path, postgresql_url):
    same, _ = copied(tmp_path, postgresql_url, points=6, seeds=1000)
    assert same


@pytest.mark.slow
def test_a_hundred_thousand_trials_are_copied_in_little_memory(tmp_path, postgresql_url):
    same, peak = copied(tmp_path, postgresql_url, points=100, seeds=1000)
    assert same
    assert peak < 40e6  # a hundred thousand rows at once take more than 150 MB
