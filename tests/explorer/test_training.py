"""The process beside the server: one at a time, read without waiting, ended in time and with the server."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from genscope.explorer import training as trainings
from genscope.explorer.training import Training

ECHO = """
import json, sys
request = json.loads(sys.stdin.readline())
for number in range(request["events"]):
    print(json.dumps({"number": number, "store": request["store"]}), flush=True)
sys.exit(request.get("status", 0))
"""
ENDLESS = """
import json, os, sys
print(json.dumps({"pid": os.getpid()}), flush=True)
sys.stdin.read()
"""
DEAF = """
import json, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(json.dumps({"pid": os.getpid()}), flush=True)
time.sleep(600)
"""
FLOOD = """
while True:
    print('{"some": "event"}', flush=True)
"""


def command(code):
    return (sys.executable, "-c", code)


@pytest.fixture
def make():
    with contextlib.ExitStack() as ends:

        def make(code, **options):
            made = Training(command=command(code), **options)
            ends.callback(made.close)
            return made

        yield make


def until(training, wanted, seconds=60):
    """Look until the wanted is true of what is seen."""
    end = time.monotonic() + seconds
    while not wanted(seen := training.look(None, 0)):
        assert time.monotonic() < end, seen
        time.sleep(0.02)
    return seen


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as state:
        return state.read().rpartition(")")[2].split()[0] != "Z"


def test_events_come_in_order_and_in_parts(make):
    training = make(ECHO)
    assert training.look(None, 0)["state"] == "none"
    number = training.start({"events": 450}, store="sqlite:///secret.db")
    until(training, lambda seen: seen["state"] == "ended")
    events, since = [], 0
    while True:
        part = training.look(number, since)
        assert len(part["events"]) <= trainings.AT_ONCE
        events += part["events"]
        since = part["next"]
        if not part["more"]:
            break
    assert [each["number"] for each in events] == list(range(450))
    assert events[0]["store"] == "sqlite:///secret.db"
    assert "store" not in part["request"]  # pages are not told
    assert training.look(number + 1, 300)["events"][0]["number"] == 0  # whoever knows another training starts anew


def test_one_at_a_time_and_another_after_its_end(make):
    training = make(ENDLESS)
    training.start({}, store="")
    with pytest.raises(ValueError, match="one thing at a time"):
        training.start({}, store="")
    pid = until(training, lambda seen: seen["events"])["events"][0]["pid"]
    began = time.monotonic()
    training.stop()
    assert time.monotonic() - began < 1  # asking costs nothing, whatever the process does
    assert until(training, lambda seen: seen["state"] == "stopped")
    training.close()
    assert not is_alive(pid)
    assert training.start({}, store="") == 2


def test_a_process_that_does_not_listen_is_ended_by_force(make, monkeypatch):
    monkeypatch.setattr(trainings, "PATIENCE", 0.3)
    training = make(DEAF)
    training.start({}, store="")
    pid = until(training, lambda seen: seen["events"])["events"][0]["pid"]
    training.stop()
    training.close()
    assert not is_alive(pid)


def test_time_is_limited(make):
    training = make(ENDLESS, seconds=0.5)
    training.start({}, store="")
    assert until(training, lambda seen: seen["state"] != "running")["state"] == "out of time"


def test_events_are_limited(make, monkeypatch):
    monkeypatch.setattr(trainings, "MOST_EVENTS", 500)
    training = make(FLOOD)
    training.start({}, store="")
    until(training, lambda seen: seen["state"] == "too long")
    training.close()
    assert training.look(1, 400)["next"] <= 501


def test_a_process_that_fails_is_said_to(make):
    training = make(ECHO)
    training.start({"events": 2, "status": 3}, store="")
    assert len(until(training, lambda seen: seen["state"] == "failed")["events"]) == 2


def test_no_training_outlives_a_server_that_is_killed():
    server = subprocess.Popen(
        command(
            "import sys, time\n"
            "from genscope.explorer.training import Training\n"
            f"training = Training(command={command(ENDLESS)!r})\n"
            "training.start({}, store='')\n"
            "while not (seen := training.look(None, 0)['events']): time.sleep(0.02)\n"
            "print(seen[0]['pid'], flush=True)\n"
            "time.sleep(600)\n"
        ),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        pid = int(server.stdout.readline())
        assert is_alive(pid)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
        server.stdout.close()
    end = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < end
        time.sleep(0.05)
