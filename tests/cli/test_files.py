import polars as pl
import pytest

from genscope.lab import Store
from tests.cli.program import TOYS


@pytest.fixture
def stored(call):
    call("run", f"{TOYS}:study")


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "it holds toy. Choose one of these"),
        (["toy", "--out", "."], "a directory: it goes to a file"),
        (["toy", "--out", "no/where.csv"], "there is no directory no"),
        (["toy", "--store", "sqlite:///absent.db"], "does not exist"),
    ],
)
def test_exports_that_make_no_sense(stored, refused, arguments, said):
    assert said in refused("export", *arguments)


def test_a_report_is_made_from_the_store(stored, call, call_json, refused, directory):
    assert call("report").stdout.startswith("report.html: 0 claims and 1 studies of sqlite:///")
    assert "A toy" in (directory / "report.html").read_text()
    facts = call_json("report", "--out", "page.html")
    assert (facts["report"], facts["studies"], facts["claims"]) == ("page.html", ["toy"], [])
    assert "there is no directory" in refused("report", "--out", "no/where.html")
    assert "does not exist" in refused("report", "--store", "sqlite:///absent.db")


def test_store_copy_adds_what_is_new(stored, call, call_json, refused):
    target = "sqlite:///copy.db"
    facts = call_json("store", "copy", "sqlite:///genscope.db", target)
    assert (facts["trials"], facts["new_trials"]) == (8, 8)
    assert "0 of the 8 trials" in call("store", "copy", "sqlite:///genscope.db", target).stdout
    with Store(target, read_only=True) as copy:
        assert len(copy.done("toy")) == 8
    assert "the same store twice" in refused("store", "copy", target, "sqlite:///./copy.db")
    assert "does not exist" in refused("store", "copy", "sqlite:///absent.db", target)
