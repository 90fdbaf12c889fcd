"""A selection is one value: the same by every way to it, stored with a run, and read alike by everyone."""

import json
import random

import pytest

from genscope.lab import Crossing, Line, Plan, Record, Search, Selection, Store, Study, Success, grid, read, run, select
from genscope.lab.plans.design import rounds
from genscope.lab.plans.manifest import manifest
from genscope.lab.results.reading import largest
from genscope.report import render
from genscope.report.study import show
from tests.lab import toys

CROSSING = Crossing("sample_size", "success", 0.8)
SEARCHED = Study(
    name="searched",
    title="Searched",
    source="tests",
    trial=toys.draw,
    points=grid(context_length=[10, 20, 40]),
    search=Search(lowest=8, highest=256, trials=128, width=0.01),
    budgets={"quick": Plan(grid(context_length=[10, 20]), search=Search(lowest=8, highest=256, trials=48))},
    figures=(
        Line("context_length", CROSSING, laws=("log",), title="Line", caption="Thresholds."),
        Success(CROSSING, panel="context_length", title="Shares", caption="Shares."),
    ),
)
REQUESTS = [
    (toys.fixed, {}),
    (toys.fixed, {"budget": "quick"}),
    (toys.fixed, {"where": {"size": [2, 7], "kind": ["b"]}, "seeds": 3}),
    (toys.fixed, {"where": {"kind": ["a"]}, "seed": 4}),
    (SEARCHED, {"budget": "quick"}),
    (SEARCHED, {"where": {"context_length": [10, 15]}}),
    (SEARCHED, {"where": {"sample_size": [20, 40, 80]}, "seeds": 10}),
]


def fill(store: Store, study: Study, selection: Selection) -> None:
    """Store what a run of the selection would."""
    store.put_manifest(study.name, study.revision, manifest(study))
    store.put_selection(selection)
    for point in selection.points:
        for trials in rounds(selection, point, store.results):
            store.add([Record(trial, {"success": outcome(trial)}) for trial in trials])


def outcome(trial) -> bool:
    chance = 1 / (1 + (3 * trial.point["context_length"] ** 0.5 / trial.point["sample_size"]) ** 4)
    return random.Random(trial.id).random() < chance


@pytest.fixture
def store(tmp_path):
    with Store(f"sqlite:///{tmp_path / 'store.db'}") as made:
        yield made


@pytest.mark.parametrize(("study", "options"), REQUESTS)
def test_a_selection_is_rebuilt_from_its_stored_form(study, options, store):
    selection = select(study, **options)
    again = Selection.from_facts(study.name, study.revision, json.loads(json.dumps(selection.facts())))
    assert (again.id, again.command, again.title) == (selection.id, selection.command, selection.title)
    store.put_selection(selection)
    store.put_manifest(study.name, study.revision, manifest(study))
    assert [each.id for each in store.selections(study.name)] == [selection.id]


def test_the_identity_is_of_what_is_computed_and_the_budget():
    every = [select(study, **options).id for study, options in REQUESTS]
    assert len({*every}) == len(every)
    whole = select(toys.fixed)
    assert select(toys.fixed, where={"kind": ["b", "a"], "size": [3, 2, 1]}, seeds=5).id == whole.id
    assert select(toys.fixed, seed=0).id == select(toys.fixed, seeds=1).id
    others = [select(toys.fixed.replace(revision=2)), select(toys.fixed, "paper"), select(toys.fixed, seeds=4)]
    assert whole.id not in {each.id for each in others}
    assert select(SEARCHED).id != select(SEARCHED.replace(search=Search(width=0.2))).id


def test_the_title_says_what_was_asked_for():
    assert [select(study, **options).title for study, options in REQUESTS[1:4]] == [
        "budget quick",
        "budget standard size=2,7 kind=b seeds 3",
        "budget standard kind=a seed 4",
    ]
    assert Selection("s", 1).title == "all stored trials"
    assert Selection("s", 1).command == ""


def test_a_run_stores_its_selection_and_the_last_one_asked_for_comes_last(store):
    quick, one = select(toys.fixed, "quick"), select(toys.fixed, where={"size": [1]}, seed=3)
    for selection in (quick, one, quick):
        run(toys.fixed, selection, store=store)
    assert [each.id for each in store.selections("toy-fixed")] == [one.id, quick.id]
    assert read(store, one).frame["seed"].to_list() == [3, 3]
    assert read(store, one).missing == 0
    assert read(store, select(toys.fixed)).missing == 30 - 4
    assert read(store, store.everything("toy-fixed")).frame.equals(store.frame("toy-fixed"))


def test_a_selection_is_run_with_its_own_study(store):
    for other in (select(toys.slow), select(toys.fixed.replace(revision=2))):
        with pytest.raises(ValueError, match="a selection only runs with its own study"):
            run(toys.fixed, other, store=store)


def test_a_claim_and_a_figure_read_the_same_trials(store):
    """After quick and standard runs in one store, each budget has its own thresholds, wherever they are shown."""
    quick, standard = select(SEARCHED, "quick"), select(SEARCHED)
    fill(store, SEARCHED, quick)
    alone = read(store, quick)
    fill(store, SEARCHED, standard)
    for selection in (quick, standard):
        reading = read(store, selection)
        shown = show(manifest(SEARCHED), selection, reading, others=(), anchor="s")
        line, shares = shown.figures
        cells = {int(row[0]): int(row[3]) for row in line.tables[0].rows}
        assert cells == {point["context_length"]: size.trials for point, size in reading.thresholds}
        assert sum(int(row[3]) for row in shares.data[0].rows) == sum(cells.values()) == reading.frame.height
        assert shown.command.partition(" --store")[0] == selection.command
        assert shown.selection == selection.title
    assert read(store, quick).thresholds == alone.thresholds
    assert read(store, quick).thresholds[0][1].trials < read(store, standard).thresholds[0][1].trials
    page, small = render(store), render(store, budget="quick")
    assert 'budget standard <span class="muted">(also stored: budget quick)</span>' in page
    assert 'budget quick <span class="muted">(also stored: budget standard)</span>' in small
    assert f"{read(store, quick).frame.height} finished" in small
    assert f"{read(store, standard).frame.height} finished" in page


def test_a_grid_of_sizes_has_thresholds_as_the_search_would_estimate_them(store):
    sizes = select(SEARCHED, where={"sample_size": [8, 16, 32, 64]}, seeds=20)
    fill(store, SEARCHED, sizes)
    reading = read(store, sizes)
    assert [point for point, _ in reading.thresholds] == list(SEARCHED.points)
    assert all(size.trials == 80 for _, size in reading.thresholds)
    assert [*reading.laws] == [("", 0.8)]
    assert read(store, select(SEARCHED, where={"sample_size": [32]}, seeds=20)).thresholds == ()


def test_the_largest_complete_selection_is_shown_first(store):
    quick, standard, paper = select(toys.fixed, "quick"), select(toys.fixed), select(toys.fixed, seeds=9)
    fixed = toys.fixed.replace(trial=toys.draw)
    for selection in (standard, quick):
        run(fixed, selection, store=store)
    store.put_selection(paper)  # and was killed at once
    assert largest(store, store.selections("toy-fixed"))[0].id == standard.id
    assert largest(store, [paper])[1].missing == 24
