import csv
import json
import os
import shutil
import subprocess
import sys

import matplotlib.image
import polars as pl
import pytest

from genscope.lab import Line, Mean, Record, Store, Study, Trial, grid
from genscope.lab.plans.manifest import manifest
from genscope.report import file as figure_file
from genscope.report import svg


@pytest.fixture
def stored(toy_store, directory):
    """A store with the trials of the toy study in the test's directory."""
    shutil.copy(toy_store(), directory / "genscope.db")


def test_export_writes_what_the_store_holds(stored, call_json, directory):
    facts = call_json("export", "toy", "--out", "trials.parquet")
    assert (facts["rows"], facts["format"], facts["file"]) == (8, "parquet", "trials.parquet")
    with Store("sqlite:///genscope.db", read_only=True) as store:
        expected = store.frame("toy")
    assert pl.read_parquet(directory / "trials.parquet").equals(expected)
    assert facts["columns"] == expected.columns


def test_export_to_csv_writes_lists_as_json(stored, call, directory):
    assert "toy.csv: 8 trials" in call("export", "toy", "--format", "csv").stdout
    frame = pl.read_csv(directory / "toy.csv")
    assert frame["curve"][0] == "[1.0, 0.5]"
    assert frame["number"].is_nan().sum() == 4
    assert sorted(path.name for path in directory.iterdir() if path.suffix == ".csv") == ["toy.csv"]


def test_export_writes_the_kind_of_file_that_its_name_says(stored, call_json, directory):
    assert call_json("export", "toy", "--out", "trials.csv")["format"] == "csv"
    assert pl.read_csv(directory / "trials.csv").height == 8
    assert call_json("export", "toy", "--out", "trials.txt", "--format", "csv")["format"] == "csv"
    assert call_json("export", "toy", "--out", "trials")["format"] == "parquet"


FIGURE = Line(x="size", y=Mean("loss"), title="Losses", caption="")
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\n\n\r@A1"]
TEXTS = ["a=1", "'=1", "", "\na=1", "\N{FULLWIDTH EQUALS SIGN}1"]


def test_no_cell_of_a_csv_begins_like_a_formula(call, directory):
    with Store("sqlite:///genscope.db") as store:
        study = Study(name="texts", title="Texts", source="", trial=dict, points=grid(kind=FORMULAS + TEXTS), seeds=1)
        store.put_manifest(study.name, study.revision, manifest(study))
        store.add([Record(Trial("texts", 1, {"kind": kind}, 0), {"loss": -1.5}) for kind in FORMULAS + TEXTS])
    call("export", "texts", "--format", "csv")
    call("export", "texts", "--out", "texts.parquet")
    with open(directory / "texts.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["kind"] for row in rows} == {*("'" + kind for kind in FORMULAS), *TEXTS}
    assert {row["loss"] for row in rows} == {"-1.5"}  # numbers are numbers
    assert sorted(pl.read_parquet(directory / "texts.parquet")["kind"]) == sorted(FORMULAS + TEXTS)


# From when a file is begun, none may grow beyond a limit: the system fails the same calls as on a full disk.
ON_A_FULL_DISK = """
import json, resource, secrets, sys
from genscope.cli._app import main
draw, room = secrets.token_hex, resource.getrlimit(resource.RLIMIT_FSIZE)

def drawn(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, room[1]))
    return draw(size)

secrets.token_hex = drawn
for sys.argv[1:] in json.loads(sys.argv[1]):
    try:
        main()
    except SystemExit as end:
        print(end.code)
    resource.setrlimit(resource.RLIMIT_FSIZE, room)
"""


def test_a_disk_that_is_full_leaves_the_old_file_and_says_so(stored, directory):
    requests = [
        ["export", "toy", "--format", "csv", "--out", "a"],
        ["export", "toy", "--format", "parquet", "--out", "b"],
        ["construct", "x0 & x1", "--context-length", "300", "--out", "c"],
        ["report", "--out", "d"],
        ["bound", "rademacher", "--capacity", "5", "--range", "1", "--vary", "samples=10:1e8", "--plot", "e.svg"],
    ]
    for *_, name in requests:
        (directory / name).write_text("old")
    command = [sys.executable, "-c", ON_A_FULL_DISK, json.dumps(requests)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["2"] * len(requests), ended.stderr
    for *_, name in requests:
        said = f"{name} could not be written (File too large): the file that was there is unchanged. Free some"
        assert said in ended.stderr
        assert (directory / name).read_text() == "old"
    assert "Traceback" not in ended.stderr
    assert not list(directory.glob(".genscope-*"))  # no half of a file


def test_what_goes_to_a_pipe_is_read_there(stored, call, directory):
    os.mkfifo(directory / "pipe.csv")
    with subprocess.Popen(["cat", "pipe.csv"], stdout=subprocess.PIPE, text=True) as reader:
        call("export", "toy", "--out", "pipe.csv")
        assert reader.communicate(timeout=60)[0].count("\n") == 9
    assert (directory / "pipe.csv").is_fifo()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "it holds toy. Choose one of these"),
        (["toy", "--out", "."], "a directory: it must be a file"),
        (["toy", "--out", "trials.xlsx"], "must end in .csv or .parquet"),
        (["toy", "--out", "no/where.csv"], "there is no directory no"),
        (["toy", "--store", "sqlite:///absent.db"], "does not exist"),
    ],
)
def test_exports_that_make_no_sense(stored, refused, arguments, said):
    assert said in refused("export", *arguments)


