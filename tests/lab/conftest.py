"""Stores of the tests of runs."""

import pytest

from genscope.lab import Store


@pytest.fixture
def make(tmp_path):
    """New stores, each with a name."""
    opened = []

    def make(name="store", **options):
        opened.append(Store(f"sqlite:///{tmp_path}/{name}.db", **options))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make):
    return make()
