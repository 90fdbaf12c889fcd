"""Commands in this process or as one of their own, each test in a directory of its own."""

import functools
import json
import sys

import pytest

from genscope.cli import _pool
from tests.cli.program import TOYS, invoke


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GENSCOPE_STORE", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)  # xdist sets it
    return tmp_path


@pytest.fixture(autouse=True)
def few_processes(monkeypatch):
    """A command in this process computes here unless it is told otherwise, however much there is: workers take a
    second to start. Commands as processes of their own choose as they do for users; `test_pool.py` has the choice.
    """
    monkeypatch.setattr(_pool, "_is_little", lambda expected: True)


@pytest.fixture(scope="session")
def toy_store(tmp_path_factory):
    """The file of a store with the trials of the toy study, or of some of them, to be copied: a run takes a second."""

    @functools.cache
    def toy_store(*options):
        file = tmp_path_factory.mktemp("toys") / "genscope.db"
        ended = invoke("run", f"{TOYS}:study", *options, "--store", f"sqlite:///{file}")
        assert ended.exit_code == 0, ended.output
        assert [*file.parent.iterdir()] == [file]  # all is in one file
        return file

    return toy_store


@pytest.fixture
def call():
    """Run a command; `status` is the one expected."""

    def call(*arguments, status=0):
        result = invoke(*arguments)
        assert result.exit_code == status, result.output
        return result

    return call


@pytest.fixture
def program(launch):
    """Start the program as a process, which ends with the test."""
    return functools.partial(launch, sys.executable, "-m", "genscope")


@pytest.fixture
def call_json(call):
    """Run a command with --json and read what it prints, strictly."""

    def call_json(*arguments, status=0):
        def refuse(word):
            raise AssertionError(f"{word} is no JSON")

        return json.loads(call(*arguments, "--json", status=status).stdout, parse_constant=refuse)

    return call_json


@pytest.fixture
def refused(call):
    """Run a command that makes no sense; its message."""

    def refused(*arguments):
        result = call(*arguments, status=2)
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return result.stderr

    return refused
