import sys

import pytest

from genscope.cli import _output
from genscope.cli._errors import complain
from genscope.cli._output import echo, print_table

ROWS = [["6", "4", "0.0291", "a long text that goes on"], ["10", "12", "2.78·10⁻¹⁷", "short"]]
COLUMNS = ["context_length", "dim", "median identity_error", "what was seen"]


@pytest.fixture
def narrow(monkeypatch):
    """A terminal of so many columns."""
    return lambda columns: monkeypatch.setattr(_output, "_WIDE", columns)


@pytest.mark.parametrize("columns", [40, 140])
def test_names_and_numbers_stay_whole_and_texts_give_way(columns, narrow, capsys):
    narrow(columns)
    print_table("Title", COLUMNS, ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    words = " ".join(lines).split()
    assert {"0.0291", "2.78·10⁻¹⁷"} <= {*words}
    assert ({"context_length", "identity_error"} if columns == 140 else {"context_", "length"}) <= {*words}
    assert any("a long text that goes on" in line for line in lines) == (columns == 140)


def test_a_table_that_cannot_fit_cuts_nothing_off(narrow, capsys):
    narrow(12)
    print_table("Title", ["name", "value"], [["abcdefghij", "1234567890"]])
    told = "".join(capsys.readouterr().out.split())
    assert {*"abcdefghij1234567890"} <= {*told}


def test_a_table_that_is_too_wide_goes_on_below_with_its_names(narrow, capsys):
    narrow(30)
    print_table("Title", ["a", "b", "first", "second", "third"], [["1", "2", "12345678", "87654321", "13"]], names=2)
    headings = [line.split() for line in capsys.readouterr().out.splitlines() if "a" in line.split()]
    assert headings == [["a", "b", "first", "second"], ["a", "b", "third"]]


def test_a_long_name_beside_short_texts_divides_no_word(narrow, capsys):
    narrow(80)
    columns = ["network", "T", "samples", "95 % interval", "plateau", "trials", "computing"]
    row = ["mine_and_yours.py:build", "6", "> 2,000", "open", "0.68 [0.02, 1.00]", "32", "28 s"]
    print_table("Title", columns, [row], names=2)
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert {"computing", "> 2,000", *" ".join(row[4:]).split()} <= {*told.split(), "> 2,000"}


def test_an_empty_table_has_its_heading(capsys):
    print_table("Title", ["name", "a value"], [])
    assert "a value" in capsys.readouterr().out


@pytest.mark.parametrize(("said", "width"), [("80", 80), (None, _output._WIDE)])
def test_without_a_terminal_columns_says_how_wide_tables_are(said, width, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    if said is not None:
        monkeypatch.setenv("COLUMNS", said)
    assert _output.console().width == width


@pytest.mark.parametrize("terminal", [False, True])
def test_complaints_fold_on_a_terminal_and_keep_what_is_pointed_at(terminal, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    message = f"{'words ' * 12}end.\n  x3 & x40\n       ^^^"
    complain(message)
    told = capsys.readouterr().err
    assert told.split() == f"genscope: {message}".split()
    assert told.endswith("\n  x3 & x40\n       ^^^\n")
    assert (max(map(len, told.splitlines())) <= 40) == terminal


def test_sentences_fold_where_somebody_reads_them(monkeypatch, capsys):
    text = "The missing 96 would take about 55 s, all 8400 about 1 h 20 min, compilation aside; 0 are stored by now."
    echo(text)
    assert capsys.readouterr().out == text + "\n"  # a pipe gets lines as they are
    monkeypatch.setenv("COLUMNS", "80")
    echo(text)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= 80
    assert " ".join(lines) == text


def test_in_a_notebook_nothing_moves(monkeypatch):
    """Kernels force colours on the programs that they start, and show every frame of a progress bar."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    assert _output.console().is_terminal
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    assert not _output.console().is_terminal
