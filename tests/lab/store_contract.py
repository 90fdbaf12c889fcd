"""What every backend of the store must do; a backend's test subclasses this and gives the fixture `url`."""

import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest
import sqlalchemy as sa
import sqlalchemy.exc

from genscope.lab import Record, Store, Trial, check_store, read, select
from genscope.lab.plans.manifest import manifest
from genscope.lab.plans.study import canonical
from genscope.lab.results import browsing
from genscope.lab.storage import leases, schema
from genscope.lab.storage.store import Copied
from tests.lab import toys


def trials(count, *, study="s", revision=1, **point):
    return [Trial(study, revision, {"size": 1, **point}, seed) for seed in range(count)]


def records(found, **values):
    return [Record(trial, {"loss": trial.seed / 3, **values}, provenance={"commit": "abc"}) for trial in found]


def dead_process():
    """The number of a process that has just ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def sql(url, *commands):
    """Run commands in one transaction; rows of the last one."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        rows = [connection.exec_driver_sql(command) for command in commands][-1]
        return [tuple(row) for row in rows] if rows.returns_rows else []


def set_version(url, number):
    sql(url, f"UPDATE meta SET value = '{number}' WHERE name = 'genscope schema'")


def without_checksums(url):
    """Take a store back to version 3."""
    sql(url, *(f"ALTER TABLE {table.name} DROP COLUMN checksum" for table in schema.CHECKED))
    sql(url, "DROP INDEX trial_status", "CREATE INDEX trial_status ON trial (study, revision, status)")
    set_version(url, 3)


def look_ahead(monkeypatch, *steps):
    """Let the program be as many versions ahead as there are steps, each a statement of SQL."""
    migrations = {
        schema.VERSION + i: lambda connection, step=step: connection.exec_driver_sql(step)
        for i, step in enumerate(steps)
    }
    monkeypatch.setattr(schema, "MIGRATIONS", {**schema.MIGRATIONS, **migrations})
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + len(steps))
    monkeypatch.setattr(schema, "READABLE", schema.VERSION)


def indices(url):
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    return {index["name"]: index["column_names"] for index in sa.inspect(engine).get_indexes("trial")}


def side_by_side(work, *arguments):
    """Do the work in one thread per argument; what each returned."""
    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(work, arguments))


