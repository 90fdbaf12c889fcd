"""Trials filtered, sorted and paged by the database, against the same done by hand, on both databases."""

import math
import operator
import time

import pytest

from genscope.lab import Record, Store, Trial
from genscope.lab.results import browsing

COMPARE = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
LOSSES = [0.5, math.nan, -1.0, math.inf, 0.25, 0.5, 2.0, 1e-9]


def rows():
    for number in range(40):
        point = {"size": 10 * (number % 4), "kind": ["plain", "it's", 'a "b"', "100%_"][number % 4]}
        values = {
            "loss": LOSSES[number % 8],
            "won": number % 3 == 0,
            "curve": [1.0, math.nan],
            "word": f"w{number % 5}",
        }
        failed = number % 13 == 5
        yield Record(
            Trial("s", 2, point, number),
            {} if failed else values,
            error="MemoryError: out of memory" if failed else None,
            seconds=number / 7,
            finished=1000.0 + number,
        )


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request, tmp_path_factory):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('store') / 'store.db'}"
    server = request.getfixturevalue("postgresql")
    server.sql("CREATE DATABASE browsing")
    return server.url("browsing")


@pytest.fixture(scope="module")
def store(url):
    with Store(url) as store:
        store.add(rows())
        store.add([Record(Trial("s", 1, {"size": 10, "kind": "old"}, 0), {"loss": 0.5})])
        store.add([Record(Trial("other", 2, {"size": 10}, 0), {"loss": 0.5})])
    with Store(url, read_only=True) as reader:
        yield reader


@pytest.fixture(scope="module")
def every(store):
    return browsing.trials(store, "s", ["size", "kind"], 2)


def by_hand(condition):
    """Seeds of the trials that meet a condition: what is missing or not finite meets none but !=."""
    name, word, wanted = condition
    for record in rows():
        flat = {**record.trial.point, **record.values, "seed": record.trial.seed, "status": record.status}
        value = flat.get(name)
        known = value is not None and not (isinstance(value, float) and not math.isfinite(value))
        if (not known or value != wanted) if word == "!=" else known and COMPARE[word](value, wanted):
            yield record.trial.seed


def seeds(found, store):
    return {row["seed"] for row in found.page(store, order="seed", descending=False, first=0, size=100)}


def test_columns_have_their_kinds(every):
    kinds = {name: column.kind for name, column in every.columns.items()}
    assert kinds["size"] == kinds["loss"] == kinds["finished"] == "number"
    assert kinds["kind"] == kinds["word"] == kinds["status"] == "text"
    assert (kinds["won"], kinds["curve"]) == ("flag", "array")


def test_conditions_mean_what_they_say(store, every):
    numbers = [("size", word, 20) for word in (*COMPARE, "!=")] + [("loss", word, 0.5) for word in (*COMPARE, "!=")]
    for name, word, wanted in numbers:
        assert seeds(every.where(f"{name}{word}{wanted}"), store) == set(by_hand((name, word, wanted))), (name, word)
    for text, condition in (("won=yes", ("won", "=", True)), ("won!=yes", ("won", "!=", True))):
        assert seeds(every.where(text), store) == set(by_hand(condition))
    assert seeds(every.where("status=failed"), store) == set(by_hand(("status", "=", "failed")))


@pytest.mark.parametrize(
    ("text", "kind"), [('kind="it\'s"', "it's"), ("kind='a \"b\"'", 'a "b"'), ("kind~%_", "100%_")]
)
def test_texts_are_compared_as_they_are(store, every, text, kind):
    found = every.where(text).page(store, order="seed", descending=False, first=0, size=100)
    assert len(found) == 10
    assert {row["kind"] for row in found} == {kind}


def test_conditions_add_up(store, every):
    both = every.where("size>=20 word=w1").where("won=no")
    wanted = set(by_hand(("size", ">=", 20))) & set(by_hand(("word", "=", "w1"))) & set(by_hand(("won", "=", False)))
    assert seeds(both, store) == wanted
    assert both.count(store) == len(wanted)
    assert set(both.frame(store)["seed"]) == wanted
    assert every.where("  ").frame(store).equals(store.frame("s", 2))


def test_a_search_in_errors(store, every):
    assert every.where("error~'out of memory'").count(store) == every.where("status=failed").count(store) == 3


@pytest.mark.parametrize("descending", [False, True])
def test_what_is_not_finite_comes_last_in_every_order(store, every, descending):
    found = every.page(store, order="loss", descending=descending, first=0, size=100)
    known = [row["loss"] for row in found if row.get("loss") is not None and math.isfinite(row["loss"])]
    assert [row.get("loss") for row in found[: len(known)]] == sorted(known, reverse=descending)
    assert len(found) == 40


def test_pages_cover_everything_once(store, every):
    pages = [every.page(store, order="size", descending=True, first=first, size=7) for first in range(0, 49, 7)]
    assert [len(page) for page in pages] == [7, 7, 7, 7, 7, 5, 0]
    assert sorted(row["seed"] for page in pages for row in page) == list(range(40))


def test_one_trial_comes_back_as_it_was(store, every):
    first = every.page(store, order="seed", descending=False, first=1, size=1)[0]
    row = browsing.trial(store, first["id"])
    assert row is not None
    assert math.isnan(row["loss"])
    assert math.isnan(row["curve"][1])
    assert (row["study"], row["revision"], row["size"]) == ("s", 2, 10)
    assert browsing.trial(store, "nobody") is None


def test_when_the_newest_trial_was_finished(store):
    assert store.last_finished("s", 2) == 1039.0
    assert store.last_finished("nobody", 1) is None


def test_who_holds_batches(store, url):
    assert browsing.holders(store) == []
    with Store(url, lease_seconds=0.5) as writer:
        writer.lease([[Trial("s", 2, {"size": 1, "kind": "x"}, seed) for seed in range(2)]])
        ((_, process, number),) = browsing.holders(store)
        assert (process, number) == (writer._holder.pid, 1)
        time.sleep(0.6)
        assert browsing.holders(store) == []  # an expired lease is nobody's


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("sizes=3", "Did you mean size"),
        ("curve=3", "an array of this study"),
        ("size", "Write it like context_length=300"),
        ("size = 3", "without spaces"),
        ("size=many", "Write, for example, size>=1"),
        ("size~3", "Write, for example, size>=1"),
        ("won=maybe", "Write won=yes"),
        ("won>yes", "Write won=yes"),
        ("kind<x", "compare it with = or !=, or search it with ~"),
        ("kind='x", "Close it"),
        ("'; DROP TABLE trial; --'=1", "a condition is a column"),
    ],
)
def test_filters_that_make_no_sense_say_what_to_write(every, text, advice):
    with pytest.raises(ValueError, match=advice):
        every.where(text)


def test_a_study_without_trials(store):
    none = browsing.trials(store, "nobody", ["size"], 1)
    assert none.count(store) == 0
    assert none.where("size=3").page(store, order="size", descending=True, first=0, size=5) == []
