"""Commands in this process or as one of their own, each test in a directory of its own."""

import functools
import json
import sys

import pytest

from tests.cli.program import invoke


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GENSCOPE_STORE", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)  # xdist sets it
    return tmp_path


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
