import pytest

from genscope.lab import Study, grid
from genscope.lab.plans.selection import MOST_TRIALS, parse_where, select
from genscope.lab.plans.study import within


def study(**options):
    return Study(
        name="s",
        title="",
        source="",
        trial=lambda key, size, rate: {},
        points=grid(size=[3, 5], rate=[0.5]),
        check=within(size=(1, 9), rate=(0.1, None)),
        **options,
    )


def test_points_that_no_trial_can_have_are_refused():
    assert len(select(study(), "standard", {"size": [1, 9]}).points) == 2
    for where, said in [
        (
            {"size": [3, 0]},
            "s got size=0 rate=0.5, which is impossible: size lies between 1 and 9. Choose such a value.",
        ),
        ({"size": [10]}, "size=10 .* size lies between 1 and 9"),
        ({"rate": [0.05]}, "size=3 rate=0.05, .* rate is at least 0.1. Choose such a value"),
    ]:
        with pytest.raises(ValueError, match=said):
            select(study(), "standard", where)


def test_a_check_sees_only_the_axes_that_a_point_has():
    within(size=(1, None), other=(5, 6))({"size": 2})


@pytest.mark.parametrize(
    "text", ["rate=nan", "rate=inf", "rate=-inf", "rate=1e400", f"size={2**63}", f"size=-{10**400}"]
)
def test_numbers_that_no_column_holds_are_refused(text):
    with pytest.raises(ValueError, match=r"numbers must be finite and fit in 64 bits\. Choose another"):
        parse_where(study(), [text])


def test_a_run_has_at_most_a_million_trials():
    select(study(), "standard", seeds=MOST_TRIALS // 2)
    with pytest.raises(
        ValueError, match=r"2 points with 500001 repetitions: one run may have at most 1,000,000 trials\. Split"
    ):
        select(study(), "standard", seeds=MOST_TRIALS // 2 + 1)
