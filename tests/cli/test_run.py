import html
import json
import shlex
from pathlib import Path

import dask.config
import pytest

from genscope.lab import Store
from tests.cli.program import TOYS


def test_the_contract_for_scripts(call_json):
    facts = call_json("run", f"{TOYS}:search")
    assert facts["study"] == "toy-search"
    assert facts["trials"] == facts["new_trials"] > 0
    assert len(facts["thresholds"]) == 8
    for found in facts["thresholds"]:
        assert {"context_length", "sample_size", "low", "high", "trials", "preset"} <= set(found)
        assert found["level"] == 0.8
        assert found["plateau"]["low"] <= found["plateau"]["value"] <= found["plateau"]["high"] <= 1
    tuned = {f["context_length"]: f for f in facts["thresholds"] if f["preset"] == "tuned"}
    assert tuned[1000]["low"] < tuned[1000]["sample_size"] < tuned[1000]["high"]
    assert 0.5 < tuned[1000]["sample_size"] / 27.6 < 2  # how good estimates are is tested in tests/lab
    assert facts["fit"]["best"] in facts["fit"]["laws"]
    assert {"log", "power", "linear"} <= set(facts["fit"]["laws"])
    assert set(facts["fits"]) == {"tuned", "minGPT"}
    assert facts["fits"]["tuned"] == facts["fit"]
    again = call_json("run", f"{TOYS}:search")
    assert again["new_trials"] == 0
    assert again["thresholds"] == facts["thresholds"]


def test_each_level_has_its_threshold_the_plateau_and_a_law(call_json):
    facts = call_json("run", f"{TOYS}:levels")
    assert [found["level"] for found in facts["thresholds"]] == [0.8, 0.5, "0.8 of plateau"]
    eighty, half, of_plateau = (found["sample_size"] for found in facts["thresholds"])
    assert half < of_plateau <= eighty
    [plateau] = {tuple(found["plateau"].values()) for found in facts["thresholds"]}
    assert 0.5 < min(plateau) <= max(plateau) <= 1
    assert {fit["level"] for fit in facts["fits"].values()} == {0.8, 0.5, "0.8 of plateau"}


def test_a_censored_threshold_says_on_which_side(call_json):
    [found] = call_json("run", f"{TOYS}:search", "--budget", "quick")["thresholds"]
    assert found["sample_size"] is None
    assert found["low"] is not None
    assert found["high"] is None


def test_an_unresolved_threshold_ends_with_the_next_step(call, call_json):
    facts = call_json("run", f"{TOYS}:search", "--budget", "quick")
    assert facts["next"]["command"] == f"genscope run {TOYS}:search --budget standard"
    assert facts["next"]["seconds"] >= 0
    told = call("run", f"{TOYS}:search", "--budget", "quick").stdout
    assert f"Continue with {facts['next']['command']} (about " in told
    resolved = call_json("run", f"{TOYS}:search", "--where", "preset=tuned", "--where", "context_length=1000")
    assert resolved["next"] is None


def test_a_grid_along_the_searched_axis_gives_thresholds_too(call_json):
    facts = call_json(
        "run", f"{TOYS}:search", "--where", "sample_size=8,16,24,32,48,64", "--where", "preset=tuned", "--seeds", 20
    )
    assert facts["trials"] == 4 * 6 * 20
    assert [found["context_length"] for found in facts["thresholds"]] == [10, 100, 1000, 10_000]
    assert facts["fit"]["best"] in facts["fit"]["laws"]
    assert "fits" not in facts


def test_a_study_without_a_search_has_no_threshold(call_json):
    facts = call_json("run", f"{TOYS}:study")
    assert (facts["trials"], facts["new_trials"], facts["thresholds"], facts["fit"]) == (8, 8, [], None)
    first = facts["points"][0]
    assert first == {
        "size": 1,
        "kind": "good",
        "trials": 2,
        "failed": 0,
        "shares": {"solved": 0.0, "diverged": 0.0},
        "medians": {"number": 0.5},
    }


