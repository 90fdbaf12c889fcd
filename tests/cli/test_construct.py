import json

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genscope.constructions import sufficient_dimension
from genscope.fourier import parse
from genscope.models.file import load
from genscope.precision import float64
from tests.cli.program import invoke

EXPRESSION = "x3 & ~x17 | maj(x1,x2,x40)"
KEYS = ["expression", "context_length", "support", "encoding", "exact", "max_error", "inputs_checked", "exhaustive"]
KEYS += ["gamma", "norms", "dimension", "source"]
NORMS = ["W_Q", "W_K", "W_V", "W_C", "W_1", "W_2", "w"]


@pytest.mark.parametrize("encoding", ["positional", "bag", "random", "random-bag"])
def test_an_expression_becomes_a_model(call_json, directory, encoding):
    options = ("--context-length", 64, "--encoding", encoding, "--out", "model.safetensors")
    facts = call_json("construct", EXPRESSION, *options)
    assert list(facts)[: len(KEYS)] == KEYS
    assert list(facts["norms"]) == NORMS
    assert facts["expression"] == EXPRESSION
    assert facts["support"] == [1, 2, 3, 17, 40]
    assert facts["exact"]
    assert facts["max_error"] < 1e-12
    assert not facts["exhaustive"]
    assert facts["dimension"] == {"positional": 67, "bag": 65}.get(
        encoding, sufficient_dimension(support_size=5, context_length=64)
    )
    for name, promised in facts["promised_norms"].items():
        assert promised is None or facts["norms"][name] <= promised * (1 + 1e-9)
    assert (facts["norms"]["W_2"] is None) == (encoding == "bag")
    model = load(directory / facts["file"])
    bits = np.random.default_rng(0).random((20, 64)) < 0.5
    with float64():
        values = [float(model(jnp.asarray(row))) for row in bits]
    assert values == pytest.approx(parse(EXPRESSION)(bits).astype(float), abs=1e-12)


def test_a_threshold_within_an_error(call, call_json, refused):
    asked = ("construct", "maj(x1,x2,x5)", "--context-length", 12, "--encoding", "random", "--dimension", 96)
    facts = call_json(*asked, "--within", 0.02)
    assert 0 < facts["max_error"] <= facts["promised_error"] <= 0.02 + 1e-12
    assert (facts["exact"], facts["exhaustive"], facts["norms"]["W_1"]) == (False, True, None)
    assert 0 < facts["constants"]["beta"] <= (facts["constants"]["beta_at_most"] or float("inf"))
    told = call(*asked, "--within", 0.02).stdout
    assert f"within {facts['promised_error']:.2g}, as promised" in told
    assert f"coherence {facts['constants']['coherence']:.3g}" in told
    exact = call_json(*asked)
    assert (exact["exact"], exact["promised_error"]) == (True, 0.0)
    assert "Leave the error out" in refused("construct", "x0 ^ x1", "--context-length", 8, "--within", 0.1)
    assert "Try 0.01" in refused(*asked, "--within", 2)


def test_only_variables_that_matter_are_listed(call_json):
    facts = call_json("construct", "x2 & ~x2 | x5", "--context-length", 8)
    assert facts["support"] == [5]
    assert (facts["inputs_checked"], facts["exhaustive"]) == (256, True)
    assert [name for name, norm in facts["norms"].items() if norm is None] == ["W_1", "W_2"]
    assert facts["file"] is None


@pytest.mark.parametrize("encoding", ["positional", "bag", "random"])
@pytest.mark.parametrize("expression", ["0", "x1 | ~x1"])
def test_constants(call_json, encoding, expression):
    facts = call_json("construct", expression, "--context-length", 30, "--encoding", encoding)
    assert facts["support"] == []
    assert facts["exact"]


def test_people_read_a_table(call, directory):
    told = call("construct", "x0 & x4 & x5", "--context-length", 1000, "--smallest-gamma", "--out", "m.safetensors")
    text = " ".join(told.stdout.split())
    assert "depends on x0, x4, x5" in text
    assert "exact: largest error" in text
    assert "O(log(T s))" in text
    assert "smallest that works 8.2" in text
    assert (directory / "m.safetensors").exists()


