"""A search runs the trials that its rounds ask for."""

import pytest

from genscope.lab import run, select
from genscope.lab.execution.compute import trial_key
from tests.lab import toys


def search_by_hand(study, point):
    """The toy search in a plain loop, sharing no code with the runner; sizes and seeds of its trials."""
    counts, used, asked = {}, {}, []
    while (sizes := toys.next_round(study.search, counts)) is not None:
        for size, number in sizes.items():
            for seed in range(used.get(size, 0), used.get(size, 0) + number):
                whole = {**point, "sample_size": size}
                [trial] = study.trials(whole, [seed])
                solved = toys.slow_success(trial_key(study, trial), **whole)["solved"]
                good, trials = counts.get(size, (0, 0))
                counts[size] = good + solved, trials + 1
                asked.append((point["context_length"], size, seed, solved))
            used[size] = used.get(size, 0) + number
    return asked


def test_a_search_runs_the_trials_that_its_rounds_ask_for(make):
    store, again = make("once"), make("parts")
    summary = toys.run_on_threads(2, toys.search, store=store)
    expected = [row for point in toys.search.points for row in search_by_hand(toys.search, point)]
    found = store.frame("toy-search").select("context_length", "sample_size", "seed", "solved").rows()
    assert sorted(found) == sorted(expected)
    assert summary.trials == summary.computed == len(expected)
    assert run(toys.search, store=store).computed == 0
    run(toys.search, select(toys.search, where={"context_length": [8]}), store=again)
    run(toys.search, store=again)
    assert toys.rows(again, toys.search).equals(toys.rows(store, toys.search))


def test_a_fixed_grid_instead_of_a_search(store):
    run(toys.search, select(toys.search, where={"sample_size": [5, 50], "context_length": [4]}, seeds=3), store=store)
    frame = store.frame("toy-search")
    assert frame.select("context_length", "sample_size", "seed").rows() == [
        (4, size, seed) for size in (5, 50) for seed in range(3)
    ]


def test_a_search_that_keeps_failing_says_so(store):
    def trial(key, context_length, sample_size):
        if context_length == 8:
            raise ArithmeticError("no")
        return {"solved": True}

    summary = run(toys.search.replace(trial=trial), store=store)
    assert summary.stopped == ("12 of 12 trials of a round failed at context_length=8: the search stopped there",)
    assert summary.failed == 12
    assert store.frame("toy-search").filter(context_length=3).height >= 40


def test_a_search_without_its_outcome(store):
    study = toys.search.replace(trial=lambda key, **_: {"won": True})
    with pytest.raises(ValueError, match=r"'solved'.*among won.*needs a Boolean"):
        run(study, store=store)