def test_what_went_wrong_is_a_warning(call):
    result = call("run", f"{TOYS}:study")
    assert "warning: 4 of 8 trials diverged" in result.stderr
    assert "warning: 4 of 8 trials measured a number that is not finite" in result.stderr


def test_people_see_a_table_and_what_to_do_next(call, directory):
    told = call("run", f"{TOYS}:search", "--where", "preset=tuned").stdout
    assert "A threshold (toy-search, budget standard)" in told
    assert "95 % interval" in told
    assert told.rstrip().endswith("Next: genscope report")
    told = call("run", f"{TOYS}:study", "--store", "sqlite:///other place.db").stdout
    assert f"Next: genscope report --store 'sqlite:///{directory}/other place.db'" in told
    assert "share solved" in told
    assert (directory / "other place.db").exists()


def test_where_seeds_and_seed_choose(call_json):
    def run(*options):
        return call_json("run", f"{TOYS}:study", *options)

    assert run("--where", "size=2")["trials"] == 4
    assert run("--where", "size=1,2", "--where", "kind=good", "--seeds", 5)["new_trials"] == 8  # two were stored
    assert run("--where", "size=7", "--seed", 40)["trials"] == 2
    assert run("--budget", "quick")["trials"] == 1


def test_the_store_may_be_named_by_the_environment(call_json, directory, monkeypatch):
    monkeypatch.setenv("GENSCOPE_STORE", "sqlite:///there.db")
    call_json("run", f"{TOYS}:study", "--budget", "quick")
    assert (directory / "there.db").exists()
    assert not (directory / "genscope.db").exists()


def test_a_dry_run_writes_nothing(call, call_json, directory):
    plan = call_json("run", f"{TOYS}:study", "--dry-run")
    assert plan == {
        "study": "toy",
        "budget": "standard",
        "points": 4,
        "trials": 8,
        "most": 8,
        "stored": 0,
        "seconds": None,
        "measured": False,
    }
    assert not list(directory.iterdir())
    assert "8 trials; 0 stored" in call("run", f"{TOYS}:study", "--dry-run").stdout
    call("run", f"{TOYS}:study", "--seed", 0)
    plan = call_json("run", f"{TOYS}:study", "--dry-run")
    assert plan["stored"] == 4
    assert plan["seconds"] >= 0
    assert plan["measured"]
    assert "The missing 4 would take about" in call("run", f"{TOYS}:study", "--dry-run").stdout
    plan = call_json("run", f"{TOYS}:search", "--dry-run")
    assert (plan["trials"], plan["most"]) == (8 * 8, 8 * 32)
    told = call("run", f"{TOYS}:search", "--dry-run").stdout
    assert "64 trials now and up to 256 as the search goes on" in told
    assert "The missing 64 would take about" in told
    assert ", all 256 about" in told
    assert "the study's own estimate" in told


def test_when_every_trial_fails_the_status_is_one_and_the_traceback_is_the_users(call, call_json):
    result = call("run", f"{TOYS}:broken", status=1)
    assert "every trial failed" in result.stderr
    assert "RuntimeError: a trial of the user fell over" in result.stderr
    facts = call_json("run", f"{TOYS}:broken", status=1)
    assert (facts["failed"], facts["new_trials"]) == (2, 0)
    assert call_json("run", f"{TOYS}:broken", "--retry", "failed", status=1)["new_trials"] == 2


def test_an_exception_that_passed_through_jax_is_told_by_its_own_line(call, call_json, directory):
    """JAX adds a note on its frames, which comes last."""
    facts = call_json("run", f"{TOYS}:misshapen", status=1)
    said = "TypeError: dot_general requires contracting dimensions to have the same shape, got (3,) and (4,)."
    assert "JAX has removed" in facts["error"].splitlines()[-1]
    assert facts["warnings"][0].startswith(
        f"2 of 2 trials raised an exception, and nothing here counts them; the first says: {said}"
    )
    call("report")
    report = html.unescape((directory / "report.html").read_text())
    assert said in report
    assert "JAX has removed" not in report