def test_the_smallest_sharpness_is_found_on_request(call_json):
    facts = call_json("construct", "x0 & ~x1", "--context-length", 9, "--smallest-gamma")
    assert 0 < facts["smallest_gamma"] < facts["gamma"]


def test_weights_that_fail_are_not_written_and_say_what_would_do(call, directory):
    options = ("--context-length", 1000, "--encoding", "random", "--dimension", 10, "--out", "model.safetensors")
    result = call("construct", "x1 & ~x2 | x3", *options, "--json", status=1)
    facts = json.loads(result.stdout)
    assert not facts["exact"]
    assert facts["dimension"] == 10
    assert facts["file"] is None
    assert not list(directory.iterdir())
    assert f"A dimension of {sufficient_dimension(support_size=3, context_length=1000)} would do" in result.stderr


def test_the_seed_draws_the_vectors(call_json):
    options = ("construct", "x0 ^ x1", "--context-length", 30, "--encoding", "random", "--seed")
    first, second, third = (call_json(*options, seed)["gamma"] for seed in (1, 1, 2))
    assert first == second != third


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["x9", "--context-length", 9], "x8"),
        (["x1 &", "--context-length", 9], "^"),
        (["x1", "--context-length", 0], "Correct it."),
        (["x1", "--context-length", 10**7], "Correct it."),
        (["x1", "--context-length", 9, "--seed", -1], "Correct it."),
        (["x1", "--context-length", 9, "--dimension", 20], "choose the encoding 'random'"),
        (["x1", "--context-length", 9, "--encoding", "random", "--dimension", 3], "Increase the dimension"),
        (["parity(" + ",".join(f"x{i}" for i in range(13)) + ")", "--context-length", 20], "fewer variables"),
        (["x1", "--context-length", 9, "--out", "missing/model.safetensors"], "create the directory first"),
    ],
)
def test_requests_that_make_no_sense(refused, arguments, advice):
    assert advice in refused("construct", *arguments)


def test_what_an_unknown_option_says(call):
    call("construct", "x1", "--context-length", 9, "--encoding", "sinusoidal", status=2)
    call("construct", "x1", status=2)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["positional", "bag", "random"])
def test_the_largest_request_takes_seconds(encoding, program):
    """Twelve variables of a hundred thousand, as a process; a minute is for machines that do other things too."""
    expression = " ^ ".join(f"x{i} & x{99_999 - i}" for i in range(6))
    command = ("construct", expression, "--context-length", 100_000, "--encoding", encoding, "--json")
    running = program(*command)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    assert json.loads(out)["exact"]


pieces = st.sampled_from(
    [*"&|~^(),;01é\udc80", "x0", "x1", "x7", "x99999999999", "maj(", "thr(2;", "table(0x6;", "parity(", "or("]
)
numbers = st.one_of(st.integers(-3, 40).map(str), st.sampled_from(["1e3", "9" * 5000, "-0", "nan", "", "٣"]))


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(pieces, max_size=8).map(" ".join),
    numbers,
    st.sampled_from(["positional", "bag", "", "Bag"]),
    st.lists(st.sampled_from(["--dimension=5", "--seed=-1", "--seed=18446744073709551616", "--json", "--out=."])),
)
def test_no_request_ends_in_a_traceback(expression, length, encoding, options):
    result = invoke("construct", f"--context-length={length}", f"--encoding={encoding}", *options, "--", expression)
    assert result.exit_code in (0, 2)
    assert "Traceback" not in result.output


def test_what_fits_is_not_complained_about(refused):
    said = refused("construct", "x0 & x1", "--context-length", "0")
    assert "--context-length 0: --context-length must be between 1 and 1000000. Correct it." in said
    assert "--seed" not in said
    both = refused("construct", "x0 & x1", "--context-length", "0", "--seed", "-1")
    assert "--context-length 0 and --seed -1" in both
    assert "Correct them." in both
