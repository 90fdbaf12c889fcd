import pytest

from genscope.lab import Plan, Study, Trial, grid, select
from genscope.lab.plans import design
from genscope.lab.plans.selection import describe, parse_where
from tests.lab import toys


def chosen(study, budget="standard", **options):
    return [dict(point) for point in select(study, budget, **options).points]


mixed = Study(
    name="mixed",
    title="",
    source="",
    trial=toys.draw,
    points=grid(size=[1, 2], rate=[0.1, 0.2], kind=["a"], fast=[True]),
    budgets={"paper": Plan(grid(size=[1, 2, 4], rate=[0.1], kind=["a", "b"], fast=[True, False]), seeds=9)},
)


def test_a_plan_as_it_is():
    selection = select(toys.fixed, "standard")
    assert selection.points == toys.fixed.points
    assert selection.seeds == range(5)
    assert selection.search is None
    assert select(toys.fixed, "quick").seeds == range(2)


def test_values_of_the_plan_choose_points():
    assert chosen(mixed, where={"size": [2], "rate": [0.2]}) == [{"size": 2, "rate": 0.2, "kind": "a", "fast": True}]
    assert chosen(mixed, where={"size": [2, 1]}) == [*chosen(mixed, where={"size": [2]}), *chosen(mixed)[:2]]


def test_other_numbers_are_put_in():
    expected = [{"size": 123, "rate": rate, "kind": "a", "fast": True} for rate in (0.1, 0.2)]
    assert chosen(mixed, where={"size": [123]}) == expected
    assert chosen(mixed, where={"size": [123, 1]}) == expected + chosen(mixed, where={"size": [1]})


def test_values_of_another_budget_are_put_in():
    assert {point["kind"] for point in chosen(mixed, where={"kind": ["b"]})} == {"b"}


def test_axes_that_go_together_can_be_parted():
    tied = mixed.replace(points=[{"size": 1, "rate": 0.1}, {"size": 2, "rate": 0.2}])
    for where in ({"size": [1], "rate": [0.2]}, {"rate": [0.2], "size": [1]}):
        assert chosen(tied, where=where) == [{"size": 1, "rate": 0.2}]


def test_points_are_not_repeated():
    assert len(chosen(mixed, where={"size": [1, 1, 7, 7]})) == 4
    doubled = mixed.replace(points=[*mixed.points, *mixed.points])
    assert len(chosen(doubled)) == 4


def test_seeds():
    assert select(mixed, "paper", seeds=3).seeds == range(3)
    assert select(mixed, "paper", seed=7).seeds == range(7, 8)


def test_values_on_the_searched_axis_turn_the_search_off():
    selection = select(toys.search, "standard", where={"sample_size": [50, 60]}, seeds=3)
    assert selection.search is None
    assert selection.points == grid(context_length=[3, 8], sample_size=[50, 60])
    assert selection.seeds == range(3)
    assert select(toys.search, "standard", where={"context_length": [3]}).search == toys.search.search


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": {"width": [1]}}, "'width': its axes are size, rate, kind, fast. Choose one"),
        ({"where": {"size": []}}, "no value for size: name at least one"),
        ({"where": {"kind": ["c"]}}, "kind='c': its values are a, b. Choose from"),
        ({"where": {"size": ["3"]}}, "size='3': its values are 1, 2, 4, or any numbers of type int. Choose"),
        ({"where": {"size": [1.5]}}, "size=1.5: its values are 1, 2, 4, or any numbers of type int. Choose"),
        ({"where": {"size": [True]}}, "size=True: its values are 1, 2, 4"),
        ({"where": {"rate": [1]}}, "rate=1: its values are 0.1, 0.2, or any numbers of type float"),
        ({"where": {"fast": [1]}}, "fast=1: its values are True, False"),
        ({"seeds": 1, "seed": 1}, "Give only one of the two"),
        ({"seeds": 0}, "Give 1 or more"),
        ({"seed": -1}, "between 0 and 2\\^31"),
        ({"seed": 2**31}, "between 0 and 2\\^31"),
    ],
)
def test_requests_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        select(mixed, "standard", **options)


def test_more_requests_that_make_no_sense():
    with pytest.raises(ValueError, match="budgets are quick, standard, paper"):
        select(mixed, "huge")
    for options in ({"seeds": 3}, {"seed": 3}):
        with pytest.raises(ValueError, match="Fix sample_size to some values as well"):
            select(toys.search, "standard", **options)
    with pytest.raises(ValueError, match=r"sample_size=0.5: its values are any numbers of type int"):
        select(toys.search, "standard", where={"sample_size": [0.5]})
    with pytest.raises(ValueError, match=r"'seed'.*Choose another name"):
        select(mixed.replace(points=grid(seed=[1])), "standard")
    lacking = mixed.replace(points=grid(rate=[0.1]))
    with pytest.raises(ValueError, match="Choose another budget"):
        select(lacking, "standard", where={"size": [1]})