def test_an_unknown_study_is_answered_with_the_nearest(refused):
    assert "Did you mean edelman2022-parity?" in refused("run", "edelman-parity")
    assert "Choose a name that genscope list shows" in refused("run", "zzz")
    assert "Write my_file.py:study" in refused("run", "my_file.py")
    assert "there is no file my_file.py" in refused("run", "my_file.py:study")
    assert "study_file.py: its studies are study, broken" in refused("run", f"{TOYS}:nothing")
    assert "'no_study' is of type int" in refused("run", f"{TOYS}:no_study")
    assert "which a shipped study already has: their results would mix" in refused("run", f"{TOYS}:taken")


def test_a_users_file_that_fails_shows_its_own_traceback(call, directory):
    (directory / "wrong.py").write_text("def f():\n    return 1 / 0\n\n\nstudy = f()\n")
    told = call("run", "wrong.py:study", status=1).stderr
    assert "wrong.py could not be loaded" in told
    assert "ZeroDivisionError" in told
    assert "_lookup.py" not in told
    assert "importlib" not in told
    (directory / "typo.py").write_text("study = (\n")
    told = call("run", "typo.py:study", status=1).stderr
    assert "SyntaxError" in told
    assert "_lookup.py" not in told
    (directory / "leaves.py").write_text("raise SystemExit(0)\n")
    assert "SystemExit" in call("run", "leaves.py:study", status=1).stderr


def test_a_users_file_may_import_its_neighbours(call_json, directory):
    (directory / "neighbour.py").write_text("SIZES = [1, 2, 3]\n")
    (directory / "mine.py").write_text(
        "from genscope import Study, grid\nfrom neighbour import SIZES\n"
        "def trial(key, size):\n    return {'x': size}\n"
        "study = Study(name='mine', title='', source='', trial=trial, points=grid(size=SIZES))\n"
    )
    assert call_json("run", "mine.py:study")["trials"] == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--where", "length=3"], "its axes are size, kind. Choose one of these"),
        (["--where", "size"], "write axis=value,value, such as context_length=100,200"),
        (["--where", "size="], "got no value for size: name at least one"),
        (["--where", "size=big"], "the values of size must be whole numbers. Correct it"),
        (["--where", "kind=bad"], "its values are good, odd. Choose from these"),
        (
            ["--where", "size=0"],
            "size=0 kind=good, which is impossible: size lies between 1 and 100. Choose such a value",
        ),
        (["--seeds", "3", "--seed", "1"], "Give only one of the two"),
        (["--seeds", "0"], "Give 1 or more"),
        (["--seeds", "-3"], "Give 1 or more"),
        (["--seed", "-1"], "a seed must be between 0 and 2^31 - 1"),
        (["--seeds", "1000000000000"], "one run may have at most 1,000,000 trials"),
        (["--seeds", "many"], "'--seeds': it must be a whole number"),
        (["--retry", "all"], "failed"),
        (["--dry-run", "--retry", "failed"], "Leave one of them out"),
        (["--workers", "0"], "at least one is needed. Give 1 or more"),
        (["--workers", "2", "--cluster", "tcp://there:8786"], "Leave one of them out"),
        (["--time-limit", "0"], "it must be positive and finite. Change it"),
        (["--store", "results"], "write sqlite:///results"),
        (["--store", "mysql://host/name"], "SQLite or PostgreSQL"),
        (["--store", "sqlite:///no/such/place.db"], "there is no directory"),
        (["--store", "sqlite:///."], "a directory: a SQLite store is a file"),
        (["--store", "postgresql://host:port/name"], "Check the port"),
    ],
)
def test_requests_that_make_no_sense(options, said, refused, directory):
    told = " ".join(refused("run", f"{TOYS}:study", *options).replace("│", " ").split())
    assert said in told
    assert not list(directory.iterdir())


