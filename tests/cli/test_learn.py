"""`genscope learn`: a question from the command line, asked twice, asked wrongly, with code of one's own."""

import shlex

import pytest

from genscope.lab import Store

QUICK = ("--budget", "quick", "--width", "0.5")


def test_the_contract_for_scripts(call_json, call):
    asked = ("learn", "x1 & x3", "--context-length", "4,8,16", "--network", "ideal", *QUICK)
    plan = call_json(*asked, "--dry-run")
    assert (plan["points"], plan["stored"]) == (3, 0)
    facts = call_json(*asked, "--plot", "answer.png")
    assert set(facts) == {
        "question",
        "answers",
        "laws",
        "theory",
        "construction",
        "function",
        "remarks",
        "summary",
        "next",
    }
    keys = {"network", "context_length", "sample_size", "low", "high", "plateau", "trials", "seconds", "state"}
    assert all(set(row) == keys for row in facts["answers"])
    assert {"name", "context_length", "sample_size", "explicit", "vacuous"} <= set(facts["theory"][0])
    assert {"degree": 2, "sparsity": 3, "support": 2}.items() <= facts["function"].items()
    assert facts["question"]["placements"] == {"4": 6, "8": 28, "16": 120}
    norms = facts["construction"]["8"]
    line = [part for name, value in norms.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    assert call_json("bound", "head", *line)["value"] > 0
    assert facts["laws"]["ideal"]["best"] in facts["laws"]["ideal"]["laws"]
    study = facts["question"]["study"]
    with Store("sqlite:///genscope.db") as store:
        stored = store.counts()[study]["ok"]
        [selection] = store.selections(study)
        assert stored == sum(row["trials"] for row in facts["answers"])
    again = call_json(*asked)
    assert again == facts
    plan = call_json(*asked, "--dry-run")
    assert plan["stored"] == plan["trials"] == stored
    with open("answer.png", "rb") as drawn:
        assert drawn.read(4) == b"\x89PNG"
    repeated = call_json(*shlex.split(selection.command)[1:])  # what a report says that makes it again
    assert (repeated["trials"], repeated["new_trials"]) == (stored, 0)
    assert study in call("list").stdout
    assert "trials" in call("export", study, "--format", "csv").stdout
    call("report")


def test_what_a_dry_run_estimates_depends_on_network_and_length(call_json):
    def seconds(network, length):
        return call_json("learn", "x0&x1", "--network", network, "--context-length", length, "--dry-run")["seconds"]

    assert seconds("linear", "16") < seconds("mlp", "16") < seconds("gru", "16")
    assert seconds("gru", "64") == pytest.approx(4 * seconds("gru", "16"))


def test_what_people_read(call):
    told = call(
        "learn", "x0&x1", "--context-length", "6", "--network", "ideal,linear", "--steps", "60", "--rate", "0.1", *QUICK
    ).stdout
    assert "places the relevant bits at random. Functions in the class: 15 at T = 6." in " ".join(told.split())
    assert "Construction at T = 6, as genscope bound head reads it: value 21 " in " ".join(told.split())
    assert "at T = 6. A trial succeeds when its network gets all of 10,000" in " ".join(told.split())
    assert "information bound" in told
    assert "linear: logistic regression; adam at rate 0.1, up to 60 steps" in " ".join(told.split())
    assert "x0&x1 at T = 6: an ideal learner needs" in " ".join(told.split())


def test_an_open_threshold_ends_with_the_next_step(call, call_json):
    asked = ("learn", "x0^x1", "--context-length", "4", "--network", "linear", "--steps", "10", *QUICK)
    facts = call_json(*asked)
    [row] = facts["answers"]
    assert row["sample_size"] is None
    assert row["state"] in ("above", "plateau")
    assert (row["state"] == "plateau") == (facts["next"] is None)
    if row["state"] == "above":
        assert facts["next"].startswith("Continue with --budget standard, about ")


FILE = """
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

import genscope as gs


class Own(eqx.Module):
    inner: eqx.nn.MLP

    def __call__(self, x):
        return self.inner(x.astype(float))


def build(key, context_length):
    return Own(eqx.nn.MLP(context_length, "scalar", 8, 0, key=key))


def wide(key, context_length):
    return Own(eqx.nn.MLP(context_length, 3, 8, 1, key=key))


def broken(key, context_length):
    raise RuntimeError("my own mistake")


def task(key, context_length):
    return gs.tasks.SparseAnd.draw(key, context_length=context_length, support_size=1)


def numbers(key, context_length):
    return gs.tasks.WalshSum.draw(key, context_length=context_length, degree=1, sparsity=1)


def raises(key, context_length):
    raise KeyError("not there")


class Chain(gs.tasks.AbstractTask):
    # Each bit is the one before it, but for one in twenty; the label is the first.
    length: int = eqx.field(static=True)

    def __init__(self, key, context_length):
        self.length = context_length

    @property
    def context_length(self):
        return self.length

    def inputs(self, key, size):
        first, changes = jr.split(key)
        start = jr.bernoulli(first, 0.5, (size, 1))
        return jnp.cumsum(jnp.concatenate([start, jr.bernoulli(changes, 0.05, (size, self.length - 1))], 1), 1) % 2 == 1

    def target(self, x):
        return x[0].astype(float)


def late_with_weights(key, context_length):
    class Late(Own):
        def __call__(self, x):
            raise KeyError("inside the call")

    return Late(build(key, context_length).inner)


def forgetful(key, context_length):
    pass


def weightless(key, context_length):
    return eqx.nn.Lambda(lambda x: 1.0 * x[0])


def infinite(key, context_length):
    return jax.tree.map(lambda leaf: leaf / 0 if eqx.is_array(leaf) else leaf, build(key, context_length))


class Exploding(Own):
    def __call__(self, x):
        return jnp.exp(jnp.exp(50 * self.inner(x.astype(float)) ** 2))


def exploding(key, context_length):
    return Exploding(build(key, context_length).inner)


def fails(key, context_length):
    if not jnp.array_equal(jr.key_data(key), jr.key_data(jr.key(0))):
        raise KeyError("in trials alone")
    return build(key, context_length)


def lonely(key):
    return None


three = 3
"""


@pytest.fixture
def mine(directory):
    (directory / "mine.py").write_text(FILE)
    return "mine.py"


def test_a_task_and_a_network_of_ones_own(mine, call_json):
    asked = ("learn", "mine.py:task", "--context-length", "3", "--network", "mine.py:build", *QUICK)
    facts = call_json(*asked, "--steps", "80", "--rate", "0.05", "--workers", "1")
    [row] = facts["answers"]
    assert row["network"].startswith("mine.py:build@")
    assert row["low"] is None or row["low"] < 100
    assert row["high"] < 100
    assert facts["function"]["degree"] is None
    assert call_json(*asked, "--steps", "80", "--rate", "0.05") == facts


def test_no_larger_budget_is_advised_where_every_run_diverges_or_fails(mine, call, call_json):
    asked = ("learn", "x0^x1", "--context-length", "4", "--steps", "10", *QUICK)
    facts = call_json(*asked, "--network", "mine.py:exploding")
    assert facts["next"] == "Every run of mine.py:exploding diverged: give a lower --rate."
    told = call(*asked, "--network", "mine.py:fails", status=1)
    assert "every trial failed" in told.stderr
    assert "Continue" not in told.stdout


@pytest.mark.slow
def test_a_target_of_numbers_and_correlated_inputs(mine, call_json):
    """A Walsh sum of degree 1 is linear, and so is the first bit of a chain, whatever its neighbours."""
    asked = ("--network", "linear", "--steps", "300", "--rate", "0.05", *QUICK)
    facts = call_json("learn", "mine.py:numbers", "--context-length", "4", "--error", "0.02", *asked)
    [row] = facts["answers"]
    assert facts["question"]["error"] == 0.02
    assert row["high"] < 200
    with Store("sqlite:///genscope.db") as store:
        frame = store.frame(facts["question"]["study"])
        assert (frame["success"] == (frame["held_out_error"] <= 0.02)).all()
    facts = call_json("learn", "mine.py:Chain", "--context-length", "6", *asked)
    [row] = facts["answers"]
    assert row["high"] < 500


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("x0&~x0", "--context-length", "4"), "Write a function that depends on some bit"),
        (("x0&x1&x2", "--context-length", "2"), "Lengthen the context"),
        (("x0&", "--context-length", "2"), "Write an operand"),
        (("x0", "--context-length", ""), "no context length: it needs at least one"),
        (("x0", "--context-length", "4", "--network", ","), "no network: it needs at least one"),
        (("x0", "--context-length", "many"), "Write, for example, 64,256"),
        (("x0", "--context-length", "4", "--network", "cnn"), "Choose one of them"),
        (("x0", "--context-length", "4", "--network", "transformers"), "Did you mean transformer?"),
        (("x0", "--context-length", "4", "--network", "ideal", "--rate", "0.1"), "learn got rate with the ideal"),
        (("x0", "--context-length", "4", "--layers", "2"), "Add --network deep"),
        (("x0", "--context-length", "4", "--network", "deep", "--heads", "3"), "Change --layers, --heads or --dim"),
        (("x0", "--context-length", "4", "--bias", "some"), "Write, for example, 0.5"),
        (("x0", "--context-length", "4", "--plot", "a.txt"), "must end in .svg, .png, .pdf"),
        (("x0", "--context-length", "4", "--dry-run", "--retry", "failed"), "Leave one of them out"),
        (("x0", "--context-length", "4", "--rate", "-1"), "Choose, for example, 0.001"),
        (("&".join(f"x{i}" for i in range(9)), "--context-length", "200", "--network", "ideal"), "Shorten the context"),
        (("x0", "--context-length", "4", "--network", "mine.py:wide"), "of shape () or (1,)"),
        (("x0", "--context-length", "4", "--network", "mine.py:gone"), "the file has no 'gone'"),
        (("x0", "--context-length", "4", "--network", "other.py:build"), "there is no file other.py"),
        (("x0", "--context-length", "4", "--network", "mine.py:three"), "is of type int: it must be a function"),
        (("x0", "--context-length", "4", "--network", "mine.py:lonely"), "must accept lonely(key, context_length)"),
        (("x0", "--context-length", "4", "--network", "mine.py:forgetful"), "returns a NoneType"),
        (("x0", "--context-length", "4", "--network", "mine.py:weightless"), "there is nothing to train"),
        (("x0", "--context-length", "4", "--network", "mine.py:infinite"), "Correct its initialization"),
        (("mine.py:three", "--context-length", "4"), "is of type int: it must be a function"),
        (("mine.py:lonely", "--context-length", "4"), "Give it these two arguments"),
        (("mine.py:numbers", "--context-length", "4"), "Use --error to say which mean squared error counts as success"),
        (("x0", "--context-length", "4", "--error", "0.1"), "an expression has labels 0 and 1"),
        (("mine.py:numbers", "--context-length", "4", "--error", "0.1", "--noise", "0.1"), "Leave them out"),
        (("mine.py:build", "--context-length", "4"), "Return a task"),
        (("mine.py:task", "--context-length", "4", "--bias", "0.3"), "Leave these options out"),
    ],
)
def test_bad_questions_get_a_message(mine, refused, arguments, advice):
    assert advice in " ".join(refused("learn", *arguments).split())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("x0", "--context-length", "4", "--network", "mine.py:broken"), "RuntimeError: my own mistake"),
        (("x0", "--context-length", "4", "--network", "mine.py:late_with_weights"), "KeyError: 'inside the call'"),
        (("mine.py:raises", "--context-length", "4"), "KeyError: 'not there'"),
    ],
)
def test_ones_own_mistakes_are_shown_as_python_shows_them(mine, call, arguments, line):
    told = call("learn", *arguments, status=1).stderr
    assert line in told
    assert 'mine.py", line' in told
    assert "genscope/questions" not in told
