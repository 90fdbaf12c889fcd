import hashlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import traceback
from pathlib import Path

import pytest
import sqlalchemy.event

from genscope.lab import Store
from genscope.lab.storage import database
from tests.lab.store_contract import StoreContract, records, trials

ROOT = Path(__file__).parents[2]


class TestSqlite(StoreContract):
    @pytest.fixture
    def url(self, tmp_path):
        return f"sqlite:///{tmp_path}/store.db"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make(path):
    with Store(f"sqlite:///{path}") as store:
        store.add(records(trials(3)))
    return f"sqlite:///{path}"


def python(code, *arguments):
    """Run code in a process of its own; what it printed."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_store_is_made_in_the_current_directory_and_stays_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store() as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.close()
        store.add(records(trials(1)))
        assert store.url == f"sqlite:///{tmp_path}/genscope.db"
    assert (tmp_path / "genscope.db").exists()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("results.db", r"write sqlite:///results\.db"),
        ("", r"write sqlite:///genscope\.db"),
        ("sqlite://", "Name one"),
        ("sqlite:///:memory:", "Name one"),
        ("sqlite://host/file.db", "Write sqlite:///relative.db"),
        ("sqlite:///file.db?mode=ro", "Leave it out"),
        ("mysql://user@host/name", "Use sqlite:///"),
        ("nonsense://user@host/name", "Use sqlite:///|cannot be read"),
        ("postgresql://user:secret@host:port/name", "Check the port"),
        ("postgresql+pg8000://user:secret@host/name", "Write postgresql\\+psycopg://"),
    ],
)
def test_bad_urls(url, advice):
    with pytest.raises(ValueError, match=advice) as caught:
        Store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("postgresql://me:sesame@{}/name", "me:***@{}/name"),
        ("postgresql+psycopg://me:p%40%3Asesame%2F@{}/name", "me:***@{}/name"),
        ("postgresql://:sesame@{}/name", ":***@{}/name"),
        ("postgresql://{}/name?password=sesame&user=me", "{}/name?password=HIDDEN&user=me"),
        ("postgresql://{}/name?%70ass%77ord=%73esame", "{}/name?password=HIDDEN"),
        ("postgresql://me:sesame@{}/name?password=sesame", "me:***@{}/name?password=HIDDEN"),
        ("postgresql://{}/name?sslpassword=sesame&sslmode=prefer", "{}/name?sslmode=prefer&sslpassword=HIDDEN"),
        ("postgresql://{}/name?passfile=/sesame", "{}/name?passfile=HIDDEN"),
        ("postgresql://{}/name?options=-c%20a.b%3Dsesame", "{}/name?options=HIDDEN"),
        ("postgresql:///?service=lab&sslkey=sesame&password=sesame", "/?password=HIDDEN&service=lab&sslkey=HIDDEN"),
    ],
)
def test_a_url_is_written_without_its_secrets(url, written):
    """By hand, in the message of a server that is not there, and in no form by SQLAlchemy."""
    url, written = url.format("127.0.0.1:1"), f"postgresql+psycopg://{written.format('127.0.0.1:1')}"
    parts = database.parse(url)
    assert parts.drivername == "postgresql+psycopg"
    assert "sesame" in parts.render_as_string(hide_password=False)
    assert database.shown(parts) == written
    with pytest.raises((ValueError, ConnectionError)) as caught:
        Store(url)
    assert written in str(caught.value)
    assert "sesame" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        "host=127.0.0.1 password=sesame",
        "postgresql:127.0.0.1?password=sesame",
        "me:sesame@postgresql://host/name",
        "postgresql://me:sesame@host:port/name",
        "postgresql://me:p@sesame@host/name",
        "sqlite://me:sesame@host",
        "sqlite://me:sesame@host/file.db",
        "sqlite:///file.db?password=sesame",
        "mysql://me:sesame@host/name",
        "postgresql://127.0.0.1:1/name?password=sesame&password=sesame2",
        "postgresql://127.0.0.1:1/name?PASSWORD=sesame",
        "postgresql://127.0.0.1:1/name?passwort=sesame",
    ],
)
def test_an_address_that_is_refused_is_not_repeated_with_its_secrets(url):
    with pytest.raises(ValueError, match="Store got") as caught:
        Store(url)
    assert "sesame" not in "".join(traceback.format_exception(caught.value))


def test_an_option_whose_value_postgresql_cannot_use_is_refused():
    with pytest.raises(ValueError, match=r"bad value for connect_timeout: 'soon'.*Correct it, or leave it out"):
        Store("postgresql://127.0.0.1:1/name?connect_timeout=soon")


def test_paths_that_cannot_be_stores(tmp_path):
    with pytest.raises(ValueError, match="Add a file name"):
        Store(f"sqlite:///{tmp_path}")
    with pytest.raises(FileNotFoundError, match="Create the directory first"):
        Store(f"sqlite:///{tmp_path}/none/store.db")
    with pytest.raises(FileNotFoundError, match="Run a study with this store first"):
        Store(f"sqlite:///{tmp_path}/none.db", read_only=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("read_only", [False, True])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, read_only):
    os.mkfifo(tmp_path / "pipe.db")
    with pytest.raises(ValueError, match="a pipe or a device: a SQLite store is a file"):
        Store(f"sqlite:///{tmp_path}/pipe.db", read_only=read_only)


@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_database_is_left_as_it_is(tmp_path, read_only):
    file = tmp_path / "notes.txt"
    file.write_text("Dear diary, this is long enough to look like something.\n" * 100)
    before = digest(file)
    with pytest.raises(ValueError, match="it was left untouched"):
        Store(f"sqlite:///{file}", read_only=read_only)
    assert digest(file) == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("table", ["album (title)", "meta (name, value)", "meta (version)"])
def test_a_foreign_database_is_left_as_it_is(tmp_path, table, read_only):
    file = tmp_path / "music.db"
    with sqlite3.connect(file) as connection:
        connection.execute(f"CREATE TABLE {table}")
    connection.close()
    before = digest(file)
    with pytest.raises(ValueError, match=r"tables of another program .* Give another file"):
        Store(f"sqlite:///{file}", read_only=read_only)
    assert digest(file) == before


def test_a_damaged_database_is_left_as_it_is(tmp_path):
    file = tmp_path / "store.db"
    make(file)
    content = bytearray(file.read_bytes())
    content[100:] = b"\xa5" * (len(content) - 100)
    file.write_bytes(content)
    with pytest.raises(ValueError, match="Or restore a copy of it"):
        Store(f"sqlite:///{file}")
    assert file.read_bytes() == content


def test_an_empty_file_becomes_a_store(tmp_path):
    file = tmp_path / "new.db"
    file.touch()
    with pytest.raises(ValueError, match="is empty"):
        Store(f"sqlite:///{file}", read_only=True)
    make(file)
    with Store(f"sqlite:///{file}") as store:
        assert store.frame("s").height == 3


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_is_removed_while_it_is_in_use_is_noticed(tmp_path, replaced):
    file = tmp_path / "store.db"
    url = make(file)
    with Store(url) as store:
        file.unlink()
        if replaced:
            make(file)
        for use in (lambda: store.put_verdict("A1", "quick", {}), lambda: store.frame("s")):
            with pytest.raises(FileNotFoundError, match=r"was removed or replaced while.*run the same command again"):
                use()
    assert file.exists() == replaced
    if replaced:
        with Store(url) as store:  # that of the other store
            assert store.verdicts() == []


def test_write_ahead_logging_is_on(tmp_path):
    make(tmp_path / "store.db")
    connection = sqlite3.connect(tmp_path / "store.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_full_disk_damages_nothing(tmp_path):
    file = tmp_path / "store.db"
    url = make(file)
    with Store(url) as store:
        connection = sqlite3.connect(file)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.close()

        def limit(connection, _):
            connection.execute(f"PRAGMA max_page_count = {pages + 2}")

        sqlalchemy.event.listen(store._engine, "connect", limit)
        store.close()
        with pytest.raises(OSError, match=r"disk is full.*Free some space and run the same command again"):
            store.add(records(trials(2000, kind="many")))
        assert store.frame("s").height == 3
        sqlalchemy.event.remove(store._engine, "connect", limit)
        store.close()
        store.add(records(trials(2000, kind="many")))
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("SELECT count(*) FROM trial").fetchone() == (2003,)
    connection.close()


def test_a_writer_waits_for_another_and_then_says_so(tmp_path, monkeypatch):
    url = make(tmp_path / "store.db")
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    with Store(url) as store:
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TimeoutError, match="Let that process finish"):
            store.add(records(trials(5)))
        assert store.frame("s").height == 3  # readers do not wait
        other.execute("COMMIT")
        other.close()
        store.add(records(trials(5)))
        assert store.frame("s").height == 5


TRY = """
    import os, sys
    from genscope.lab import Store
    _, good, url, mode = sys.argv
    Store(good, read_only=True).frame("s")  # whatever is imported late is imported now
    if os.geteuid() == 0:  # the superuser may write everywhere
        os.setgid(65534)
        os.setuid(65534)
    try:
        with Store(url, read_only=mode == "read") as store:
            print("rows", store.frame("s").height)
    except OSError as error:
        print(type(error).__name__, error)
