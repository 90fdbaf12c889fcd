"""The room Studies without a browser: counts, figures, trials, downloads, claims, and stores that cannot be shown."""

import io
import json
import re
import sqlite3
import time

import polars as pl
import pytest

from genscope.explorer import _progress, _trial_view, studies_room
from genscope.explorer.studies_room import PAGE
from genscope.jsonable import jsonable
from genscope.lab import Record, Selection, Store, Trial
from genscope.lab.frames import flat
from genscope.lab.storage import database
from genscope.papers import PAPERS
from tests.explorer.stores import HOSTILE, fill, manifest, records, two_selections
from tests.postgres import PASSWORD


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'store.db'}"
    fill(url, "plain", HOSTILE)
    return url


@pytest.fixture
def empty(tmp_path):
    return f"sqlite:///{tmp_path / 'store.db'}"


def look(url):
    return studies_room.overview(url, _progress.Watch())


def test_the_overview_counts(url):
    found = look(url)
    assert found["problem"] is None
    counts = {study["name"]: (study["ok"], study["failed"]) for study in found["studies"]}
    assert counts == {"plain": (35, 1), HOSTILE: (35, 1)}
    assert found["claims"] == 2
    assert found["workers"] == []
    json.dumps(jsonable(found), allow_nan=False)


def test_a_store_that_is_not_there_yet_gets_a_friendly_page(empty):
    found = look(empty)["problem"]
    assert found["title"] == "There is no store yet"
    assert found["command"] == f"genscope reproduce --budget quick --store {database.parse(empty)}"


def test_a_store_without_studies(empty):
    Store(empty).close()
    assert look(empty)["problem"]["title"] == "Nothing has been run yet"


def test_a_store_of_a_newer_program(empty):
    Store(empty).close()
    with sqlite3.connect(database.parse(empty).database or "") as connection:
        connection.execute("UPDATE meta SET value = '99'")
    connection.close()
    problem = look(empty)["problem"]
    assert "made by a newer genscope" in problem["text"]
    with pytest.raises(ValueError, match="newer"):
        studies_room.trials(empty, {"study": "plain"})


def test_a_file_of_another_kind(tmp_path):
    (tmp_path / "notes.txt").write_text("these are my notes")
    problem = look(f"sqlite:///{tmp_path / 'notes.txt'}")["problem"]
    assert problem["title"] == "The store cannot be read"
    assert "not a SQLite database" in problem["text"]


