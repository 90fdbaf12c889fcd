import json
import math
from typing import get_args

import jax
import numpy as np
import pytest

from genscope.cli._construct_tokens import MODES, Link
from genscope.constructions import Verification, retrieval
from genscope.models.file import load
from genscope.tasks.links import LINKS
from tests.cli.program import invoke

KEYS = ["construction", "tokens", "dimension", "sparsity", "exact", "max_error", "promised_error", "inputs_checked"]
KEYS += ["norms", "source"]
SIZES = ("--tokens", "6", "--dimension", "3", "--sparsity", "2", "--prompts", "4")


def call(*arguments, status=0):
    result = invoke("construct", *arguments)
    assert result.exit_code == status, result.output
    return result


def test_heads_are_built_within_the_promised_error():
    facts = json.loads(call("token-retrieval", *SIZES, "--error", "0.001", "--json").stdout)
    assert list(facts)[: len(KEYS)] == KEYS
    assert (facts["construction"], facts["tokens"], facts["dimension"], facts["sparsity"]) == (
        "token-retrieval",
        6,
        3,
        2,
    )
    assert not facts["exact"]
    assert 0 < facts["max_error"] <= facts["promised_error"] == pytest.approx(0.001)
    assert facts["inputs_checked"] == 4 + 2 * 2 * 6
    assert facts["norms"] == pytest.approx(facts["promised_norms"])


def test_the_recurrent_network_is_exact_and_told_in_words():
    facts = json.loads(call("recurrent-retrieval", *SIZES, "--json").stdout)
    assert list(facts)[: len(KEYS)] == KEYS
    assert facts["exact"]
    assert facts["promised_error"] == 0
    told = call("recurrent-retrieval", *SIZES).stdout
    assert "exact: largest error" in told
    assert "W_2" in told


@pytest.mark.parametrize("norm", ["3", "12"])
@pytest.mark.parametrize("mode", MODES)
def test_the_promise_is_that_of_the_link_and_the_norm(mode, norm):
    facts = json.loads(
        call(mode, *SIZES, "--link", "hermite2", "--token-norm", norm, "--error", "0.001", "--json").stdout
    )
    assert (facts["link"], facts["token_norm"]) == ("hermite2", float(norm))
    assert not facts["exact"]
    assert 4e-4 < facts["max_error"] <= facts["promised_error"] <= 0.001 * (1 + 1e-12)
    share = 0.5 if mode == "token-retrieval" else 1.0
    assert math.sqrt(facts["constants"]["epsilon_2nn"]) == pytest.approx(share * 0.001, rel=0.1)
    assert facts["norms"] == pytest.approx(facts["promised_norms"])


@pytest.mark.parametrize("mode", MODES)
def test_every_link_is_offered(mode):
    assert list(get_args(Link)) == list(LINKS)
    for link in ("relu", "norm2"):
        facts = json.loads(call(mode, *SIZES, "--link", link, "--token-norm", "3", "--json").stdout)
        assert facts["link"] == link
        assert (facts["constants"]["epsilon_2nn"] == 0) == (link == "relu")
        assert facts["max_error"] <= max(facts["promised_error"], 1e-12)
    assert "link norm2" in call(mode, *SIZES, "--link", "norm2", "--token-norm", "3").stdout


@pytest.mark.parametrize("mode", MODES)
def test_a_model_is_written_and_read_back(mode, directory):
    facts = json.loads(call(mode, *SIZES, "--out", "model.safetensors", "--json").stdout)
    model = load(directory / facts["file"])
    size = math.hypot(*(np.linalg.norm(np.asarray(leaf)) for leaf in jax.tree.leaves(model)))
    assert size == pytest.approx(facts["norms"]["all"], rel=1e-12)
    assert all(leaf.dtype == "float64" for leaf in jax.tree.leaves(model))


def test_weights_that_do_not_verify_end_with_status_1_and_are_not_written(monkeypatch, directory):
    bad = Verification(max_error=0.5, inputs_checked=4, exhaustive=False, exact=False, kept=False)
    monkeypatch.setattr(retrieval, "verify_retrieval", lambda *arguments, **options: bad)
    result = call("token-retrieval", *SIZES, "--out", "model.safetensors", "--json", status=1)
    assert json.loads(result.stdout)["file"] is None
    assert "larger --error" in result.stderr
    assert not list(directory.iterdir())


@pytest.mark.parametrize(
    ("mode", "options", "advice"),
    [
        ("token-retrieval", ["--tokens", "0"], "between 1 and 1024"),
        ("token-retrieval", ["--sparsity", "17"], "between 1 and 16"),
        ("token-retrieval", ["--error", "0"], "Change "),
        ("token-retrieval", ["--token-norm", "nan"], "Change "),
        ("token-retrieval", ["--link", "hermite2", "--token-norm", "1e9"], "Allow a larger error"),
        ("token-retrieval", ["--sparsity", "16", "--encoding-dimension", "1024"], "shorter encodings"),
        ("recurrent-retrieval", ["--link", "cubic"], "hermite2"),
        ("recurrent-retrieval", ["--error", "-1"], "Change "),
        ("recurrent-retrieval", ["--prompts", "0"], "Correct it"),
        ("recurrent-retrieval", ["--seed", "-1"], "Correct it"),
        ("recurrent-retrieval", ["--encoding-dimension", "2"], "Increase the dimension"),
    ],
)
def test_bad_requests_are_refused(mode, options, advice):
    result = call(mode, *SIZES, *options, status=2)
    assert result.stdout == ""
    assert advice in result.stderr


def test_expressions_are_read_as_before():
    facts = json.loads(call("x1 & x3", "--context-length", "6", "--json").stdout)
    assert facts["support"] == [1, 3]
    first = json.loads(call("--context-length", "6", "x1 & x3", "--json").stdout)
    named = json.loads(call("expression", "x1 & x3", "--context-length", "6", "--json").stdout)
    assert facts == first == named
    told = call("--help").stdout
    assert "--context-length" in told
    assert "Other modes, each with --help: token-retrieval, recurrent-retrieval, fourier." in told
    assert "--tokens" in call("token-retrieval", "--help").stdout
    assert "Missing" in call(status=2).stderr
