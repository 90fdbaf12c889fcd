"""The command `sharpness`: its numbers against the library's, and every mistake with its advice."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from genscope.models.file import save
from genscope.models.mousavi2025 import TwoLayer
from genscope.precision import float64

MODELS = """
import equinox as eqx, jax, jax.numpy as jnp

class Line(eqx.Module):
    slope: jax.Array
    offset: jax.Array
    def __call__(self, x):
        return x @ self.slope + self.offset

def line():
    return Line(jnp.array([1.0, 2.0, 3.0]), jnp.array(0.5))

def broken():
    return Line(jnp.array([1.0, 2.0, 3.0]), jnp.array(jnp.nan))

def failing():
    return 1 / 0

def nothing():
    return 3

class Loud(Line):
    def __call__(self, x):
        print("forward")
        return super().__call__(x)

def loud(*, offset=0.5):
    print("making")
    return Loud(jnp.ones(3), jnp.array(offset))
"""
X = np.array([[0.0, 1, 0], [1, 0, 2], [1, 1, 1], [0, 0, 3]])


@pytest.fixture
def mine(directory):
    """A module of the user, and data that its model takes."""
    (directory / "mine_sharpness.py").write_text(MODELS)
    np.savez(directory / "data.npz", x=X, y=np.array([0.0, 1, 1, 0]))
    return "mine_sharpness:line"


def test_a_model_of_the_user(call_json, mine):
    facts = call_json("sharpness", mine, "--data", "data.npz", "--by", "group", "--method", "exact")
    trace = 2 * (np.mean(np.sum(X**2, axis=1)) + 1)
    assert facts["trace"] == {"mean": pytest.approx(trace, rel=1e-5), "sem": 0.0}
    assert facts["groups"]["slope"] == {"mean": pytest.approx(trace - 2, rel=1e-5), "sem": 0.0, "parameters": 3}
    assert (facts["parameters"], facts["examples"], facts["products"]) == (4, 4, 4)
    mean = [*X.mean(axis=0), 1]
    hessian = 2 * np.cov(np.column_stack([X, np.ones(4)]).T, bias=True) + 2 * np.outer(mean, mean)
    assert facts["operator_norm"]["value"] == pytest.approx(np.linalg.norm(hessian, 2), rel=1e-4)
    assert abs(facts["smoothed_sharpness"]["mean"] - trace) < 6 * facts["smoothed_sharpness"]["sem"]
    assert facts["mean_loss"] == pytest.approx(np.mean((X @ [1, 2, 3] + 0.5 - [0, 1, 1, 0]) ** 2), rel=1e-5)
    assert facts["seconds"] > 0


def test_a_model_file_and_a_table_for_people(call, directory):
    with float64():
        weight, ones = jnp.asarray(X[:2]), jnp.ones(2)
        save(TwoLayer(weight, ones, 2 * ones), directory / "model.safetensors")
    safetensors.numpy.save_file({"x": X, "y": np.zeros(4)}, directory / "data.safetensors")
    options = ("--data", "data.safetensors", "--method", "gauss-newton", "--by", "group", "--sigma", "0.001")
    told = call("sharpness", "model.safetensors", *options)
    text = " ".join(told.stdout.split())
    hidden = X @ X[:2].T + 1  # positive: every unit is on
    outer, bias = 2 * np.mean(np.sum(hidden**2, axis=1)), 2 * 8
    trace = outer + bias * (1 + np.mean(np.sum(X**2, axis=1)))
    assert f"{trace:.6g} (exact)" in text
    assert f"outer {outer:.6g} (exact) 2" in text
    assert f"bias {bias:.6g}" in text
    assert "by gauss-newton" in told.stderr


def test_estimates_say_how_sure_they_are(call_json, mine):
    facts = call_json("sharpness", mine, "--data", "data.npz", "--method", "hutchinson", "--probes", 4, "--seed", 3)
    assert facts["trace"]["sem"] > 0
    assert "groups" not in facts
    logistic = call_json("sharpness", mine, "--data", "data.npz", "--loss", "logistic", "--method", "gauss-newton")
    chance = 1 / (1 + np.exp(-(X @ [1, 2, 3] + 0.5)))
    expected = np.mean(chance * (1 - chance) * (np.sum(X**2, axis=1) + 1))
    assert logistic["trace"]["mean"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("arrays", "advice"),
    [
        ({"x": X}, "no y"),
        ({"a": X, "b": X}, "no x and no y"),
        ({"x": X, "y": np.zeros(3)}, "one label for every input"),
        ({"x": X, "y": np.array([0.0, np.nan, 1, 1])}, "in example 1"),
        ({"x": np.array([["a"]]), "y": np.zeros(1)}, "numbers or truth values"),
        ({"x": np.zeros((0, 3)), "y": np.zeros(0)}, "at least one"),
        ({"x": np.array([None, {}]), "y": np.zeros(2)}, "pickled objects"),
        ({"x": np.zeros((4, 5)), "y": np.zeros(4)}, "the model failed on inputs of shape (5,)"),
        ({"x": X, "y": np.zeros((4, 1))}, "Take y[:, 0] for y"),
    ],
)
def test_data_that_do_not_fit(refused, directory, mine, arrays, advice):
    np.savez(directory / "odd.npz", **arrays)
    assert advice in " ".join(refused("sharpness", mine, "--data", "odd.npz").split())


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("mine_sharpness:line", "--data", "data.pkl"), "pickles and other files that may run code are not read"),
        (
            ("mine_sharpness:line", "--data", "none.npz"),
            "cannot open none.npz (No such file or directory): it must exist, and you must be allowed to use it. "
            "Correct the path",
        ),
        (("mine_sharpness:line", "--data", "torn.npz"), "numpy.savez"),
        (("mine_sharpness:line", "--data", "torn.safetensors"), "numpy.savez"),
        (("mine_sharpness:nothing", "--data", "data.npz"), "equinox.Module"),
        (("mine_sharpness:missing", "--data", "data.npz"), "no 'missing'"),
        (("mine_sharpness:Line", "--data", "data.npz"), "mine_sharpness:Line needs arguments (slope, offset)"),
        (("mine_sharpness.py", "--data", "data.npz"), "Write mine_sharpness.py:NAME"),
        (("mine_sharpness:line", "--data", "text.npz"), "is not a .npz file"),
        (("mine_sharpness:broken", "--data", "data.npz"), "weights that are not finite"),
        (("none.safetensors", "--data", "data.npz"), "No such file"),
        (("mine_sharpness:line", "--data", "data.npz", "--probes", "1"), "--probes must be at least 2"),
        (("mine_sharpness:line", "--data", "data.npz", "--sigma", "0"), "sigma must be a positive number"),
        (("mine_sharpness:line", "--data", "signs.npz", "--loss", "logistic"), "labels must be 0 and 1"),
    ],
)
def test_requests_that_make_no_sense(refused, directory, mine, arguments, advice):
    for name in ("torn.npz", "torn.safetensors"):
        (directory / name).write_bytes(b"PK\x03\x04nothing")
    (directory / "text.npz").write_text("no numbers")
    np.savez(directory / "signs.npz", x=X, y=np.array([-1.0, 1, 1, -1]))
    assert advice in " ".join(refused("sharpness", *arguments).split())


def test_a_failure_of_the_users_function_is_shown_as_its_own(call, mine):
    told = call("sharpness", "mine_sharpness:failing", "--data", "data.npz", status=1).stderr
    assert "ZeroDivisionError" in told
    assert "return 1 / 0" in told


def test_json_is_all_that_standard_output_holds(call, mine):
    """A model that prints does so on standard error."""
    told = call("sharpness", "mine_sharpness:loud", "--data", "data.npz", "--method", "exact", "--json")
    assert json.loads(told.stdout)["method"] == "exact"
    assert "making\n" in told.stderr
    assert "forward\n" in told.stderr


CLASSES = """
import equinox as eqx, jax, jax.numpy as jnp