def test_parsing_where():
    texts = ["size=1, 50", "rate=1,0.25", "kind=b", "fast=false,TRUE", "size=7"]
    assert parse_where(mixed, texts) == {
        "size": [1, 50, 7],
        "rate": [1.0, 0.25],
        "kind": ["b"],
        "fast": [False, True],
    }
    assert parse_where(toys.search, ["sample_size=50,60"]) == {"sample_size": [50, 60]}
    assert parse_where(mixed, []) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size", "write axis=value,value"),
        ("width=3", "'width': its axes are"),
        ("size=", "no value for size"),
        ("size=many", "size=many: the values of size must be whole numbers"),
        ("size=1.5", "size=1.5: the values of size must be whole numbers"),
        ("rate=fast", "rate=fast: the values of rate must be numbers"),
        ("fast=1", "fast=1: the values of fast must be true or false"),
        ("kind=c", "kind='c': its values are a, b"),
    ],
)
def test_texts_that_make_no_sense(text, message):
    with pytest.raises(ValueError, match=message):
        parse_where(mixed, [text])


def test_batches_are_fixed_groups_of_one_point():
    one = [Trial("s", 1, {"size": 1}, seed) for seed in (2, 3, 4, 5)]
    two = [Trial("s", 1, {"size": True}, seed) for seed in (0, 1)]  # equal to 1 in Python, another point here
    groups = design.batches([*one, *two], 4)
    assert [[trial.seed for trial in group] for group in groups] == [[2, 3], [4, 5], [0, 1]]
    assert design.batches([], 4) == []


def walk_through(outcomes):
    """Go through a search whose trial with size m and seed s ends as `outcomes(m, s)`; rounds and last words."""
    study, point = toys.search, {"context_length": 3}
    asked = []

    def results(trials):
        ends = {trial.id: outcomes(trial.point["sample_size"], trial.seed) for trial in trials}
        return {name: None if end is None else {"solved": end} for name, end in ends.items()}

    generator = design.rounds(select(study, "standard"), point, results)
    while True:
        try:
            trials = next(generator)
        except StopIteration as end:
            return asked, end.value
        assert all(trial.point["context_length"] == 3 for trial in trials)
        asked.append([(trial.point["sample_size"], trial.seed) for trial in trials])


def test_a_search_takes_the_next_unused_seeds():
    asked, words = walk_through(lambda size, _: size >= 16)
    assert words is None
    assert asked[0] == [(size, seed) for size in (4, 16, 64) for seed in range(4)]
    assert asked[1] == [(12, 0), (12, 1), (12, 2), (16, 4), (16, 5)]
    assert asked[2] == [(12, 3), (12, 4), (12, 5), (16, 6), (16, 7)]
    everything = [trial for part in asked for trial in part]
    assert len(set(everything)) == len(everything)


def test_failed_trials_use_seeds_and_count_for_nothing():
    asked, words = walk_through(lambda size, seed: None if (size, seed) in {(16, 0), (12, 1)} else size >= 16)
    without, _ = walk_through(lambda size, _: size >= 16)
    assert words is None
    assert asked[:3] == without[:3]
    # Forty trials must count: the two that failed cost one more round of five.
    assert len(asked) == len(without)
    assert sum(map(len, asked)) - 2 >= 40


def test_a_search_stops_when_most_of_a_round_fails():
    asked, words = walk_through(lambda size, seed: None if size < 64 else True)
    assert asked == [[(size, seed) for size in (4, 16, 64) for seed in range(4)]]
    assert words == "8 of 12 trials of a round failed at context_length=3: the search stopped there"
    half, words = walk_through(lambda size, seed: None if seed < 2 and size < 64 else True)
    assert words is None
    assert len(half) > 1


@pytest.mark.parametrize("outcome", [1, float("nan"), "yes"])
def test_an_outcome_is_a_truth_value(outcome):
    with pytest.raises(ValueError, match="a search needs a Boolean"):
        walk_through(lambda size, seed: outcome)


def test_the_empty_point_has_a_name():
    assert describe({}) == "the only point"
    assert describe({"size": 1, "kind": "a"}) == "size=1 kind=a"