"""


@pytest.fixture
def world():
    """A directory that every user can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_places_that_may_not_be_written(world, tmp_path):
    good = make(tmp_path / "good.db")
    file = world / "store.db"
    url = make(file)
    file.chmod(0o444)
    world.chmod(0o555)
    before = digest(file)
    assert "PermissionError" in python(TRY, good, f"sqlite:///{world}/new.db", "write")
    said = python(TRY, good, url, "write")
    assert "PermissionError" in said
    assert "open the store read-only" in said
    assert python(TRY, good, url, "read") == "rows 3\n"
    assert digest(file) == before
    assert list(world.iterdir()) == [file]
    file.chmod(0o000)
    assert "Change its permissions" in python(TRY, good, url, "read")
    world.chmod(0o755)


def test_many_processes_make_one_store(tmp_path):
    code = """
        import sys
        from genscope.lab import Record, Store, Trial
        with Store(sys.argv[1]) as store:
            store.add([Record(Trial("s", 1, {"size": 1}, seed), {"by": sys.argv[2]}) for seed in range(20)])
    """
    url = f"sqlite:///{tmp_path}/store.db"
    command = [sys.executable, "-c", textwrap.dedent(code), url]
    started = [subprocess.Popen([*command, str(i)], stderr=subprocess.PIPE, text=True, cwd=ROOT) for i in range(4)]
    assert [process.communicate()[1] for process in started] == [""] * 4
    with Store(url) as store:
        frame = store.frame("s")
    assert frame.height == 20
    assert frame["by"].n_unique() == 1


def test_the_store_does_without_jax():
    code = """
        import sys
        import genscope.lab
        print("jax" in sys.modules)
        genscope.lab.run
        print("jax" in sys.modules)
    """
    assert python(code) == "False\nTrue\n"