def test_workers_and_a_time_limit(call_json, directory):
    plan = call_json("run", f"{TOYS}:study", "--workers", 2, "--dry-run")
    assert plan["trials"] == 8
    facts = call_json("run", f"{TOYS}:study", "--workers", 1, "--time-limit", 100, "--where", "kind=good")
    assert (facts["new_trials"], facts["failed"]) == (4, 0)
    assert facts["points"][0]["medians"] == {"number": 0.5}
    facts = call_json("run", f"{TOYS}:study", "--where", "kind=good")  # threads take them for their own
    assert facts["new_trials"] == 0


def test_a_cluster_that_does_not_answer(refused, directory):
    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
        told = refused("run", f"{TOYS}:study", "--cluster", "tcp://127.0.0.1:1")
    assert "Start `dask scheduler` there, or correct the address" in told
    assert not list(directory.iterdir())


@pytest.mark.parametrize("where", ["context_length=2", "sample_size=0"])
def test_impossible_sizes_of_shipped_studies_are_refused(where, refused, directory):
    for study in ("edelman2022-and", "edelman2022-and-long", "edelman2022-curves", "edelman2022-attention"):
        assert "impossible" in refused("run", study, "--where", where)
    if where == "context_length=2":
        assert "impossible" in refused("run", "edelman2022-parity", "--where", where)
    assert not list(directory.iterdir())


def test_files_that_are_no_store_stay_as_they_are(refused, directory):
    foreign = directory / "notes.db"
    foreign.write_text("not a database, but my notes")
    assert "not a SQLite database" in refused("run", f"{TOYS}:study", "--store", "sqlite:///notes.db")
    assert foreign.read_text() == "not a database, but my notes"
    assert sorted(path.name for path in directory.iterdir()) == ["notes.db"]


def test_a_store_of_a_newer_genscope_is_refused(refused):
    import sqlite3

    Store("sqlite:///newer.db").close()
    with sqlite3.connect("newer.db") as connection:
        connection.execute("UPDATE meta SET value = '999'")
    for command in (["run", f"{TOYS}:study"], ["list"], ["report"], ["export", "toy"], ["reproduce"]):
        assert "made by a newer genscope" in refused(*command, "--store", "sqlite:///newer.db")


def test_json_is_one_object_and_nothing_else(call):
    result = call("run", f"{TOYS}:study", "--json")
    json.loads(result.stdout)
    assert "warning" in result.stderr


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc here")
def test_a_directory_that_only_looks_writable_is_refused(refused):
    assert "cannot open" in refused("run", f"{TOYS}:study", "--store", "sqlite:////proc/genscope.db")


def test_a_failed_trial_of_a_users_file_can_be_repeated_and_read(call, call_json, directory):
    file = directory / "mine.py"
    file.write_text(
        "from genscope import Study, grid\n"
        "def trial(key, size):\n"
        "    if size == 2: raise RuntimeError('no network of this size')\n"
        "    return {'number': size}\n"
        "study = Study(name='mine', title='', source='', trial=trial, points=grid(size=[1, 2]), seeds=2)\n"
    )
    said = call("run", "mine.py:study", "--store", "sqlite:///other.db").stderr
    assert "2 trials failed: RuntimeError: no network of this size" in said
    assert "in trial" not in said
    [command] = [line.partition("again: ")[2] for line in said.splitlines() if "again: " in line]
    assert command.startswith("genscope run mine.py:study --budget standard --where size=2 --seed 0 --retry failed")
    again = call(*shlex.split(command)[1:], status=1).stderr
    assert "one trial failed:\nTraceback (most recent call last):" in again
    assert ", in trial\n    if size == 2" in again
    [failure] = call_json("run", "mine.py:study", "--store", "sqlite:///other.db")["failures"]
    assert (failure["trials"], failure["error"]) == (2, "RuntimeError: no network of this size")
    assert "Traceback" in failure["traceback"]
