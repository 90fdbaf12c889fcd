"""Trials that were not computed alike say so, whoever reads them."""

import sqlite3

import pytest

from genscope.lab import Record, Store, Study, check_store, grid, read, select
from genscope.lab.execution.provenance import instructions, provenance
from genscope.lab.execution.threads import Threads
from genscope.lab.storage.store import MACHINE_FAILED

STUDY = Study(name="s", title="", source="", trial=print, points=grid(size=[1]), seeds=4)


def facts(*, code="a", xla=1, blas=1, vectors="avx2; BLAS for Haswell", jax="0.10.2", **others):
    sources = {"digest": code, "parts": {"study.py": code, "helper.py": "same"}}
    libraries = {"jax": jax, "optax": "0.2", "genscope": others.pop("genscope", "1")} | others.pop("libraries", {})
    threads = {"xla": xla, "blas": blas}
    return {"sources": sources, "threads": threads, "instructions": vectors, "libraries": libraries, **others}


def remarks(store, *origins, error=None):
    """What is said of trials of these origins."""
    trials = STUDY.trials({"size": 1}, range(len(origins)))
    store.add(
        [Record(t, {} if error else {"x": 1.0}, error, provenance=o) for t, o in zip(trials, origins, strict=True)]
    )
    store.put_manifest("s", 1, {"axes": ["size"]})
    return read(store, select(STUDY)).remarks


@pytest.fixture
def store(tmp_path):
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        yield store


def test_equal_origins_need_no_remark(store):
    assert remarks(store, facts(), facts(), facts()) == ()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (facts(code="b"), "different code computed these trials (2 by a; 1 by b); study.py changed"),
        (facts(xla=8), "different numbers of threads (2 by 1; 1 by 8): last digits differ"),
        (facts(vectors="avx2 avx512f"), "1 by avx2 avx512f): last digits differ"),
        (facts(jax="0.12.0"), "(2 by jax 0.10.2; 1 by jax 0.12.0)"),
        (facts(libraries={"optax": "0.3"}), "(2 by optax 0.2; 1 by optax 0.3)"),
        (facts(blas=2), "different numbers of threads of BLAS (2 by 1; 1 by 2)"),
    ],
)
def test_a_mixture_is_named_with_its_shares(store, other, words):
    [remark] = remarks(store, facts(), facts(), other)
    assert words in remark


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (
            {"device": "cpu: cpu"},
            {"device": "gpu: A100"},
            "devices computed these trials (1 by cpu: cpu; 1 by gpu: A100)",
        ),
        ({"python": "3.11.7"}, {"python": "3.13.0"}, "(1 by python 3.11.7; 1 by python 3.13.0)"),
        ({"libraries": {"torch": "2.0"}}, {"libraries": {"torch": "2.9"}}, "(1 by torch 2.0; 1 by torch 2.9)"),
    ],
)
def test_a_mixture_of_what_is_not_always_known_is_named(store, first, second, words):
    [remark] = remarks(store, facts(**first), facts(**second), facts(genscope="2"))
    assert words in remark


def test_trials_of_unknown_code_are_not_taken_for_the_same(store):
    [remark] = remarks(store, {}, facts())
    assert "different code computed these trials (1 by unknown; 1 by a)" in remark


def test_trials_whose_provenance_is_lost_say_so(store, tmp_path):
    assert remarks(store, facts(), facts()) == ()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("DELETE FROM provenance")
    connection.close()
    lost = ("the provenance of 2 of these trials is lost: what computed them is not known",)
    assert read(store, select(STUDY)).remarks == lost
    with Store(f"sqlite:///{tmp_path}/copy.db") as copy:
        assert store.copy_to(copy).lost == 2
        assert read(copy, select(STUDY)).remarks == lost
    assert not check_store(store.url).sound
    assert check_store(f"sqlite:///{tmp_path}/copy.db").sound


def test_failed_trials_are_counted_and_of_no_mixture(store):
    [remark] = remarks(store, facts(), facts(code="b"), error="ValueError: no\n")
    assert remark.startswith(
        "2 of 2 trials raised an exception, and nothing here counts them; the first says: ValueErr"
    )


def test_failures_of_the_machine_are_counted_apart(store):
    [remark] = remarks(store, facts(), error=f"{MACHINE_FAILED}, in each of 4 attempts\nMemoryError: no\n")
    assert remark.startswith("1 of 1 trials raised an exception, 1 of them because the machine failed, and nothing")


def test_provenance_names_instructions_and_threads():
    with Threads():
        found = provenance()
    assert found["instructions"] == instructions()
    assert found["threads"]["xla"] is None or found["threads"]["xla"] >= 1
    assert "unknown" not in instructions()
