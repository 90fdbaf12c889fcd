import pytest
import sqlalchemy as sa

from genscope.lab import Store, run
from genscope.lab.storage.schema import LEASE
from tests.lab import toys


def held(store):
    with store.reading() as connection:
        return connection.execute(sa.select(LEASE)).all()


@pytest.mark.timeout(60)
def test_leases_that_could_not_be_given_back_hold_nobody_up(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError("the disk is full")

    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        with monkeypatch.context() as broken:
            broken.setattr(Store, "add", full)
            release = Store.release
            broken.setattr(Store, "release", lambda self: full() if held(self) else release(self))
            with pytest.raises(OSError, match="disk is full"):
                run(toys.fixed, store=store)
        assert held(store)
        run(toys.fixed, store=store)
        assert not held(store)