def test_a_report_is_made_from_the_store(stored, call, call_json, refused, directory):
    assert call("report").stdout.startswith("report.html: 0 claims and 1 study of sqlite:///")
    assert "A toy" in (directory / "report.html").read_text()
    facts = call_json("report", "--out", "page.html")
    assert (facts["report"], facts["studies"], facts["claims"]) == ("page.html", ["toy"], [])
    assert "there is no directory" in refused("report", "--out", "no/where.html")
    assert "does not exist" in refused("report", "--store", "sqlite:///absent.db")


def test_a_report_of_one_study_leaves_out_the_others(stored, call_json, refused, directory):
    with Store("sqlite:///genscope.db") as store:
        other = Study(name="other", title="Another study", source="", trial=dict, points=grid(kind=["a"]), seeds=1)
        store.put_manifest(other.name, other.revision, manifest(other))
    assert call_json("report", "--study", "toy")["studies"] == ["toy"]
    assert "Another study" not in (directory / "report.html").read_text()
    assert call_json("report")["studies"] == ["other", "toy"]
    assert "Another study" in (directory / "report.html").read_text()
    assert "it holds other, toy" in refused("report", "--study", "toys")


def test_what_is_drawn_or_exported_says_how_many_trials_failed(call, call_json):
    study = Study(name="mine", title="", source="", trial=dict, points=grid(size=[1, 2]), seeds=1, figures=[FIGURE])
    with Store("sqlite:///genscope.db") as store:
        store.put_manifest(study.name, study.revision, manifest(study))
        one, two = (Trial("mine", 1, point, 0) for point in study.points)
        store.add([Record(one, {"loss": 1.0}), Record(two, {}, error="ValueError: no")])
    for command in (["figure", "mine", "--out", "figure.svg"], ["export", "mine"]):
        assert "1 of 2 trials raised an exception" in call_json(*command)["warnings"][0]
        assert "warning: 1 of 2 trials raised an exception" in call(*command).stderr


def test_a_note_stands_under_a_drawing_and_inside_the_file(tmp_path):
    drawing = svg.styled(svg.canvas)(300)
    axes = drawing.subplots()
    axes.set_xlabel("size")
    svg.save(drawing, tmp_path / "bare.png", "png")
    figure_file._note(drawing, ["different code computed these trials " * 9])
    svg.save(drawing, tmp_path / "noted.png", "png", cut="tight")
    [note] = drawing.texts
    assert note.get_window_extent().y1 < axes.xaxis.label.get_window_extent().y0
    bare, noted = (matplotlib.image.imread(tmp_path / f"{name}.png").shape for name in ("bare", "noted"))
    assert noted[0] > bare[0]
    assert noted[1] <= 1.1 * bare[1]


@pytest.mark.parametrize(("kind", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_figure_is_a_file_of_its_kind(stored, call_json, directory, kind, begins):
    facts = call_json("figure", "toy", "--out", f"figure.{kind}")
    assert (facts["study"], facts["number"]) == ("toy", 1)
    assert facts["heading"]
    assert facts["selection"].startswith("budget ")
    assert facts["trials"] > 0
    assert (directory / f"figure.{kind}").read_bytes().startswith(begins)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing", "--out", "figure.svg"], "the store holds toy. Choose one of these"),
        (["toy", "--out", "figure.svg", "--where", "kind=z"], "got --where kind=z: the store holds toy with "),
        (["toy", "--out", "figure.gif"], "must end in .svg, .png, .pdf"),
        (["toy", "--number", "9", "--out", "figure.svg"], "got --number 9: the figures of toy are 1 ("),
        (["toy", "--out", "no/where.svg"], "there is no directory no"),
        (["--out", "figure.svg"], "none of which the opening picture shows"),
        (["toy", "--out", "figure.svg", "--store", "sqlite:///absent.db"], "does not exist"),
    ],
)
def test_figures_that_make_no_sense(stored, refused, arguments, said):
    assert said in refused("figure", *arguments)


def test_store_copy_adds_what_is_new(stored, call, call_json, refused):
    target = "sqlite:///copy.db"
    facts = call_json("store", "copy", "sqlite:///genscope.db", target)
    assert (facts["trials"], facts["new_trials"]) == (8, 8)
    assert "0 of the 8 trials" in call("store", "copy", "sqlite:///genscope.db", target).stdout
    with Store(target, read_only=True) as copy:
        assert len(copy.done("toy")) == 8
    assert "the same store twice" in refused("store", "copy", target, "sqlite:///./copy.db")
    assert "does not exist" in refused("store", "copy", "sqlite:///absent.db", target)
