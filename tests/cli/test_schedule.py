"""The order of work on a crew that only pretends to work."""

import pytest

from genscope import claims, studies
from genscope.cli._crew import Crew, Failure
from genscope.cli._schedule import cost, one_by_one, side_by_side
from genscope.lab import Plan, Store
from genscope.lab.reference import refer, resolve
from genscope.lab.runner import Progress, Summary
from genscope.lab.study import BUDGETS
from tests.cli import study_file

STUDIES = [study_file.study.replace(name=name, budgets={}, trial_cost=seconds) for name, seconds in
           {"c": 3.0, "a": 1.0, "d": 4.0, "b": 2.0}.items()]  # fmt: skip


def summary(name):
    return Summary(study=name, budget="standard", trials=8, computed=8, failed=0, seconds=1.0, stopped=())


def progress(name, done):
    return Progress(name, "here", done=done, total=8, exact=True, failed=0, rate=1.0, seconds_left=None)


class FakeCrew(Crew):
    """Members without processes; each call of `messages` plays the next message of a script."""

    def __init__(self, *script, size=2):
        self.given, self._script, self._working, self._size = [], list(script), [], size

    @property
    def idle(self):
        return len(self._working) < self._size

    @property
    def studies(self):
        return self._working

    def give(self, study):
        assert self.idle
        self.given.append(study.name)
        self._working.append(study.name)

    def messages(self):
        message = self._script.pop(0)
        assert message.study in self._working
        if not isinstance(message, Progress):
            self._working.remove(message.study)
        yield message


def play(*script, studies=STUDIES):
    heard, crew = [], FakeCrew(*script)
    over = list(side_by_side(studies, crew=crew, budget="standard", follow=heard.append))
    return crew.given, over, heard


def test_cost_is_trials_times_their_cost():
    assert [cost(study, "standard") for study in STUDIES] == [24, 8, 32, 16]
    cheap = Plan(STUDIES[0].points[:1], trial_cost=0.5)
    assert cost(STUDIES[0].replace(budgets={"quick": cheap}), "quick") == 0.5
    assert cost(study_file.search, "quick") == 16 / 4


def test_one_takes_the_cheap_ones_and_one_the_dear_ones_and_the_idle_help():
    given, over, _ = play(*map(summary, "abcd"))
    assert given == ["a", "d", "b", "c", "d"]  # c is what a and b left over; then two work on d
    assert [outcome.study for outcome in over] == list("abcd")
    given, _, _ = play(*map(summary, "dcab"))
    assert given == ["a", "d", "c", "b", "b"]


def test_all_help_with_a_dear_study_and_nobody_with_a_cheap_one():
    for study, given in ((STUDIES[0], ["c", "c", "c"]), (STUDIES[1], ["a"])):
        crew = FakeCrew(summary(study.name), size=3)
        assert len(list(side_by_side([study], crew=crew, budget="standard", follow=print))) == 1
        assert crew.given == given


def test_progress_never_goes_back_and_ends_with_the_study():
    said = [progress("c", 3), progress("c", 1), progress("c", 5), summary("c")]
    _, over, heard = play(*said, studies=STUDIES[:1])
    assert [now.done for now in heard] == [3, 5]
    assert len(over) == 1


def test_a_failure_counts_only_if_nobody_else_finishes_the_study():
    given, over, _ = play(Failure("c", "died"), summary("c"), studies=STUDIES[:1])
    assert over == [summary("c")]
    assert given == ["c", "c"]  # nobody is sent after the first death
    _, over, _ = play(Failure("c", "died"), Failure("c", "died too"), studies=STUDIES[:1])
    assert over == [Failure("c", "died too")]


def test_a_lost_store_ends_everything():
    with pytest.raises(OSError, match="disk full"):
        play(Failure("a", "trace", "disk full"))


def test_one_by_one_begins_with_the_cheapest():
    with Store("sqlite:///genscope.db") as store:
        over = one_by_one(STUDIES, store=store, budget="standard", follow=lambda now: None)
        assert [outcome.study for outcome in over] == list("abcd")


def test_every_study_is_found_by_another_process():
    listed = {study.name: study for claim in claims.ALL for budget in BUDGETS for study in claim.studies[budget]}
    for study in (*studies.ALL, *listed.values()):
        assert resolve(refer(study)) is study
        assert cost(study, "quick") > 0
