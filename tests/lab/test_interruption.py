"""Runs that are interrupted, killed and shared, as real processes, end with the rows of an undisturbed run."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from genscope.lab import Store, run
from genscope.lab.execution.interruption import between_steps
from genscope.lab.storage import leases as lease_rows
from tests.lab import toys
from tests.lab.store_contract import sql

ROOT = Path(__file__).parents[2]
SEED = int.from_bytes(os.urandom(4)) if "GENSCOPE_FRESH_SEEDS" in os.environ else 20221

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX systems")


@pytest.fixture
def start(launch):
    """Start runs as processes of their own, all at the same moment, when all have opened the store."""

    def start(study, url, together=1):
        command = [sys.executable, "-m", "tests.lab.toys", study.name, url]
        processes = [launch(*command, stdin=subprocess.PIPE, cwd=ROOT) for _ in range(together)]
        for process in processes:
            assert process.stdout.readline() == "open\n", process.communicate()[1]
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        return processes

    return start


def wait_for(process, enough):
    """Wait until the study has so many trials, or the run has ended."""
    for line in process.stdout:
        if not line.startswith("done") or int(line.removeprefix("done ")) >= enough:
            return


def finish(process):
    """Wait for the end of a run; how many trials it computed."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return int(out.rpartition("computed ")[2])


def stored(url, study):
    """Identities and values, as they are in the database."""
    if url.startswith("sqlite"):
        assert sql(url, "PRAGMA integrity_check") == [("ok",)]
    rows = sql(url, f"SELECT id, point, seed, status, result FROM trial WHERE study = '{study.name}'")
    assert len({row[0] for row in rows}) == len(rows)
    return set(rows)


def leases(url):
    [[count]] = sql(url, "SELECT count(*) FROM lease")
    return count


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The rows of a run that nobody disturbs, computed once per study."""
    known = {}

    def rows(study):
        if study.name not in known:
            url = f"sqlite:///{tmp_path_factory.mktemp('undisturbed')}/store.db"
            with Store(url) as store:
                assert run(study, store=store).failed == 0
            known[study.name] = stored(url, study)
        return known[study.name]

    return rows


@pytest.fixture
def url(request, tmp_path):
    """A new store; with the parameter `postgresql`, on a server."""
    if getattr(request, "param", None) == "postgresql":
        return request.getfixturevalue("postgresql_url")
    return f"sqlite:///{tmp_path}/store.db"


def disturb(start, study, url, signals, total, moments):
    """Start, stop by a signal some trials and a moment later, start again; what is stored after each signal."""
    history = [set()]
    print(f"seed {SEED}")  # shown when a test fails
    for number in signals:
        [process] = start(study, url)
        enough = len(history[-1]) + moments.randint(1, total // (len(signals) + 1))
        wait_for(process, enough)
        time.sleep(moments.choice([0.0, moments.uniform(0.0, 0.05)]))
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
        if not url.startswith("sqlite"):
            time.sleep(0.3)  # a server may still commit what the dead had asked for
        history.append(stored(url, study))
        print(f"{signal.Signals(number).name} at {enough}: {len(history[-2])} -> {len(history[-1])} trials")
        assert history[-2] <= history[-1]  # nothing that was stored is ever lost
        if len(history[-1]) == total:  # a busy machine: it was done before the signal came
            break
        assert process.returncode in (-number, 128 + number), err
        if number != signal.SIGKILL:
            assert leases(url) == 0
    return history


STUDIES = [toys.slow, toys.search, toys.slow_stacked]
names = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)


def finish_here(study, url):
    """The same in this process, which takes a second less to start."""
    with Store(url) as store:
        return toys.run_on_threads(2, study, store=store).computed


@pytest.mark.parametrize(
    ("study", "signals", "url"),
    [
        (toys.slow, [signal.SIGKILL, signal.SIGINT], "sqlite"),
        (toys.search, [signal.SIGTERM], "sqlite"),
        (toys.slow_stacked, [signal.SIGKILL], "sqlite"),
        (toys.slow, [signal.SIGKILL], "postgresql"),
        pytest.param(toys.search, [signal.SIGINT, signal.SIGKILL], "postgresql", marks=pytest.mark.slow),
        pytest.param(toys.slow_stacked, [signal.SIGKILL, signal.SIGTERM], "postgresql", marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "name", value if isinstance(value, str) else ""),
    indirect=["url"],
)
def test_killed_runs_end_with_the_same_rows(study, signals, url, undisturbed, start):
    expected = undisturbed(study)
    moments = random.Random(f"{SEED} {study.name}")
    history = disturb(start, study, url, signals, len(expected), moments)
    assert 0 < len(history[1]) < len(expected)  # the signals came in the middle
    assert history[-1] <= expected
    assert finish_here(study, url) == len(expected) - len(history[-1])
    assert stored(url, study) == expected


@pytest.mark.parametrize(
    ("study", "url"),
    [
        *((study, "sqlite") for study in STUDIES),
        *(pytest.param(study, "postgresql", marks=pytest.mark.slow) for study in STUDIES),
    ],
    ids=lambda value: getattr(value, "name", value),
    indirect=["url"],
)
def test_two_processes_share_a_study(study, url, undisturbed, start):
    [other] = start(study, url)
    computed = [finish_here(study, url), finish(other)]
    assert stored(url, study) == undisturbed(study)
    assert sum(computed) == len(undisturbed(study))  # and no trial was computed twice
    assert min(computed) > 0
    assert leases(url) == 0


def test_the_living_take_over_from_the_dead(url, undisturbed, start):
    study = toys.slow
    dead, living = start(study, url, together=2)
    wait_for(dead, 8)
    dead.kill()
    dead.communicate()
    finish(living)
    assert stored(url, study) == undisturbed(study)


@pytest.mark.slow
@names
def test_many_kills(study, url, undisturbed, start):
    expected = undisturbed(study)
    moments = random.Random(f"{SEED} many {study.name}")
    for attempt in range(4):
        again = url.replace("store", f"store{attempt}")
        signals = moments.choices([signal.SIGKILL, signal.SIGINT, signal.SIGTERM], weights=[2, 1, 1], k=3)
        disturb(start, study, again, signals, len(expected), moments)
        finish(*start(study, again))
        assert stored(again, study) == expected


# Signals between steps


def send(*numbers):
    for number in numbers:
        signal.raise_signal(number)


def test_a_signal_waits_for_the_next_step():
    with between_steps() as step:
        step()
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            step()
        step()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_after_the_last_step_is_not_forgotten():
    with pytest.raises(SystemExit, match="143"), between_steps():
        send(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_signal_waits_for_nothing():
    with between_steps(), pytest.raises(KeyboardInterrupt):
        send(signal.SIGTERM, signal.SIGINT)


def test_a_signal_that_the_program_ignores_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with between_steps() as step:
            send(signal.SIGINT)
            step()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_inside_a_transaction_lets_it_end(url, number, monkeypatch):
    take, taken = lease_rows.take, []

    def interrupted(*arguments):
        send(number)
        taken.append(take(*arguments))
        return taken[-1]

    monkeypatch.setattr(lease_rows, "take", interrupted)
    with Store(url) as store, pytest.raises((KeyboardInterrupt, SystemExit)):
        run(toys.slow, store=store)
    assert taken
    assert leases(url) == 0
