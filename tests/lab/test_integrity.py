"""A damaged store never gives a traceback, nor silently fewer or other rows; what is sound of it can be had."""

import contextlib
import itertools
import sqlite3

import pytest

from genscope.lab import Record, Store, Study, check_store, grid, select
from genscope.lab.plans.manifest import manifest
from genscope.lab.results import browsing
from genscope.lab.storage.failures import Damaged
from genscope.lab.storage.rescue import _open, _rows, copy_sound
from genscope.refusal import Refusal
from tests.lab.damage import PAGE, accidents
from tests.lab.store_contract import dead_process, without_checksums

STUDY = Study(name="s", title="S", source="tests", trial=print, points=grid(size=[1, 2, 3, 4], kind=["a"]), seeds=40)


def filled(url):
    """A store of 160 trials, some failed, with everything else that a store holds."""
    selection = select(STUDY)
    with Store(url) as store:
        for point in selection.points:
            trials = selection.trials(point, selection.seeds)
            store.add(
                [
                    Record(
                        t,
                        {"x": t.seed / 7, "curve": [0.5] * 20},
                        provenance={"libraries": {"jax": "0.10"}, "n": t.seed % 3},
                    )
                    for t in trials
                ]
            )
        store.put_manifest("s", 1, manifest(STUDY))
        store.put_selection(selection)
        for claim in "AB":
            store.put_verdict(claim, "quick", {"id": claim, "verdict": "holds"})


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a sound store, and its rows."""
    file = tmp_path_factory.mktemp("sound") / "store.db"
    filled(f"sqlite:///{file}")
    with Store(f"sqlite:///{file}") as store:
        rows = store.frame("s").drop("finished").rows()
    return file.read_bytes(), rows


def everything(url):
    """What readers ask of a store."""
    with Store(url, read_only=True) as store:
        frame = store.frame("s").drop("finished")
        for ask in (store.provenances, store.selections, store.everything):
            ask("s")
        for ask in (store.manifests, store.verdicts, store.counts):
            ask()
        store.sources("s", 1)
        store.results(select(STUDY).trials({"size": 1, "kind": "a"}, range(40)))
        return frame.rows()


def survive(sound, directory, seeds):
    """How many accidents were noticed and how many rows were rescued from them; the rest changed nothing."""
    content, rows = sound
    wanted = {str(row) for row in rows}
    noticed, rescued = 0, []
    for seed, file in accidents(content, directory, seeds):
        url = f"sqlite:///{file}"
        try:
            assert everything(url) == rows, f"accident {seed} changed what is read"
        except (Refusal, OSError):  # anything else would be a traceback
            noticed += 1
        health = check_store(url) if file.read_bytes()[:16] == content[:16] else None
        with Store(f"sqlite:///{directory}/rescued-{seed}.db") as target:
            copied = copy_sound(url, target).copied["trial"]
            if copied and "s" in target.manifests():
                assert {str(row) for row in target.frame("s").drop("finished").rows()} <= wanted
            rescued.append(copied)
        assert check_store(f"sqlite:///{directory}/rescued-{seed}.db").sound
        assert health is None or not health.sound or everything(url) == rows
    return noticed, rescued


def test_accidents_are_noticed_or_harmless(sound, tmp_path):
    noticed, rescued = survive(sound, tmp_path, range(24))
    assert noticed > 12
    assert sum(rescued) > 24 * 160 // 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(24, 500, 68))  # a test each, so that none is long on a busy machine
def test_many_accidents_are_noticed_or_harmless(sound, tmp_path, first):
    survive(sound, tmp_path, range(first, first + 68))


def change(file, command):
    with sqlite3.connect(file) as connection:
        connection.execute(command)
    connection.close()


# What one changed byte, or another program, may leave where a time was: no checksum covers it.
TIMES = [
    ("seconds", "x'3FE0000000000000'"),
    ("seconds", "'long'"),
    ("compile_seconds", "9e999"),
    ("finished", "1e300"),
    ("finished", "-1e11"),
]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("UPDATE trial SET result = replace(result, '0.5', '0.6') WHERE seed = 3", "not as it was written"),
        ("UPDATE trial SET seed = 1000 WHERE seed = 3", "not as it was written"),
        ("UPDATE trial SET checksum = NULL WHERE seed = 3", "not as it was written"),
        ("UPDATE provenance SET facts = '{}'", "not as it was written"),
        ("UPDATE study SET manifest = 'nonsense'", "not as it was written"),
        *((f"UPDATE trial SET {name} = {time} WHERE seed = 3", "not as it was written") for name, time in TIMES),
        ("UPDATE study SET updated = 'late'", "not as it was written"),
        ("UPDATE selection SET asked = 'late'", "not as it was written"),
        ("UPDATE verdict SET finished = 'late'", "not as it was written"),
        ("DELETE FROM provenance", "name a provenance that is not there"),
        ("DROP INDEX trial_point", "there is no index trial_point"),
        ("DROP TABLE verdict", "there is no table verdict"),
        ("ALTER TABLE verdict DROP COLUMN budget", "the table verdict has no column budget"),
    ],
)
def test_a_check_names_what_is_wrong(sound, tmp_path, command, problem):
    file = tmp_path / "store.db"
    file.write_bytes(sound[0])
    assert check_store(f"sqlite:///{file}").sound
    change(file, command)
    health = check_store(f"sqlite:///{file}")
    assert not health.sound
    assert problem in " ".join(health.problems)


LOST = [
    *((f"DROP TABLE {name}", f"there is no table {name}") for name in ("trial", "verdict", "selection", "study")),
    *((f"DROP TABLE {name}", f"there is no table {name}") for name in ("provenance", "lease")),
    ("DROP TABLE meta", "the table meta is lost"),
    ("ALTER TABLE meta DROP COLUMN value", "the table meta is lost"),
    ("DELETE FROM meta", "the table meta is lost, or does not say"),
    ("DROP INDEX trial_point", "there is no index trial_point"),
    ("DROP INDEX trial_status", "there is no index trial_status"),
    ("ALTER TABLE trial DROP COLUMN error", "the table trial has no column error"),
    ("ALTER TABLE trial DROP COLUMN checksum", "the table trial has no column checksum"),
    ("ALTER TABLE verdict DROP COLUMN budget", "the table verdict has no column budget"),
    *((f"UPDATE meta SET value = '{word}'", f"said to be '{word}'") for word in ("0", "four", "-1", "9" * 40)),
    ("UPDATE meta SET value = NULL", "the table meta is lost"),
    ("UPDATE meta SET value = '3'", "has a column checksum, which version 3 has not"),
    ("UPDATE meta SET value = '1'", "there is a table selection, which version 1 has not"),
]


@pytest.mark.parametrize(("command", "problem"), LOST)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_lost_is_told_when_a_store_is_opened_and_the_rest_can_be_copied(
    sound, tmp_path, command, problem, read_only
):
    file = tmp_path / "store.db"
    file.write_bytes(sound[0])
    change(file, command)
    before = file.read_bytes()
    with pytest.raises(Damaged, match=f"{problem}.*store copy"):
        Store(f"sqlite:///{file}", read_only=read_only)
    assert problem in " ".join(check_store(f"sqlite:///{file}").problems)
    with Store(f"sqlite:///{tmp_path}/rescued.db") as target:
        copied = copy_sound(f"sqlite:///{file}", target).copied
        unsound = {"trial"} & {*command.split()} if "INDEX" not in command else set()
        assert copied["trial"] == (0 if unsound else 160)
        assert copied["selection"] == (0 if "TABLE selection" in command else 1)
        assert copied["verdict"] == (0 if "TABLE verdict" in command else 2)
    assert check_store(f"sqlite:///{tmp_path}/rescued.db").sound
    assert file.read_bytes() == before


def test_a_false_result_does_not_hide_behind_an_older_version(sound, tmp_path):
    file = tmp_path / "store.db"
    file.write_bytes(sound[0])
    change(file, "UPDATE trial SET result = replace(result, '0.5', '0.6') WHERE seed = 3")
    change(file, "UPDATE meta SET value = '3'")
    with Store(f"sqlite:///{tmp_path}/rescued.db") as target:
        rescued = copy_sound(f"sqlite:///{file}", target)
    assert (rescued.copied["trial"], rescued.left["trial"]) == (156, 4)


@pytest.mark.parametrize("share", [0.6, 0.7, 0.8, 0.9])
def test_what_is_left_of_a_file_that_was_cut_is_copied(sound, tmp_path, share):
    content, rows = sound
    file = tmp_path / "cut.db"
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(Damaged):
        Store(f"sqlite:///{file}", read_only=True)
    with contextlib.closing(_open(file)) as connection:
        numbers = [n for n in range(1, 161) if [*_rows(connection, "SELECT * FROM trial WHERE rowid = ?", n)]]
    with Store(f"sqlite:///{tmp_path}/rescued.db") as target:
        assert copy_sound(f"sqlite:///{file}", target).copied["trial"] >= len(numbers) - 2 > 0
        found = target.frame("s", 1).drop("finished").rows()
    assert {*map(str, found)} <= {*map(str, rows)}


def test_no_two_exchanged_pages_are_a_traceback(sound, tmp_path):
    content, rows = sound
    pages = len(content) // PAGE
    parts = [content[PAGE * n : PAGE * (n + 1)] for n in range(pages)]
    file = tmp_path / "store.db"
    for first, second in itertools.combinations(range(1, pages), 2):
        order = [*range(pages)]
        order[first], order[second] = second, first
        file.write_bytes(b"".join(parts[n] for n in order))
        check_store(f"sqlite:///{file}")
        with contextlib.suppress(Refusal, OSError):
            assert everything(f"sqlite:///{file}") == rows


def test_a_check_says_what_is_no_store_of_ours(tmp_path):
    file = tmp_path / "other.db"
    change(file, "CREATE TABLE album (title)")
    with pytest.raises(Refusal, match="tables of another program") as caught:
        check_store(f"sqlite:///{file}")
    assert not isinstance(caught.value, Damaged)
    (tmp_path / "empty.db").touch()
    with pytest.raises(Refusal, match="is empty"):
        check_store(f"sqlite:///{tmp_path}/empty.db")


def test_a_changed_digit_is_refused_wherever_it_would_be_read(sound, tmp_path):
    file = tmp_path / "store.db"
    file.write_bytes(sound[0])
    change(file, "UPDATE trial SET result = replace(result, '0.5', '0.6') WHERE seed = 3")
    advice = r"4 of 160 rows of the table trial .* store check .* store copy"
    with Store(f"sqlite:///{file}") as store, pytest.raises(Damaged, match=advice):
        store.frame("s")
    with Store(f"sqlite:///{file}") as store, pytest.raises(Damaged, match="1 of 40 rows"):
        store.results(select(STUDY).trials({"size": 1, "kind": "a"}, range(40)))


@pytest.mark.parametrize(("name", "time"), TIMES)
def test_a_time_that_is_none_is_refused_and_its_row_left_behind(sound, tmp_path, name, time):
    file = tmp_path / "store.db"
    file.write_bytes(sound[0])
    change(file, f"UPDATE trial SET {name} = {time} WHERE seed = 3")
    url = f"sqlite:///{file}"
    trials = select(STUDY).trials({"size": 1, "kind": "a"}, range(40))
    with Store(url, read_only=True) as store, Store(f"sqlite:///{tmp_path}/copy.db") as copy:
        asks = [lambda: store.frame("s"), lambda: store.results(trials), lambda: store.copy_to(copy)]
        asks.append(lambda: browsing.trial(store, trials[3].id))
        for ask in asks:
            with pytest.raises(Damaged, match=r"rows? of the table trial .* store check .* store copy"):
                ask()
    with Store(f"sqlite:///{tmp_path}/rescued.db") as target:
        assert copy_sound(url, target).left["trial"] == 4
    assert check_store(f"sqlite:///{tmp_path}/rescued.db").sound


def test_a_time_that_is_none_does_not_say_which_failures_are_retried(sound, tmp_path):
    file = tmp_path / "store.db"
    file.write_bytes(sound[0])
    change(file, "UPDATE trial SET status = 'failed', finished = 'late', seconds = 9e999 WHERE seed = 3")
    with Store(f"sqlite:///{file}") as store:
        for ask in (store.last_failure, store.last_finished, store.mean_seconds):
            with pytest.raises(Damaged, match=r"a time in the table trial is no number.* store check "):
                ask("s", 1)


def test_a_time_that_is_none_is_noticed_without_checksums(sound, tmp_path):
    file = tmp_path / "store.db"
    file.write_bytes(sound[0])
    without_checksums(f"sqlite:///{file}")
    change(file, "UPDATE trial SET seconds = 'long' WHERE seed = 3")
    assert not check_store(f"sqlite:///{file}").sound
    with Store(f"sqlite:///{file}", read_only=True) as store, pytest.raises(Damaged, match="4 of 160 rows"):
        store.frame("s")


def test_orphaned_leases_are_counted(sound, tmp_path):
    file = tmp_path / "store.db"
    file.write_bytes(sound[0])
    url = f"sqlite:///{file}"
    batch = STUDY.trials({"size": 9, "kind": "a"}, range(4))
    with Store(url) as store:
        store.lease([batch])
        assert (check_store(url).leases, check_store(url).orphaned) == (1, 0)
        change(file, f"UPDATE lease SET pid = {dead_process()}")
        assert (check_store(url).leases, check_store(url).orphaned) == (0, 1)
        store.release()


def test_a_copy_of_a_store_in_use_is_of_one_moment(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    filled(url)
    with Store(url) as writer, Store(url, read_only=True) as reader, Store(f"sqlite:///{tmp_path}/copy.db") as copy:
        put = copy.put_rows

        def and_meanwhile(table, rows):
            writer.add([Record(t, {"x": 1.0}) for t in STUDY.trials({"size": 7, "kind": table.name}, range(4))])
            return put(table, rows)

        copy.put_rows = and_meanwhile
        reader.copy_to(copy)
        assert copy.frame("s").height == 160
        assert writer.frame("s").height > 160
    assert check_store(f"sqlite:///{tmp_path}/copy.db").sound