def test_a_store_that_is_busy(empty, monkeypatch):
    fill(empty, "plain")
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    connection = sqlite3.connect(database.parse(empty).database or "", isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")  # in the log of a store, a writer would not be noticed
    connection.execute("BEGIN EXCLUSIVE")
    try:
        problem = look(empty)["problem"]
    finally:
        connection.close()
    assert problem["title"] == "The store is busy"
    assert "Let that process finish" in problem["text"]


def test_a_server_that_does_not_answer_keeps_its_secret():
    problem = look("postgresql+psycopg://user:hidden-word@127.0.0.1:9/none")["problem"]
    assert problem["title"] == "The store does not answer"
    assert "hidden-word" not in json.dumps(problem)


def test_a_password_among_the_options_of_an_address_is_not_shown(postgresql_url):
    address, password = re.sub(r"//(\w+):([\w-]+)@(.*)", r"//\3?user=\1&password=\2", postgresql_url), PASSWORD
    assert f"password={password}" in address
    Store(address).close()
    nothing = look(address)["problem"]
    assert "password=HIDDEN" in nothing["text"]
    assert f"--store '{database.shown(database.parse(address))}'" in nothing["command"]
    fill(address, "plain")
    found = look(address)
    assert found["store"].endswith("?password=HIDDEN&user=genscope")
    assert password not in json.dumps([nothing, jsonable(found)])


def test_rates_are_what_arrived_between_two_looks(monkeypatch):
    watch, clock = _progress.Watch(), [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: clock[0])
    assert watch.rates({"s": 10}) == {"s": None}
    clock[0] = 10.0
    assert watch.rates({"s": 30, "new": 5}) == {"s": 2.0, "new": 0.5}
    clock[0] = 200.0  # the first looks are too long ago
    assert watch.rates({"s": 30}) == {"s": None}
    clock[0] = 201.0
    assert watch.rates({"s": 20}) == {"s": 0.0}  # trials that were forgotten do not arrive


def test_progress_counts_what_each_budget_plans(url):
    found = studies_room.progress(url, {"study": "plain"})
    quick, standard = found["plans"]
    assert (quick["stored"], quick["planned"], quick["exact"]) == (36, 192, False)
    assert (standard["stored"], standard["planned"], standard["exact"]) == (9, 9, True)
    assert (found["ok"], found["failed"]) == (35, 1)
    with Store(url, read_only=True) as store:
        latest = max(finished.timestamp() for finished in store.frame("plain")["finished"])
    assert found["finished"] == pytest.approx(latest)


def test_progress_of_a_large_study_is_not_counted_point_by_point(url, monkeypatch):
    monkeypatch.setattr(_progress, "COUNTED", 10)
    assert [plan["stored"] for plan in studies_room.progress(url, {"study": "plain"})["plans"]] == [None, None]


def test_figures_are_those_of_the_report(url):
    found = studies_room.figures(url, {"study": "plain"})
    assert [figure["title"] for figure in found["figures"]] == ["Thresholds", "Successes", "Losses", "Attention"]
    assert all(figure["svg"].count("<svg") == 2 for figure in found["figures"])  # for wide and narrow pages
    assert found["trials"] == 36
    assert (found["selection"], found["command"]) == ("all stored trials", "")
    assert found["failures"]["rows"][0][0] == "ValueError: plain"
    json.dumps(jsonable(found), allow_nan=False)


def test_one_of_several_selections_is_chosen(empty):
    fill(empty, "plain")
    few, many = two_selections()
    with Store(empty) as store:
        for selection in (many, few):
            store.put_selection(selection)
    first = studies_room.figures(empty, {"study": "plain"})
    assert first["selections"] == [[few.id, "budget standard seeds 2"], [many.id, "budget standard seeds 4"]]
    assert (first["selected"], first["shown"], first["trials"]) == (many.id, 36, 36)
    other = studies_room.figures(empty, {"study": "plain", "selection": few.id})
    assert (other["selected"], other["shown"], other["trials"]) == (few.id, 18, 36)
    command = "genscope run my_file.py:plain --budget standard --seeds 2 --store"
    assert other["command"].startswith(command)
    with pytest.raises(ValueError, match="Selection is 'none', but must be one of"):
        studies_room.figures(empty, {"study": "plain", "selection": "none"})


def test_names_from_a_store_are_never_markup(url):
    found = studies_room.figures(url, {"study": HOSTILE})
    for figure in found["figures"]:
        assert "<img" not in figure["svg"]  # the only part that a page takes as markup
    assert "&lt;img" in found["figures"][0]["svg"]


def test_figures_of_two_studies_share_no_id(url):
    """The page of a claim stands next to figures of a study: a mark would be drawn as that of another figure."""
    ids = [
        set(
            re.findall(
                r' id="([^"]+)"', "".join(each["svg"] for each in studies_room.figures(url, {"study": name})["figures"])
            )
        )
        for name in ("plain", HOSTILE)
    ]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_figures_follow_the_store(empty):
    fill(empty, "plain")
    before = studies_room.figures(empty, {"study": "plain"})
    with Store(empty) as store:
        store.add(records("plain", seeds=range(4, 6)))
    assert studies_room.figures(empty, {"study": "plain"})["trials"] == before["trials"] + 18


def test_a_study_too_large_to_draw_is_left_to_the_report(url, monkeypatch):
    monkeypatch.setattr(studies_room, "DRAWN", 10)
    with pytest.raises(ValueError, match="Use genscope report for this one"):
        studies_room.figures(url, {"study": "plain"})


def test_a_page_of_trials(empty):
    with Store(empty) as store:
        store.put_manifest("plain", 1, manifest("plain"))
        store.add(records("plain", seeds=range(20)))
    found = studies_room.trials(empty, {"study": "plain", "order": "sample_size", "descending": True})
    assert (found["total"], found["first"], len(found["rows"])) == (180, 0, PAGE)
    names = [column["name"] for column in found["columns"]]
    assert found["rows"][0]["cells"][names.index("sample_size")] == 64
    assert found["rows"][0]["cells"][names.index("loss")] == "2 values"
    last = studies_room.trials(empty, {"study": "plain", "first": 150})
    assert len(last["rows"]) == 30
    beyond = studies_room.trials(empty, {"study": "plain", "first": 1000})
    assert (beyond["rows"], beyond["first"]) == ([], 180)
    only = studies_room.trials(empty, {"study": "plain", "filter": "length=10 success=yes sample_size<64"})
    assert only["total"] == 10


def test_what_is_no_number_says_so(empty):
    with Store(empty) as store:
        store.put_manifest("plain", 1, manifest("plain"))
        store.add(
            [Record(Trial("plain", 1, {"length": 1}, seed), {"x": x}) for seed, x in enumerate([float("nan"), 1.0])]
        )
    found = studies_room.trials(empty, {"study": "plain", "order": "seed"})
    column = [each["name"] for each in found["columns"]].index("x")
    assert [row["cells"][column] for row in found["rows"]] == ["nan", 1.0]


@pytest.mark.parametrize(
    ("ask", "advice"),
    [
        ({}, "must be a text"),
        ({"study": "none"}, "the store holds"),
        ({"study": "plain", "filter": "colour=3"}, "its columns are"),
        ({"study": "plain", "order": "loss"}, "an array of this study"),
        ({"study": "plain", "first": -1}, "a whole number from 0"),
        ({"study": "plain", "filter": "x" * 3000}, "Shorten it"),
    ],
)
def test_questions_that_make_no_sense(url, ask, advice):
    with pytest.raises(ValueError, match=advice):
        studies_room.trials(url, ask)


def test_one_trial_shows_its_curves_and_matrices(url):
    row = studies_room.trials(url, {"study": "plain", "filter": "seed=3 length=40 sample_size=64"})["rows"][0]
    found = studies_room.trial(url, {"id": row["id"]})
    (loss,) = [curve for curve in found["curves"] if curve["name"] == "loss"]
    assert (loss["x"], loss["along"]) == ([0, 50], "steps")
    (attention,) = found["matrices"]
    assert (attention["name"], attention["z"], attention["rows"]) == ("head 0", [[0.9, 0.1], [0.4, 0.6]], "row")
    assert ("length", "40") in found["point"]
    assert ("success", "yes") in found["values"]
    assert ("steps", "[0, 50]") in found["values"]  # a short list is written, unless a figure draws it
    assert found["command"] == (
        "genscope run plain --budget standard --where length=40 --where kind=plain --where sample_size=64 --seed 3"
    )
    assert jsonable(found)["curves"][0]["y"] == [0.7, None]


def test_long_curves_and_large_matrices_say_what_is_left_out():
    row = {"study": "s", "seed": 0, "status": "ok", "error": None, "seconds": 1.0, "compile_seconds": 0.0, "id": "i"}
    values = {"long": [0.0] * 5000, "wide": [[0.0] * 500] * 3, "deep": [[[1.0]]], "none": []}
    found = _trial_view.facts({**row, **values, "provenance": "p"}, {"axes": []}, Selection("s", 1))
    assert (len(found["curves"][0]["y"]), found["curves"][0]["note"]) == (1667, "One in 3 of 5000 values is drawn.")
    assert len(found["matrices"][0]["z"][0]) == _trial_view.WIDEST
    assert "3 by 500" in found["matrices"][0]["note"]
    assert found["others"] == ["deep"]


def test_a_trial_that_is_not_there(url):
    with pytest.raises(ValueError, match="Choose one from the table"):
        studies_room.trial(url, {"id": "nobody"})


def test_a_trial_that_failed(url):
    row = studies_room.trials(url, {"study": "plain", "filter": "status=failed"})["rows"][0]
    found = studies_room.trial(url, {"id": row["id"]})
    assert (found["status"], found["error"], found["curves"]) == ("failed", "ValueError: plain", [])


def test_downloads_are_what_export_writes(url):
    with Store(url, read_only=True) as store:
        frame = store.frame("plain")
    parquet = studies_room.download(url, {"study": "plain", "format": "parquet"})
    assert (parquet.name, pl.read_parquet(io.BytesIO(parquet.body)).equals(frame)) == ("plain.parquet", True)
    csv = studies_room.download(url, {"study": "plain", "format": "csv"})
    assert (csv.name, csv.body) == ("plain.csv", flat(frame).write_csv().encode())
    some = studies_room.download(url, {"study": "plain", "format": "parquet", "filter": "length=40 success=no"})
    assert pl.read_parquet(io.BytesIO(some.body)).equals(frame.filter((pl.col("length") == 40) & ~pl.col("success")))


def test_downloads_have_limits_and_known_kinds(url, monkeypatch):
    with pytest.raises(ValueError, match="one of csv, parquet"):
        studies_room.download(url, {"study": "plain", "format": "pickle"})
    monkeypatch.setattr(studies_room, "OFFERED", 10)
    with pytest.raises(ValueError, match="use genscope export plain"):
        studies_room.download(url, {"study": "plain", "format": "csv"})


def test_claims_in_their_order_with_their_study(url):
    found = studies_room.claims(url)
    assert [claim["id"] for claim in found["claims"]] == ["A2", "A10"]
    assert found["tally"] == [("holds", 1), ("fails", 1)]


def test_a_claim_has_rule_evidence_trials_and_what_was_planted(url):
    found = studies_room.claim(url, {"id": "A2"})
    assert found["parts"][0]["numbers"] == [("slope", "[1, 2]")]
    assert found["rule"] == "Fixed before."
    assert "the rule has changed since this verdict" in found["cautions"][-1]  # the claim A2 of today has another
    assert found["remark"] == "Remark on A2."
    assert found["planted"] == "a fault"
    assert found["erratum"] == PAPERS["edelman2022"].errata[5]
    (study,) = found["studies"]  # what the store holds
    assert (study["name"], study["ok"] + study["failed"] > 0) == ("plain", True)
    assert [figure["svg"][:4] for figure in found["figures"]] == ["<div"]
    assert found["command"] == "genscope reproduce --only A2 --budget quick"
    bare = studies_room.claim(url, {"id": "A10"})
    assert (bare["studies"], bare["figures"], bare["erratum"]) == ([], [], None)
    with pytest.raises(ValueError, match=r"got the claim 'Z9': the store has verdicts on A2, A10"):
        studies_room.claim(url, {"id": "Z9"})


def test_a_reader_in_the_middle_of_a_page_never_holds_up_a_writer(empty, monkeypatch):
    fill(empty, "plain")
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)  # a writer that had to wait would fail
    with studies_room._reading(empty) as reader, reader.reading() as connection:
        rows = connection.exec_driver_sql("SELECT id FROM trial")
        rows.fetchone()
        with Store(empty) as writer:
            writer.add(records("plain", seeds=range(4, 6)))
        rows.close()
    assert look(empty)["studies"][0]["ok"] == 53


