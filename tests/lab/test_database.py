"""Addresses of stores that are refused before anything is opened, and files that are made for their owner alone."""

import os

import pytest

from genscope.lab import Store
from genscope.lab.storage import database
from genscope.refusal import Refusal

SECRET = "open-sesame-5119"


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        (f"postgresql:a:{SECRET}", "named by a URL such as"),
        (f"{SECRET}:postgresql", "named by a URL such as"),
        ("postgresql+foo://host/name", r"with psycopg 3. Write postgresql\+psycopg://"),
        ("postgresql+psycopg_async://host/name", "with psycopg 3"),
        ("sqlite+foo:///name.db", "Write sqlite:///genscope.db"),
        ("sqlite+aiosqlite:///name.db", "Write sqlite:///genscope.db"),
        (f"postgresql://host/name?plugin={SECRET}", "'plugin', which is not one of libpq's.*Correct its name"),
        (f"postgresql://host/name?row_factory={SECRET}", "'row_factory', which is not one of libpq's"),
        (f"postgresql://host/name?passwort={SECRET}", "'passwort', which is not one of libpq's"),
        (f"postgresql://host/name?={SECRET}", "'', which is not one of libpq's"),
        (f"postgresql://host/name?password={SECRET}&password=x", "'password', twice.*each given once"),
        ("postgresql://host/name?host=a&host=b", "'host', twice"),
        ("postgresql://host/name?port=five", "each must be a number. Correct them"),
        ("postgresql://host:0/name", "Check the port"),
        ("postgresql://host:65536/name", "Check the port"),
        (f"postgresql://me:{SECRET}%00@host/name", "Check the port"),
        ("postgresql://host/name?host=a%00b", "Check the port"),
        ("sqlite:///a\0b", "cannot be parsed"),
        ("sqlite:///results?1.db", "results and a question mark: .*Leave it out, or rename a file"),
        (f"sqlite:///results.db?password={SECRET}", "and a question mark: .*Leave it out"),
        (f"sqlite:///results.db?{SECRET}", "and a question mark: .*Leave it out"),
        ("sqlite:///results.db?", "and a question mark: .*Leave it out"),
        ("sqlite:///file:results.db?mode=memory", "and a question mark: .*Leave it out"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused_and_its_secret_not_repeated(url, advice):
    with pytest.raises(Refusal, match=advice) as caught:
        database.parse(url)
    assert SECRET not in str(caught.value)


def test_a_percent_sign_in_the_name_of_a_file_is_one(tmp_path):
    assert database.parse(f"sqlite:///{tmp_path}/results%3F1.db").database == f"{tmp_path}/results%3F1.db"


def test_options_of_libpq_are_taken():
    url = "postgresql://me@host/name?sslmode=require&connect_timeout=3&host=a,b&port=1,2"
    assert dict(database.parse(url).query) == {
        "sslmode": "require",
        "connect_timeout": "3",
        "host": "a,b",
        "port": "1,2",
    }


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_store_and_its_log_are_their_owners(tmp_path, umask):
    before = os.umask(umask)
    try:
        with Store(f"sqlite:///{tmp_path / 'genscope.db'}") as store:
            store.put_verdict("A1", "quick", {"verdict": "holds"})
            modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["genscope.db", "genscope.db-wal", "genscope.db-shm"], "0o600")


def test_a_store_that_was_shared_stays_so(tmp_path):
    path = tmp_path / "genscope.db"
    Store(f"sqlite:///{path}").close()
    path.chmod(0o660)
    with Store(f"sqlite:///{path}") as store:
        store.put_verdict("A1", "quick", {"verdict": "holds"})
    assert path.stat().st_mode & 0o777 == 0o660
