"""The store's contract against a real PostgreSQL server, and what only a server can do."""

import pytest

from genscope.lab import Store
from tests.lab.store_contract import StoreContract, records, trials
from tests.postgres import PASSWORD


class TestPostgresql(StoreContract):
    @pytest.fixture
    def url(self, postgresql_url):
        return postgresql_url


def test_a_foreign_database_is_left_as_it_is(postgresql, postgresql_url):
    name = postgresql_url.rpartition("/")[2]
    postgresql.sql("CREATE TABLE album (title text)", database=name)
    with pytest.raises(ValueError, match="tables of another program") as caught:
        Store(postgresql_url)
    assert PASSWORD not in str(caught.value)
    tables = postgresql.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", database=name)
    assert tables == [("album",)]


def test_the_server_refuses_writes_of_a_reader(postgresql_url):
    with Store(postgresql_url) as store:
        store.add(records(trials(2)))
    with Store(postgresql_url, read_only=True) as reader:
        reader.read_only = False  # the store's own check aside
        with pytest.raises(PermissionError, match="read-only"):
            reader.add(records(trials(3)))
