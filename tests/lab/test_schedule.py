"""The order of work, on jobs that only pretend to work."""

import itertools
from collections import Counter
from dataclasses import dataclass

from genscope import claims, studies
from genscope.lab import Plan, Store, select
from genscope.lab.execution.reference import refer, resolve
from genscope.lab.execution.runner import Failure, Summary, run_all
from genscope.lab.execution.schedule import Schedule, cost
from genscope.lab.execution.threads import Threads
from genscope.lab.plans.study import BUDGETS
from tests.cli import study_file
from tests.lab import toys

STUDIES = [study_file.study.replace(name=name, budgets={}, trial_cost=seconds) for name, seconds in
           {"c": 3.0, "a": 1.0, "d": 4.0, "b": 2.0}.items()]  # fmt: skip


@dataclass(eq=False)
class Job:
    """So many batches, then it is over."""

    name: str
    cost: float
    batches: int
    over: bool = False

    def take(self):
        self.batches -= 1
        return self.batches >= 0


def play(*jobs, workers=2, finishing=min):
    """What is taken, in order, when the worker whose job `finishing` names is free next."""
    schedule, running, taken = Schedule(jobs), [], []
    free = [None] * workers
    while True:
        while free:
            last = free.pop()
            job = next((job for job in schedule.turn(last, Counter(running)) if job.take()), None)
            if job is None:
                break
            running.append(job)
            taken.append(job.name)
        if not running:
            assert all(job.batches <= 0 for job in jobs)
            return "".join(taken)
        done = finishing(running, key=lambda job: job.cost)
        running.remove(done)
        done.over = done.batches <= 0 and done not in running
        free = [done]


def test_cost_is_trials_times_their_cost():
    assert [cost(select(study)) for study in STUDIES] == [24, 8, 32, 16]
    cheap = Plan(STUDIES[0].points[:1], trial_cost=0.5)
    assert cost(select(STUDIES[0].replace(budgets={"quick": cheap}), "quick")) == 0.5
    assert cost(select(study_file.search, "quick")) == 16 / 4


def test_one_worker_takes_the_cheap_ones_and_one_the_expensive_ones():
    jobs = [Job("a", 8, 2), Job("b", 16, 2), Job("c", 24, 2), Job("d", 32, 2)]
    assert play(*jobs) == "adabbccd"  # the cheap end moves up; a worker stays with its study


def test_workers_join_an_expensive_study_and_nobody_a_cheap_one():
    assert play(Job("d", 32, 6), workers=3) == "dddddd"
    schedule, cheap = Schedule([Job("a", 8, 6)]), []
    for _ in range(3):
        cheap += list(itertools.islice((job for job in schedule.turn(None, Counter(cheap)) if job.take()), 1))
    assert len(cheap) == 1


def test_a_cheap_study_that_nobody_works_on_is_taken_up_again():
    job = Job("a", 8, 2)
    schedule = Schedule([job])
    assert next(schedule.turn(None, Counter())) is job
    assert next(schedule.turn(None, Counter())) is job


def rows(store, study):
    return store.frame(study.name).drop("seconds", "compile_seconds", "finished").sort("id")


def test_studies_side_by_side_store_what_each_alone_would(tmp_path):
    listed = [toys.fixed, toys.search, toys.slow]
    with Store(f"sqlite:///{tmp_path}/together.db") as store:
        with Threads(2) as pool:
            outcomes = list(run_all(listed, store=store, pool=pool))
        together = {study.name: rows(store, study) for study in listed}
    assert {outcome.study for outcome in outcomes} == {study.name for study in listed}
    assert all(isinstance(outcome, Summary) for outcome in outcomes)
    for study in listed:
        with Store(f"sqlite:///{tmp_path}/{study.name}.db") as store:
            toys.run_on_threads(1, study, store=store)
            assert rows(store, study).equals(together[study.name])


def test_a_study_that_cannot_go_on_does_not_keep_the_others(tmp_path):
    odd = toys.search.replace(name="toy-odd", trial=toys.draw)  # returns no Boolean to search by
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        outcomes = {outcome.study: outcome for outcome in run_all([odd, toys.fixed], store=store)}
    assert isinstance(outcomes["toy-odd"], Failure)
    assert "a search needs a Boolean" in str(outcomes["toy-odd"].error)
    assert isinstance(outcomes["toy-fixed"], Summary)
    assert outcomes["toy-fixed"].computed == 30


def test_every_study_is_found_by_another_process():
    listed = {study.name: study for claim in claims.ALL for budget in BUDGETS for study in claim.studies[budget]}
    for study in (*studies.ALL, *listed.values()):
        assert resolve(refer(study)) is study
        assert cost(select(study, "quick")) > 0
