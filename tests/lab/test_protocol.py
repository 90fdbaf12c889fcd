"""Orders and answers, there and back as JSON."""

import json
import math

import pytest

from genscope.lab.execution import protocol
from genscope.lab.execution.compute import CompileClock, Computer
from genscope.lab.execution.worker_loop import WorkerLoop
from genscope.lab.plans.sources import sources
from tests.lab import hazards, toys


def sent(message):
    return json.loads(json.dumps(message, allow_nan=False))


def order(study, trials):
    return sent(protocol.order(protocol.heading(study), trials))


@pytest.fixture(scope="module")
def loop():
    with WorkerLoop() as loop:
        yield loop


@pytest.mark.parametrize("study", [toys.fixed, toys.stacked, hazards.study], ids=lambda study: study.name)
def test_an_answer_holds_what_a_computation_here_would_give(study, loop):
    trials = [trial for point in study.points[:1] for trial in study.trials(point, range(3))]
    ready, *results = map(sent, loop.answers(order(study, trials)))
    found = protocol.records(trials, {"provenance": ready["ready"], "results": results})
    with CompileClock() as clock:
        expected = Computer(study, clock)(trials)
    assert [record.trial.id for record in found] == [trial.id for trial in trials]
    assert [record.values for record in found] == [record.values for record in expected]
    assert {type(value) for value in found[0].values.values()} <= {bool, int, float, list}
    assert found[0].provenance == expected[0].provenance


def test_what_is_not_a_number_and_what_raised_come_through(loop):
    trials = [trial for kind in ("diverges", "raises") for trial in hazards.study.trials({"kind": kind}, [0])]
    ready, *results = map(sent, loop.answers(order(hazards.study, trials)))
    diverged, raised = protocol.records(trials, {"provenance": ready["ready"], "results": results})
    assert math.isnan(diverged.values["number"])
    assert diverged.values["exact"] == 2**53 + 1
    assert (diverged.status, raised.status) == ("ok", "failed")
    assert "RuntimeError: a trial fell over" in raised.error


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"genscope": "0.0.1"}, "Install the same version on every machine"),
        ({"revision": 2}, "Copy the same files to every machine"),
        ({"name": "other"}, "Copy the same files to every machine"),
        ({"lanes": 5}, "Copy the same files to every machine"),
        ({"digest": "0" * 64}, "Copy the same files to every machine"),
        ({"study": "tests.lab.toys:STUDIES"}, "Copy the same file to this machine"),
        ({"study": "tests.lab.nothing:study"}, "No module named 'tests.lab.nothing'"),
    ],
)
def test_a_worker_that_differs_refuses(change, advice, loop):
    [answer] = loop.answers(order(toys.fixed, toys.fixed.trials({"size": 1, "kind": "a"}, [0])) | change)
    with pytest.raises(ValueError, match=advice):
        protocol.records([], answer)


def test_an_order_is_a_name_and_plain_data():
    assert order(toys.search, toys.search.trials({"context_length": 3, "sample_size": 4}, [7])) == {
        "genscope": protocol.VERSION,
        "study": "tests.lab.toys:search",
        "name": "toy-search",
        "revision": 1,
        "digest": sources(toys.search).digest,
        "stacked": False,
        "lanes": 4,
        "trials": [[{"context_length": 3, "sample_size": 4}, 7]],
    }
