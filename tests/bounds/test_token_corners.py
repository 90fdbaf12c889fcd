"""What holds of every bound of token regression: its terms, its words, its corners, its place on the command line."""

import inspect
import json
import math
import random

import pytest

from genscope import bounds
from genscope.bounds._parameters import Number, parameters
from tests.cli.program import invoke

TRANSFORMER = {"heads": 2, "embedding": 30, "width": 10, "readout_norm": 1.0, "hidden_norm": 1.0, "query_key_21": 2.0}
TRANSFORMER |= {"token_norm": 3.0}
RECURRENT = {"tokens": 100, "transition_parameters": 1000, "output_parameters": 2000, "transition_depth": 3}
RECURRENT |= {"output_depth": 4, "parameter_norm": 100.0, "state_radius": 10.0, "token_norm": 12.0}

ENDS = {"samples": 10**14, "tokens": 16, "dimension": 10, "sparsity": 1, "width": 2, "encoding_dimension": 64}

CASES = {
    "token-regression-cover": TRANSFORMER | {"epsilon": 0.1, "points": 10**5},
    "token-regression-risk": TRANSFORMER | {"samples": 10**10, "tokens": 100, "truncation": 4.0},
    "excess-risk": {"samples": 10**6, "tokens": 100, "dimension": 10, "sparsity": 2, "width": 4, "query_key_21": 1.0},
    "truncation-error": {"truncation": 1e4, "tokens": 16, "dimension": 10, "sparsity": 1, "heads": 1}
    | {"readout_norm": 1.0, "hidden_norm": 1.0},
    "erm-risk": ENDS,
    "heads-lower": {"heads": 2, "sparsity": 6, "dimension": 12},
    "ffn-lower": {"samples": 10, "tokens": 6, "dimension": 4},
    "oracle-lower": {"samples": 10, "sparsity": 2, "dimension": 20},
    "rnn-cover": RECURRENT | {"epsilon": 0.1},
    "rnn-risk": RECURRENT | {"samples": 10**10},
    "rnn-truncation-error": {"truncation": 1e4, "dimension": 4, "sparsity": 1, "output_depth": 2}
    | {"parameter_norm": 2.0, "state_radius": 1.0},
    "rnn-erm-risk": ENDS,
    "rnn-width-lower": {"tokens": 1000, "risk": 0.05, "lipschitz": 2.0, "output_spectral": 1.0},
    "rnn-norm-lower": {"tokens": 1000, "risk": 0.05, "lipschitz": 2.0},
    "rnn-min-norm-lower": {"tokens": 10**12, "risk": 0.05, "output_depth": 2},
    "packing": {"dimension": 8, "epsilon": 1.0},
    "packing-l1": {"dimension": 8, "epsilon": 1.0},
}
EXTREMES = {False: [0.0, 1e-300, 1e-3, 1e3, 1e300], True: [1, 2, 10**15, 10**100, 10**400]}
MILD = {False: [0.0, 1e-3, 1e3], True: [1, 2, 10**15]}
INTEGRALS = {
    "token-regression-risk",
    "rnn-risk",
    "erm-risk",
    "rnn-erm-risk",
}  # whose grids span the range: extremes take long


@pytest.mark.parametrize("name", CASES)
def test_a_bound_says_what_it_is(name):
    bound = bounds.ALL[name](**CASES[name])
    assert bound.name == name
    assert bound.source.startswith("mousavi2025, ")
    assert bound.value == sum(bound.terms.values()) > 0
    assert bound.explicit == (name != "excess-risk")
    assert not bound.vacuous
    assert all(each.about.meaning for each in parameters(bounds.ALL[name]).values())
    assert inspect.getdoc(bounds.ALL[name]).splitlines()[0].endswith((".", "$."))


@pytest.mark.parametrize("name", CASES)
def test_corners_give_a_number(name):
    abouts = {word: each.about for word, each in parameters(bounds.ALL[name]).items()}
    whole = {word: about.whole for word, about in abouts.items() if isinstance(about, Number)}
    numeric = list(whole)
    choose, extremes = random.Random(name), MILD if name in INTEGRALS else EXTREMES
    tried = 0
    for _ in range(10 if name in INTEGRALS else 40):
        moved = choose.sample(numeric, min(choose.choice([1, 2, len(numeric)]), len(numeric)))
        given = CASES[name] | {word: choose.choice(extremes[whole[word]]) for word in moved}
        try:
            bound = bounds.ALL[name](**given)
        except ValueError as refusal:
            assert " got " in str(refusal)  # noqa: PT017
            continue
        tried += 1
        assert all(term >= 0 for term in bound.terms.values()), given  # which NaN is not
    assert tried


@pytest.mark.parametrize("name", sorted(CASES.keys() - INTEGRALS))
def test_the_command_line_knows_it(name):
    options = [text for word, value in CASES[name].items() for text in (f"--{word.replace('_', '-')}", value)]
    result = invoke("bound", name, *options, "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert list(facts) == ["name", "value", "kind", "explicit", "terms", "vacuous", "source"]
    assert facts["value"] == bounds.ALL[name](**CASES[name]).value


def test_forms_on_the_command_line():
    heads = ("bound", "heads-lower", "--heads", 2, "--sparsity", 6, "--dimension", 12, "--json")
    values = [json.loads(invoke(*heads, "--form", form).stdout)["value"] for form in ("printed", "sharp", "block")]
    assert values == pytest.approx([1 / 2, 5 / 9, 2 / 3])
    refused = invoke(*heads, "--form", "order")
    assert refused.exit_code == 2
    assert "sharp" in refused.stderr
    printed = invoke("bound", "packing", "--dimension", 8, "--epsilon", 1, "--form", "order")
    assert printed.exit_code == 2
    assert "is not one of 'explicit'" in printed.stderr


def test_golden_packing_is_exact():
    assert bounds.packing(dimension=8, epsilon=1.0).value == pytest.approx(8 * math.log(3), rel=1e-15)


def test_the_entropy_integral_of_one_function_ends():
    assert bounds.dudley(lambda epsilon: 0.0, range=1.0, samples=10).value < 1e-10
    nothing = CASES["token-regression-risk"] | {"readout_norm": 0.0}
    assert bounds.token_regression_risk(**nothing).terms["complexity"] < 1e-10
