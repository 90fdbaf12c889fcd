"""The room Learn without a browser: who may start a training, what may be asked for, and what a request costs."""

import time

import pytest

from genscope.explorer.learn_room import NETWORKS
from genscope.lab import Store
from genscope.questions.networks import NAMED
from tests.explorer.visiting import alone, entered, running

ASK = {"kind": "run", "expression": "x0", "networks": ["linear"], "context_length": 3, "sample_size": 20}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('store') / 'runs.db'}"


@pytest.fixture(scope="module")
def server(store):
    with running(store) as server:
        yield server


def over(client, seconds=300):
    """All events of the training, once it is over."""
    events, seen = [], {"number": 0, "next": 0}
    end = time.monotonic() + seconds
    while True:
        seen = client.post("/api/learn/look", json={"number": seen["number"], "since": seen["next"]}).json()
        events += seen["events"]
        if seen["state"] != "running" and not seen["more"]:
            return seen["state"], events
        assert time.monotonic() < end, events
        time.sleep(0.1)


def test_networks_are_those_of_questions():
    assert [*NETWORKS] == [*NAMED]


def test_nobody_starts_a_training_without_the_cookie_or_from_another_page(client, server):
    base = server.address.partition("/?")[0]
    root = str(client.base_url).removeprefix(base).rstrip("/")
    for address in (f"{base}/api/learn/start", f"{base}{root}/api/learn/start"):
        assert alone("POST", address, json=ASK).status_code == 403
    foreign = client.post("/api/learn/start", json=ASK, headers={"origin": "http://example.org"})
    assert foreign.status_code == 403
    assert client.get("/api/learn/start").status_code in (404, 405)
    assert client.post("/api/learn/look", json={}).json()["state"] == "none"


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"expression": "mine.py:task"}, "Boolean expression"),
        ({"expression": "x0 &"}, "Write an operand"),
        ({"expression": " & ".join(f"x{i}" for i in range(13))}, "at most 12"),
        ({"networks": []}, "Choose one or more"),
        ({"networks": ["mine.py:build"]}, "Choose one or more"),
        ({"networks": [["linear"]]}, "Choose one or more"),
        ({"networks": "linear"}, "Choose one or more"),
        ({"context_length": 129}, "from 1 to 128"),
        ({"sample_size": 4001}, "from 1 to 4,000"),
        ({"sample_size": 10.5}, "whole number"),
        ({"noise": 0.5}, "from 0 to 0.4"),
        ({"kind": "everything"}, "run, threshold"),
    ],
)
def test_what_is_too_large_or_makes_no_sense_starts_nothing(client, changed, advice):
    answer = client.post("/api/learn/start", json=ASK | changed)
    assert answer.status_code == 422
    assert advice in answer.json()["message"]
    assert client.post("/api/learn/look", json={}).json()["state"] == "none"


def test_a_run_is_watched_and_stored_and_requests_stay_cheap(store):
    with running(store) as server, entered(server) as client:
        assert client.post("/api/learn/start", json=ASK).json() == {"number": 1}
        again = client.post("/api/learn/start", json=ASK)
        assert (again.status_code, "one thing at a time" in again.json()["message"]) == (422, True)
        state, events = over(client)
        assert state == "ended"
        assert events[0]["event"] == "begins"
        assert events[-1]["event"] == "ends"
        with Store(store) as opened:
            assert opened.counts()[events[0]["study"]]["ok"] == 1

        refused = client.post("/api/learn/start", json=ASK | {"expression": "x0 & x1 & x2 & x3"})
        assert refused.status_code == 200  # whether three bits can hold it is the process's to say
        state, events = over(client)
        assert "Lengthen the context" in events[-1]["message"]

        assert client.post("/api/learn/start", json=ASK | {"kind": "threshold"}).status_code == 200
        assert client.post("/api/learn/stop", json={}).status_code == 200
        assert over(client)[0] == "stopped"