class Net(eqx.Module):
    weight: jax.Array
    def __call__(self, x):
        return self.weight @ x

class Named(eqx.Module):
    words: jax.Array
    def __call__(self, ids, scale):
        return self.words[ids] * scale[:, None]

class Fixed(Net):
    def __init__(self):
        self.weight = jnp.ones((3, 3))

def net(): return Net(jnp.arange(9.0).reshape(3, 3) / 10)
ready = Net(jnp.arange(9.0).reshape(3, 3) / 10)
def tagger(): return Named(jnp.arange(8.0).reshape(4, 2) / 10)
def brier(output, y): return jnp.sum((jax.nn.softmax(output) - jax.nn.one_hot(y, 3)) ** 2)

def failing(output, y): return inner(output)
def inner(output): return output.nothing
def two(output, y): return output[0], output[1]
def every(output, y): return output
def wave(output, y): return output[0] + 1j
def alone(output): return output[0]

class Loop(Net):
    def __call__(self, x):
        return jax.lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, 2 * s[1]), (0, self.weight @ x))[1]
looping = Loop(jnp.ones((3, 3)))
def endless(output, y):
    return jax.lax.while_loop(lambda state: state < 2, lambda state: 2 * state, output[0])

class Words(eqx.Module):
    rows: eqx.nn.Embedding
    def __init__(self):
        self.rows = eqx.nn.Embedding(weight=jnp.arange(12.0).reshape(4, 3) / 10)
    def __call__(self, ids, keep):
        return jnp.where(keep[:, None] == 1, jax.vmap(self.rows)(ids), 0).sum(axis=0)
