"""Streaming the progress of a run does not change the run, and what is streamed is true."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.lab import Store
from genscope.lab.execution.compute import trial_key
from genscope.models import BitClassifier, BitPerceptron, outputs
from genscope.questions import live
from genscope.questions.prepared import prepare
from genscope.questions.trial import run_trial

REQUEST = {"expression": "x4 & x9", "networks": ["linear"], "context_length": 5, "sample_size": 40, "noise": 0}


@pytest.fixture
def store(tmp_path):
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        yield store


def test_a_streamed_run_is_stored_like_any_other(store):
    events = []
    live.stream_runs(REQUEST, store, events.append)
    begins, *snapshots, ends = events
    assert (begins["event"], begins["seed"], ends["event"]) == ("begins", 0, "ends")
    assert {snapshot["event"] for snapshot in snapshots} == {"snapshot"}
    assert [snapshot["steps"] for snapshot in snapshots] == list(range(0, ends["steps"] + 1, 10))
    assert [len(snapshot["losses"]) for snapshot in snapshots] == [0] + [10] * (len(snapshots) - 1)
    assert snapshots[-1]["losses"][-1] < snapshots[1]["losses"][0]
    assert all(len(snapshot["weights"]) == 5 for snapshot in snapshots)
    assert len(snapshots[0]["support"]) == 2

    asked = prepare("x4&x9", context_length=5, network="linear", budget="quick")
    point = {"context_length": 5, "network": "linear", "sample_size": 40}
    [one] = asked.selection.trials(point, [0])
    alone = run_trial(asked.question, trial_key(asked.study, one), **point)
    assert {name: ends[name] for name in alone} == alone

    events.clear()
    live.stream_runs(REQUEST, store, events.append)
    assert events[0]["seed"] == 1  # what is stored is not computed again, so another run is drawn
    assert store.counts()[asked.study.name] == {"ok": 2, "failed": 0}


def test_an_observer_that_fails_does_not_spoil_the_run(store, capfd):
    told = []

    def emit(event):
        if event["event"] == "snapshot":
            raise RuntimeError("a pipe is broken")
        told.append(event["event"])

    live.stream_runs(REQUEST, store, emit)
    assert told == ["begins", "ends"]
    assert "a pipe is broken" in capfd.readouterr().err
    [counts] = store.counts().values()
    assert counts["failed"] == 0


def test_the_success_curve_narrows_to_the_answer(store):
    events = []
    live.stream_threshold(REQUEST | {"expression": "x0", "context_length": 4}, store, events.append)
    *curves, answer = events
    assert answer["event"] == "answer"
    assert answer["sentence"].startswith("x0 at T = 4: a linear model needs")
    done = [each["done"] for each in curves]
    assert done == sorted({*done})
    [last] = curves[-1]["curves"]
    assert sum(last["trials"]) == curves[-1]["done"]
    assert all(low <= share <= high for share, low, high in last["shares"])
    [first] = next(each["curves"] for each in curves if each["curves"])
    assert sum(first["trials"]) < sum(last["trials"])


def test_influences_are_those_of_flipping_each_bit():
    model = BitPerceptron(4, hidden=(6,), key=jr.key(1))
    x = jr.bernoulli(jr.key(2), shape=(30, 4))
    found = live._influences(model, x, predict=outputs)
    for bit in range(4):
        flipped = np.array(x)
        flipped[:, bit] ^= True
        changed = (np.asarray(outputs(model, jnp.asarray(flipped))) > 0) != (np.asarray(outputs(model, x)) > 0)
        assert found[bit] == pytest.approx(changed.mean())


def test_attention_is_the_largest_over_heads(store):
    events = []
    request = REQUEST | {"networks": ["transformer"], "sample_size": 12}
    seen = {}
    bit_weights = live._bit_weights

    def spy(snapshot):
        seen.setdefault("model", snapshot.model)
        seen.setdefault("x", snapshot.task.inputs(jr.key(0), live.INPUTS))
        return bit_weights(snapshot)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "_bit_weights", spy)
        live.stream_runs(request, store, events.append)
    assert isinstance(seen["model"], BitClassifier)
    attention = jax.vmap(lambda bits: seen["model"].activations(bits).attention)(seen["x"])
    expected = np.asarray(attention).mean(axis=0)[:, :-1].max(axis=0)
    np.testing.assert_allclose(events[1]["weights"], expected, atol=1e-4)
    assert events[1]["attention"]
