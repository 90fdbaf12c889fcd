"""Every command that opens a store, given one that cannot be opened: what to do is said, and no secret."""

import pytest

from genscope.lab import Store
from tests.cli.program import TOYS
from tests.postgres import PASSWORD

COMMANDS = {
    "list": ["list", "--store"],
    "run": ["run", f"{TOYS}:study", "--store"],
    "dry run": ["run", f"{TOYS}:study", "--dry-run", "--store"],
    "reproduce": ["reproduce", "--store"],
    "report": ["report", "--store"],
    "figure": ["figure", "toy", "--out", "figure.svg", "--store"],
    "export": ["export", "toy", "--store"],
    "copy from": ["store", "copy"],
    "copy to": ["store", "copy", "sqlite:///genscope.db"],
}
SECRET = "open-sesame-5119"


def urls(port):
    return {
        "wrong password": f"postgresql+psycopg://guarded:{SECRET}@127.0.0.1:{port}/postgres",
        "no server": f"postgresql://genscope:{SECRET}@127.0.0.1:1/postgres",
        "no database": f"postgresql://genscope:{SECRET}@127.0.0.1:{port}/nonesuch",
        "unknown option": f"postgresql://genscope@127.0.0.1:{port}/postgres?passwort={SECRET}",
        "option": f"postgresql://guarded@127.0.0.1:{port}/postgres?password={SECRET}",
        "an @ in the password": f"postgresql://genscope:p@{SECRET}@127.0.0.1:{port}/postgres",
        "no slashes": f"postgresql:genscope:{SECRET}@127.0.0.1/postgres",
        "bad port": f"postgresql://genscope:{SECRET}@127.0.0.1:port/postgres",
        "unknown driver": f"postgresql+pg8000://genscope:{SECRET}@127.0.0.1/postgres",
        "unknown database": f"mysql://genscope:{SECRET}@127.0.0.1/postgres",
        "a SQLite host": f"sqlite://genscope:{SECRET}@host/file.db",
    }


ADVICE = {
    "wrong password": "password authentication failed",
    "no server": "Check host, port",
    "no database": 'database "nonesuch" does not exist',
    "unknown option": "Correct its name",
    "option": "password authentication failed",
    "an @ in the password": "as %XX",
    "no slashes": "named by a URL such as",
    "bad port": "Check the port",
    "unknown driver": "with psycopg 3",
    "unknown database": "SQLite or PostgreSQL",
    "a SQLite host": "three slashes",
}


EVERYWHERE = ("wrong password", "no server", "no database")  # the other addresses are read by the same code first


@pytest.mark.parametrize("name", COMMANDS)
def test_a_store_that_cannot_be_opened_is_told_without_its_secrets(name, postgresql, refused):
    Store("sqlite:///genscope.db").close()  # something to copy
    for case, url in urls(postgresql.port).items():
        if name != "list" and case not in EVERYWHERE:
            continue
        rest = ["sqlite:///other.db"] if name == "copy from" else []
        said = refused(*COMMANDS[name], url, *rest)
        assert ADVICE[case] in said, case
        assert SECRET not in said, case


def test_what_succeeds_shows_no_secret_either(postgresql, postgresql_url, call, call_json, directory, monkeypatch):
    monkeypatch.setenv("GENSCOPE_STORE", postgresql_url)
    told = [
        call("run", f"{TOYS}:study").output,
        call("list").output,
        call("report").output,
        call("export", "toy", "--format", "csv").output,
        str([call_json("list"), call_json("report"), call_json("run", f"{TOYS}:study")]),
        call("store", "copy", postgresql_url, "sqlite:///copy.db").output,
        str(call_json("store", "copy", "sqlite:///copy.db", postgresql_url)),
        call("list", "--help").output,
    ]
    told += [path.read_text(errors="replace") for path in directory.iterdir()]
    assert not [text for text in told if PASSWORD in text]
    assert "genscope:***@127.0.0.1" in told[1]