@pytest.mark.slow
def test_a_million_trials_are_looked_through_in_seconds_and_never_sent(empty):
    fill(empty, "plain")
    many = """
        WITH RECURSIVE seeds(n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM seeds WHERE n < 1000099)
        INSERT INTO trial
            (id, study, revision, point, seed, status, result, seconds, compile_seconds, provenance, finished)
        SELECT printf('%032x', n), 'plain', 1, '{"kind":"plain","length":' || (n % 7) || ',"sample_size":8}', n, 'ok',
               '{"success":' || CASE WHEN n % 3 THEN 'true' ELSE 'false' END || '}', 0.5, 0, 'p', n FROM seeds"""
    with sqlite3.connect(database.parse(empty).database or "") as connection:
        connection.execute(many)
    connection.close()
    asks = [
        (lambda: look(empty), 2),
        (lambda: studies_room.progress(empty, {"study": "plain"}), 2),
        (lambda: studies_room.trials(empty, {"study": "plain", "order": "finished", "descending": True}), 10),
        (lambda: studies_room.trials(empty, {"study": "plain", "filter": "length=3 success=no", "order": "seed"}), 10),
    ]
    for ask, seconds in asks:
        begun = time.process_time()
        answer = ask()
        assert time.process_time() - begun < seconds
        assert len(json.dumps(jsonable(answer))) < 100_000
    assert answer["total"] == sum(n % 7 == 3 and n % 3 == 0 for n in range(100, 1_000_100))
    with pytest.raises(ValueError, match="Filter them"):
        studies_room.download(empty, {"study": "plain", "format": "csv"})


def test_the_room_leaves_the_store_as_it_was(empty):
    fill(empty, "plain")
    path = database.parse(empty).database or ""
    with open(path, "rb") as file:
        before = file.read()
    room = studies_room.room(empty)
    ask = {"study": "plain"}
    for question in ("overview", "progress", "figures", "trials", "claims"):
        room.questions[question](ask)
    room.questions["claim"]({"id": "A2"})
    room.downloads["trials"]({**ask, "format": "csv"})
    with open(path, "rb") as file:
        assert file.read() == before