class StoreContract:
    @pytest.fixture
    def url(self):
        raise NotImplementedError("give the URL of an empty database")

    @pytest.fixture
    def store(self, url):
        with Store(url) as store:
            yield store

    def test_an_empty_store(self, store):
        assert store.done("s") == set()
        assert store.counts() == store.manifests() == {}
        assert store.verdicts() == []
        with pytest.raises(ValueError, match="run the study first"):
            store.frame("s")

    def test_added_trials_are_done_after_reopening(self, url):
        found = trials(3)
        with Store(url) as store:
            store.add(records(found))
        with Store(url) as store:
            assert store.done("s") == {trial.id for trial in found}
            assert store.done("s", 1) == store.done("s")
            assert store.done("s", 2) == store.done("other") == set()

    def test_a_record_is_written_once_and_never_edited(self, store):
        [trial] = trials(1)
        store.add([Record(trial, {"loss": 1.0}), Record(trial, {"loss": 2.0})])
        store.add([Record(trial, {"loss": 3.0})])
        assert store.frame("s")["loss"].to_list() == [1.0]

    @pytest.mark.parametrize("time", [math.nan, -1.0, math.inf, "1", None])
    def test_a_time_that_is_none_is_refused(self, time):
        with pytest.raises(ValueError, match=r"Record got compile_seconds=.*finite and not negative. Convert it"):
            Record(trials(1)[0], {}, compile_seconds=time)

    def test_a_transaction_is_whole(self, store):
        first, second = trials(2)
        broken = Record(second, {"loss": 1.0})
        object.__setattr__(broken, "seconds", {})  # which no database takes
        with pytest.raises(Exception, match="dict"):
            store.add([Record(first, {"loss": 1.0}), broken])
        assert store.done("s") == set()

    def test_adding_nothing(self, store):
        store.add([])
        assert store.counts() == {}

    def test_the_frame_is_flat_typed_and_exact(self, store):
        values = [
            {"loss": math.nan, "count": 2**63 - 1, "reached": True, "path": [1.0, math.inf]},
            {"loss": -math.inf, "count": -1, "reached": False, "path": [-0.0, 5e-324]},
            {"loss": 0.1 + 0.2, "count": 0, "reached": True, "path": []},
        ]
        points = [{"size": 2, "kind": "b", "rate": 0.5}, {"size": 2, "kind": "a", "rate": 0.5}]
        rows = [
            (Trial("s", 1, points[0], 1), values[0]),
            (Trial("s", 1, points[0], 0), values[1]),
            (Trial("s", 1, points[1], 7), values[2]),
        ]
        store.add([Record(trial, value, seconds=1.5, compile_seconds=0.5, finished=1e9) for trial, value in rows])
        store.add([Record(Trial("s", 1, points[1], 8), {}, error="Traceback ...", finished=1e9)])
        store.add([Record(Trial("other", 1, {"size": 9}, 0), {"loss": 1.0})])
        frame = store.frame("s")
        assert frame.columns[:8] == ["size", "kind", "rate", "seed", "loss", "count", "reached", "path"]
        assert dict(frame.schema) == {
            "size": pl.Int64,
            "kind": pl.String,
            "rate": pl.Float64,
            "seed": pl.Int64,
            "loss": pl.Float64,
            "count": pl.Int64,
            "reached": pl.Boolean,
            "path": pl.List(pl.Float64),
            "status": pl.String,
            "error": pl.String,
            "seconds": pl.Float64,
            "compile_seconds": pl.Float64,
            "finished": pl.Datetime("us", "UTC"),
            "provenance": pl.String,
            "revision": pl.Int64,
            "id": pl.String,
        }
        assert frame["seed"].to_list() == [7, 8, 0, 1]  # kind a before b, then by seed
        assert frame["status"].to_list() == ["ok", "failed", "ok", "ok"]
        assert repr(frame["loss"].to_list()) == "[0.30000000000000004, None, -inf, nan]"
        assert repr(frame["path"].to_list()) == "[[], None, [-0.0, 5e-324], [1.0, inf]]"
        assert frame["count"].to_list() == [0, None, -1, 2**63 - 1]
        assert frame["reached"].to_list() == [True, None, False, True]
        assert frame["error"].to_list() == [None, "Traceback ...", None, None]
        assert frame["finished"][0].isoformat() == "2001-09-09T01:46:40+00:00"
        assert frame["id"][2] == rows[1][0].id

    def test_the_frame_shows_the_revision_that_ran_last(self, store):
        for revision in (1, 2):
            store.add(records(trials(revision, revision=revision)))
        assert store.frame("s").height == 2
        assert store.frame("s", revision=1).height == 1
        store.put_manifest("s", 1, {})
        assert store.frame("s").height == 1
        assert store.counts() == {"s": {"ok": 1, "failed": 0}}
        store.put_manifest("s", 3, {})
        assert store.frame("s").is_empty()
        assert store.counts() == {"s": {"ok": 0, "failed": 0}}

    def test_stored_seeds_are_counted_by_point(self, store):
        store.add(records(trials(5, kind="a")))
        store.add([Record(Trial("s", 1, {"kind": "a", "size": 1}, seed), {}, error="no") for seed in (5, 9)])
        store.add([*records(trials(3)), *records(trials(3, revision=2)), *records(trials(3, study="other"))])
        first, second = canonical({"size": 1, "kind": "a"}), canonical({"size": 1})
        assert store.stored_seeds("s", 1, range(20)) == {first: 7, second: 3}
        assert store.stored_seeds("s", 1, range(4, 9)) == {first: 2}
        assert store.stored_seeds("s", 3, range(20)) == {}

    def test_any_text_of_an_exception_is_stored(self, store):
        first, second = trials(2)
        store.add([Record(first, {}, error="a\0b"), Record(second, {}, error="a file \udcff, ä")])
        assert store.frame("s")["error"].to_list() == ["a\\0b", "a file \\udcff, ä"]

    def test_results_of_chosen_trials(self, store):
        first, second, third = trials(3)
        store.add([Record(first, {"loss": math.inf}), Record(second, {}, error="no")])
        assert store.results([first, second, third]) == {first.id: {"loss": math.inf}, second.id: None}

    def test_a_failed_trial_that_is_retried_is_replaced_by_its_next_outcome_and_no_other_is(self, store):
        good, bad, worse = batch = trials(3, kind="a")
        store.add([Record(good, {"loss": 1.0}), Record(bad, {}, "no", finished=5), Record(worse, {}, "no", finished=6)])
        assert [trial.id for trial in store.failed("s", 1)] == [bad.id, worse.id]
        assert store.failed("s", 2) == []
        assert (store.last_failure("s", 1), store.last_failure("s", 2)) == (6, None)
        assert store.lease([batch]) is None
        assert store.done("s", 1, retried=5) == {good.id, worse.id}
        assert store.stored_seeds("s", 1, range(9), retried=6) == {canonical(good.point): 1}
        assert {*store.results(batch, retried=5)} == {good.id, worse.id}
        assert store.lease([batch], retried=5) is batch
        store.add([Record(each, {"loss": 2.0}) for each in batch], leased=batch)
        assert len(store.failed("s", 1)) == 2  # as they were: nobody asked for them again
        store.add([Record(each, {"loss": 2.0}) for each in batch], retried=5)
        assert store.results(batch) == {good.id: {"loss": 1.0}, bad.id: {"loss": 2.0}, worse.id: None}
        store.add([Record(worse, {}, "never", finished=7)], retried=6)
        assert store.lease([batch], retried=6) is None  # a new failure is an outcome
        assert store.frame("s")["error"].to_list() == [None, None, "never"]

    def test_provenance_is_stored_once_and_found_by_the_frame(self, store):
        store.add(records(trials(2)))
        store.add(records(trials(1, kind="x")))
        [(name, facts)] = store.provenances("s").items()
        assert facts == {"commit": "abc"}
        assert set(store.frame("s")["provenance"]) == {name}

    def test_manifests_are_replaced(self, store):
        store.put_manifest("s", 1, {"title": "old", "axes": ["size"]})
        store.put_manifest("s", 2, {"title": "new"})
        store.put_manifest("a", 1, {"title": "ä"})
        assert store.manifests() == {"a": {"title": "ä"}, "s": {"title": "new"}}

    def test_the_newest_verdict_wins_and_the_others_stay(self, store):
        store.put_verdict("A2", "quick", {"verdict": "holds"})
        store.put_verdict("A1", "paper", {"verdict": "undecided", "low": -math.inf})
        store.put_verdict("A1", "quick", {"verdict": "fails", "low": 0.1 + 0.2})
        newest = [(v["claim"], v["budget"], v["verdict"]) for v in store.verdicts()]
        assert newest == [
            ("A1", "quick", {"verdict": "fails", "low": 0.1 + 0.2}),
            ("A2", "quick", {"verdict": "holds"}),
        ]
        history = store.verdicts(history=True)
        assert [v["verdict"]["verdict"] for v in history] == ["undecided", "fails", "holds"]
        assert abs(history[0]["finished"] - time.time()) < 600

    def test_a_batch_is_leased_to_one(self, url, store):
        one, two = trials(2, kind="a"), trials(2, kind="b")
        with Store(url) as other:
            assert store.lease([one, two]) is one
            assert other.lease([one, two]) is two
            assert store.lease([one, two]) is None
            other.release(one)  # not theirs to give back
            assert store.lease([one]) is None
            store.release(one)
            assert other.lease([one, two]) is one
            other.release()
            assert store.lease([one, two]) is one

    def test_a_finished_batch_is_never_leased(self, store):
        batch = trials(2)
        store.add(records(batch[:1]))
        assert store.lease([batch]) is batch
        store.add([Record(batch[1], {}, error="no")], leased=batch)
        assert store.lease([batch]) is None

    def test_adding_gives_back_the_lease(self, url, store):
        batch = trials(2)
        assert store.lease([batch]) is batch
        store.add(records(batch[:1]), leased=batch)
        with Store(url) as other:
            assert other.lease([batch]) is batch

    def test_a_lease_whose_answer_was_lost_is_taken_again(self, store):
        one, two = trials(1, kind="a"), trials(1, kind="b")
        assert store.lease([two]) is two
        with store._write() as connection:
            assert leases.take(connection, [one], store._holder, 60.0, sa.true()) is one
        assert store.lease([one, two]) is one
        assert store.lease([one, two]) is None

    def test_a_shared_study_is_computed_once(self, url, store):
        batches = [trials(2, kind=str(number)) for number in range(12)]

        def work(_):
            computed = 0
            with Store(url) as mine:
                while (batch := mine.lease(batches)) is not None:
                    mine.add(records(batch), leased=batch)
                    computed += len(batch)
            return computed

        assert sum(side_by_side(work, 1, 2, 3)) == 24
        assert store.frame("s").height == 24
        assert sql(url, "SELECT count(*) FROM lease") == [(0,)]

    def test_a_lease_expires_unless_renewed(self, url):
        """By the database's clock; no machine is slow enough to miss an hour."""
        kept, lost = trials(1, kind="kept"), trials(1, kind="lost")
        with Store(url, lease_seconds=3600.0) as long, Store(url, lease_seconds=0.2) as brief, Store(url) as other:
            assert long.lease([kept]) is kept
            [(first,)] = sql(url, "SELECT expires FROM lease")
            assert brief.lease([lost]) is lost
            while (found := other.lease([kept, lost])) is None:
                time.sleep(0.05)
            assert found is lost
            assert other.lease([kept, lost]) is None
            long.renew()
            assert sql(url, f"SELECT count(*) FROM lease WHERE expires > {first} + 0.1") == [(1,)]

    def test_a_dead_process_of_this_machine_holds_nothing(self, url, store):
        batch = trials(1)
        with Store(url) as dead, Store(url) as far:
            object.__setattr__(dead._holder, "pid", dead_process())
            assert dead.lease([batch]) is batch
            assert store.lease([batch]) is batch
            store.release()
            object.__setattr__(far._holder, "pid", dead_process())
            object.__setattr__(far._holder, "host", "elsewhere")
            assert far.lease([batch]) is batch
            assert store.lease([batch]) is None

    def test_process_one_is_alive(self, store):
        assert not store._holder.knows_dead(store._holder.host, 1)
        assert not store._holder.knows_dead(store._holder.host, os.getpid())

    def test_threads_write_side_by_side(self, url, store):
        def write(kind):
            with Store(url) as mine:
                for trial in trials(10, kind=kind):
                    mine.add(records([trial, *trials(1, kind="shared")]))

        side_by_side(write, *"abc")
        assert store.frame("s").height == 31

    def test_several_make_and_describe_one_store_at_once(self, url):
        def work(number):
            with Store(url) as mine:
                for _ in range(3):
                    mine.put_manifest("s", 1, {"by": number})
                return mine.manifests()["s"]["by"]

        assert set(side_by_side(work, 1, 2, 3, 4)) <= {1, 2, 3, 4}

    def test_a_newer_store_is_refused(self, url, store):
        set_version(url, schema.VERSION + 1)
        for read_only in (False, True):
            with pytest.raises(ValueError, match="Install a newer genscope"):
                Store(url, read_only=read_only)

    def test_a_store_of_version_1_is_read_as_it_is_and_migrated_when_written(self, url):
        study, wide = toys.fixed, select(toys.fixed, where={"size": [1]}, seeds=9)
        quick = select(study, "quick")
        with Store(url) as store:
            store.add(records(trials(3)))
            store.add(records([trial for point in quick.points for trial in quick.trials(point, quick.seeds)]))
            store.put_manifest(study.name, study.revision, manifest(study))
        fresh = indices(url)
        without_checksums(url)
        old = "CREATE INDEX trial_study ON trial (study, revision)"
        sql(url, "DROP INDEX trial_status", "DROP INDEX trial_point", "DROP TABLE selection", old)
        set_version(url, 1)
        with Store(url, read_only=True) as store:
            assert len(store.done("s")) == store.frame("s").height == 3
            assert [each.id for each in store.selections(study.name)] == [quick.id]
        assert list(indices(url)) == ["trial_study"]
        side_by_side(lambda url: Store(url).close(), url, url, url)  # who comes later finds it done
        assert indices(url) == fresh
        with Store(url) as store:
            assert store.frame("s").height == 3
            assert [each.command for each in store.selections(study.name)] == [quick.command]
            assert [each.title for each in store.selections("s")] == ["all stored trials"]  # it has no manifest
            store.put_selection(wide)
            assert [each.id for each in store.selections(study.name)] == [quick.id, wide.id]

    def test_trials_beside_the_budgets_of_an_older_store_are_a_selection_too(self, url):
        study = toys.fixed
        part = select(study, where={"size": [1]})
        with Store(url) as store:
            store.add(records([trial for point in part.points for trial in part.trials(point, part.seeds)]))
            store.put_manifest(study.name, study.revision, manifest(study))
        without_checksums(url)
        sql(url, "DROP TABLE selection")
        set_version(url, 2)
        with Store(url) as store:
            assert [each.title for each in store.selections(study.name)] == ["budget quick", "all stored trials"]
            assert read(store, store.selections(study.name)[-1]).frame.height == 10

    def test_a_store_of_version_3_is_read_as_it_is_and_gets_checksums_when_written(self, url, tmp_path):
        with Store(url) as store:
            store.add(records(trials(3)))
            store.put_manifest("s", 1, manifest(toys.fixed))
            store.put_verdict("A", "quick", {"id": "A"})
            store.put_selection(select(toys.fixed))
        fresh = indices(url)
        without_checksums(url)
        with Store(url, read_only=True) as store, Store(f"sqlite:///{tmp_path}/copy.db") as copy:
            assert store.frame("s").height == len(store.results(trials(3))) == len(store.provenances("s")) * 3 == 3
            assert browsing.trial(store, trials(1)[0].id)["loss"] == 0
            store.copy_to(copy)
            assert copy.frame("s").height == 3
        assert check_store(url).sound
        with Store(url) as store:
            assert store.frame("s").height == 3
        assert indices(url) == fresh
        health = check_store(url)
        assert (health.version, health.problems) == (schema.VERSION, ())
        assert health.rows["trial"] == 3
        sql(url, "UPDATE trial SET result = '{}' WHERE seed = 0")
        assert not check_store(url).sound
        with Store(url) as store, pytest.raises(ValueError, match="1 of 3 rows of the table trial"):
            store.frame("s")

    def test_an_older_store_is_migrated_step_by_step(self, url, monkeypatch):
        with Store(url) as store:
            store.add(records(trials(3)))
        steps = ("ALTER TABLE trial ADD COLUMN host TEXT", "UPDATE trial SET host = 'here', seconds = 7")
        look_ahead(monkeypatch, *steps)
        with pytest.raises(ValueError, match="Open it once for writing"):
            Store(url, read_only=True)
        with Store(url) as store:
            assert store.frame("s")["seconds"].to_list() == [7, 7, 7]
        assert sql(url, "SELECT value FROM meta") == [(str(schema.VERSION),)]
        assert sql(url, "SELECT DISTINCT host FROM trial") == [("here",)]

    def test_a_migration_that_fails_changes_nothing(self, url, monkeypatch):
        with Store(url) as store:
            store.add(records(trials(3)))
        with monkeypatch.context() as ahead:
            look_ahead(ahead, "ALTER TABLE trial ADD COLUMN host TEXT", "UPDATE trial SET nonsense = 1")
            with pytest.raises(Exception, match="nonsense"):
                Store(url)
        with pytest.raises(sqlalchemy.exc.DBAPIError, match="host"):
            sql(url, "SELECT host FROM trial")
        with Store(url) as store:
            assert store.frame("s").height == 3

    def test_a_reader_sees_one_moment_and_blocks_nobody(self, url, store):
        store.add(records(trials(1)))
        with Store(url, read_only=True) as reader, reader.reading() as connection:
            before = connection.exec_driver_sql("SELECT count(*) FROM trial").scalar()
            store.add(records(trials(5)))
            assert before == connection.exec_driver_sql("SELECT count(*) FROM trial").scalar() == 1
            assert store.frame("s").height == 5
            with Store(url, read_only=True) as second:
                assert second.frame("s").height == 5

    def test_a_store_for_reading_cannot_write(self, url, store):
        store.put_manifest("s", 1, {})
        with Store(url, read_only=True) as reader:
            assert reader.manifests() == {"s": {}}
            for write in (
                lambda: reader.add(records(trials(1))),
                lambda: reader.put_manifest("s", 1, {}),
                lambda: reader.put_verdict("A1", "quick", {}),
                lambda: reader.lease([trials(1)]),
            ):
                with pytest.raises(ValueError, match="Open it without read_only"):
                    write()

    def test_copying_into_a_store_that_has_some(self, url, store, tmp_path):
        store.add(records(trials(4)))
        store.put_manifest("s", 1, {"title": "copied"})
        store.put_verdict("A1", "quick", {"verdict": "holds"})
        store.put_selection(select(toys.fixed.replace(name="s")))
        with Store(f"sqlite:///{tmp_path}/copy.db") as target:
            target.add([Record(trial, {"loss": -1.0}) for trial in trials(1)])
            for _ in range(2):
                store.copy_to(target)
                frame = target.frame("s")
                assert frame["loss"].to_list() == [-1.0, 1 / 3, 2 / 3, 1.0]
                assert target.verdicts(history=True) == store.verdicts(history=True)
                assert target.manifests() == store.manifests()
                assert target.selections("s") == store.selections("s") == [select(toys.fixed.replace(name="s"))]
            target.put_manifest("s", 1, {"title": "newer"})
            store.copy_to(target)
            assert target.manifests() == {"s": {"title": "newer"}}
            target.copy_to(store)
            assert store.frame("s")["loss"].to_list() == [0.0, 1 / 3, 2 / 3, 1.0]
            assert store.manifests() == {"s": {"title": "newer"}}

    def test_copying_brings_retried_successes_home(self, url, store, tmp_path):
        first, second, third, fourth = trials(4)
        fifth = Trial("s", 2, {"size": 1}, 0)  # of a later revision, and of no study that ran
        store.add([Record(first, {}, "no"), Record(second, {}, "no"), Record(third, {"loss": 3.0})])
        with Store(f"sqlite:///{tmp_path}/away.db") as away:
            away.add([Record(first, {"loss": 1.0}, finished=1.0), Record(second, {}, "still no")])
            away.add([Record(third, {}, "no"), Record(fourth, {"loss": 4.0}), Record(fifth, {"loss": 5.0})])
            assert away.copy_to(store) == Copied(trials=5, new=2, replaced=1, lost=0)
            assert away.copy_to(store) == Copied(trials=5, new=0, replaced=0, lost=0)
            assert store.copy_to(away) == Copied(trials=5, new=0, replaced=1, lost=0)
        frame = store.frame("s", 1).sort("seed")
        assert frame["loss"].to_list() == [1.0, None, 3.0, 4.0]
        assert frame["error"].to_list() == [None, "no", None, None]
        for each in (url, f"sqlite:///{tmp_path}/away.db"):
            assert check_store(each).sound