"""


@pytest.fixture
def classes(directory):
    (directory / "m.py").write_text(CLASSES)
    np.savez(directory / "d.npz", x=X, y=np.array([0, 2, 1, 1]))
    return ["--data", "d.npz", "--loss", "cross-entropy"]


def test_three_classes(call_json, classes):
    facts = call_json("sharpness", "m.py:net", *classes, "--method", "gauss-newton", "--by", "group")
    chance = np.exp(X @ (np.arange(9).reshape(3, 3) / 10).T)
    chance /= chance.sum(axis=1, keepdims=True)
    # Of a linear model the Hessian is diag(p) - pp^T times xx^T: its trace is (1 - |p|²)|x|².
    trace = np.mean((1 - np.sum(chance**2, axis=1)) * np.sum(X**2, axis=1))
    assert facts["trace"] == {"mean": pytest.approx(trace, rel=1e-5), "sem": 0.0}
    assert facts["loss"] == "cross-entropy"
    assert facts["mean_loss"] == pytest.approx(-np.log(chance[range(4), [0, 2, 1, 1]]).mean(), rel=1e-5)
    exact = call_json("sharpness", "m.py:net", *classes, "--method", "exact")
    assert exact["trace"]["mean"] == pytest.approx(trace, rel=1e-5)
    assert set(exact) == {*facts} - {"groups"}  # the JSON of the other losses


def test_a_model_a_class_or_a_function(call_json, classes):
    made = call_json("sharpness", "m.py:net", *classes, "--method", "exact")
    ready = call_json("sharpness", "m.py:ready", *classes, "--method", "exact")
    assert ready["trace"] == made["trace"]
    assert call_json("sharpness", "m:Fixed", *classes, "--method", "exact")["parameters"] == 9


def test_several_inputs_by_name_and_a_mask_of_tokens(call, call_json, refused, directory, classes):
    ids, scale = np.array([[0, 1], [2, 3], [3, 0]]), np.array([[1.0, 2], [1, 1], [2, 1]])
    y, mask = np.array([[0, 1], [1, 0], [0, 0]]), np.array([[1, 1], [1, 0], [1, 1]])
    np.savez(directory / "tokens.npz", ids=ids, scale=scale, y=y, mask=mask)
    facts = call_json(
        "sharpness", "m.py:tagger", "--data", "tokens.npz", "--loss", "cross-entropy", "--method", "exact"
    )
    logits = (np.arange(8).reshape(4, 2) / 10)[ids] * scale[..., None]
    each = np.log(np.exp(logits).sum(axis=2)) - np.take_along_axis(logits, y[..., None], axis=2)[..., 0]
    assert facts["mean_loss"] == pytest.approx(((each * mask).sum(axis=1) / mask.sum(axis=1)).mean(), rel=1e-5)
    told = call("sharpness", "m.py:tagger", "--data", "tokens.npz", "--loss", "cross-entropy", "--method", "fisher")
    assert "Fisher matrix" in told.stdout
    np.savez(directory / "wrong.npz", ids=ids, y=y)
    assert "named like the model's arguments" in refused("sharpness", "m.py:tagger", "--data", "wrong.npz")


def test_a_loss_of_the_users(call_json, classes):
    facts = call_json("sharpness", "m.py:net", "--data", "d.npz", "--loss", "m.py:brier", "--method", "exact")
    chance = np.exp(X @ (np.arange(9).reshape(3, 3) / 10).T)
    chance /= chance.sum(axis=1, keepdims=True)
    assert facts["loss"] == "m.py:brier"
    assert facts["mean_loss"] == pytest.approx(np.sum((chance - np.eye(3)[[0, 2, 1, 1]]) ** 2, axis=1).mean(), rel=1e-5)


@pytest.mark.parametrize("command", [["sharpness"], ["certify", "--steps", 1, "--draws", 1]])
def test_a_loss_that_fails_is_shown_as_the_users(call, directory, classes, command):
    np.savez(directory / "d.npz", x=np.ones((8, 3)), y=np.zeros(8, int))
    told = call(*command, "m.py:net", "--data", "d.npz", "--loss", "m.py:failing", status=1).stderr
    assert "m.py:failing failed" in told
    assert "return inner(output)" in told
    assert "has no attribute nothing" in told
    assert "genscope/train" not in told
    assert "bug" not in told


@pytest.mark.parametrize(
    ("loss", "advice"),
    [
        ("two", "returned an object of type tuple for one example"),
        (
            "every",
            "returned an array of float32 of shape (3,) for one example: the loss of an example must be one real",
        ),
        ("wave", "returned an array of complex64"),
        ("alone", "cannot be called with an output and a label"),
    ],
)
def test_losses_that_are_no_number(refused, classes, loss, advice):
    told = refused("sharpness", "m.py:net", "--data", "d.npz", "--loss", f"m.py:{loss}")
    assert advice in " ".join(told.split())


@pytest.mark.parametrize(
    ("model", "loss", "named"),
    [
        ("looping", "cross-entropy", "the model has no gradient"),
        ("net", "m.py:endless", "the loss m.py:endless has no"),
    ],
)
def test_what_cannot_be_differentiated(refused, classes, model, loss, named):
    told = " ".join(refused("sharpness", f"m.py:{model}", "--data", "d.npz", "--loss", loss).split())
    assert named in told
    assert "Reverse-mode differentiation does not work for lax.while_loop" in told


@pytest.mark.parametrize("wrong", [4, -1])
def test_token_ids_that_an_embedding_has_no_row_for(call_json, refused, directory, classes, wrong):
    """JAX would take the last row for both."""
    ids, keep = np.zeros((300, 2), int), np.ones((300, 2), int)
    ids[280, 1] = wrong
    command = ["sharpness", "m.py:Words", "--data", "words.npz", "--loss", "cross-entropy", "--method", "exact"]
    np.savez(directory / "words.npz", ids=ids, keep=keep, y=np.zeros(300, int))
    told = " ".join(refused(*command).split())
    assert f"example 280 has ids from {min(wrong, 0)} to {max(wrong, 0)}" in told
    assert "embedding has 4 rows" in told
    keep[280, 1] = 0  # a row that has no effect is no mistake
    np.savez(directory / "words.npz", ids=ids, keep=keep, y=np.zeros(300, int))
    assert call_json(*command)["examples"] == 300


@pytest.mark.parametrize(
    ("y", "loss", "advice"),
    [
        ([0, 3, 1, 1], "cross-entropy", "label 3 in example 1 for a model with 3 classes"),
        ([0.0, 2, 1, 1], "cross-entropy", "classes must be whole numbers"),
        ([0, 2, 1, 1], "squared", "For 3 classes take the cross-entropy loss"),
        ([0, 2, 1, 1], "error", "no slope"),
        ([0, 2, 1, 1], "focal", "losses are squared, logistic, cross-entropy"),
    ],
)
def test_labels_and_losses_that_do_not_fit(refused, directory, classes, y, loss, advice):
    np.savez(directory / "odd.npz", x=X, y=np.array(y))
    assert advice in " ".join(refused("sharpness", "m.py:net", "--data", "odd.npz", "--loss", loss).split())
