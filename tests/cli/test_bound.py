"""`genscope bound`: what it prints, draws and refuses."""

import json
import math
import subprocess
import sys

import pytest

from genscope import bounds
from genscope.bounds import split
from tests.bounds.cases import CASES

LINEAR = ["--weight-norm", 1, "--input-norm", 1, "--epsilon", 0.1, "--points", 1000]


def flags(arguments):
    return [word for name, value in arguments.items() for word in (f"--{name.replace('_', '-')}", value)]


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Few splits of an accuracy: numbers are compared with those of the functions, not with the best."""
    monkeypatch.setattr(split, "_EFFORT", 16)


@pytest.fixture
def bound(call):
    def bound(*arguments, status=0):
        return call("bound", *arguments, status=status)

    return bound


def test_the_printed_object(bound):
    facts = json.loads(bound("linear-cover", *LINEAR, "--json").stdout)
    assert list(facts) == ["name", "value", "kind", "explicit", "terms", "vacuous", "source"]
    assert facts["value"] == pytest.approx(398.8346, rel=1e-6)
    assert facts | {"explicit": True, "vacuous": None, "kind": "analytic", "name": "linear-cover"} == facts


@pytest.mark.parametrize("name", [name for name in bounds.ALL if name in CASES])
def test_every_bound_says_what_its_function_says(name, bound):
    facts = json.loads(bound(name, *flags(CASES[name]), "--json").stdout)
    expected = bounds.ALL[name](**CASES[name])
    assert facts == json.loads(json.dumps(expected.facts()))
    text = bound(name, *flags(CASES[name])).stdout
    assert "Explicit: every constant is proved." in text
    assert all(term in text for term in expected.terms)


def test_order_forms_and_options_with_their_meaning(bound):
    head = flags(CASES["head"])
    order = json.loads(bound("head", *head, "--form", "order", "--json").stdout)
    assert order["value"] == pytest.approx(6764.118, rel=1e-6)
    assert order["explicit"] is False
    assert "Order only: the constant is not known." in bound("head", *head, "--form", "order").stdout
    fixed = json.loads(bound("head", *head, "--fixed-context", "--query-key-spectral", 1, "--json").stdout)
    refine = bounds.Refine(fixed_context=True, query_key_spectral=1.0)
    assert fixed["value"] == bounds.head(**CASES["head"], refine=refine).value
    paper = json.loads(bound("head", *head, "--softmax-constant", 2, "--json").stdout)
    assert paper["value"] == bounds.head(**CASES["head"], softmax_constant=2.0).value


def test_vacuous_is_said(bound):
    vague = ["--capacity", 1, "--range", 1, "--samples", 100]
    assert json.loads(bound("rademacher", *vague, "--json").stdout)["vacuous"] is True
    assert "Vacuous: the trivial bound is 1." in bound("rademacher", *vague).stdout
    assert "Informative" in bound("rademacher", *vague[:-1], 10**6).stdout


def test_a_number_beyond_all_floats_is_null(bound):
    huge = ["--weight-norm", 1e300, "--input-norm", 1, "--epsilon", 1e-300, "--points", 1e100]
    assert json.loads(bound("linear-cover", *huge, "--json").stdout)["value"] is None
    assert "inf" in bound("linear-cover", *huge).stdout


def test_curves(bound, directory):
    vary = [*LINEAR[:-2], "--vary", "points=100:1000000"]
    curve = json.loads(bound("linear-cover", *vary, "--json").stdout)
    assert curve["vary"] == "points"
    rows = curve["curve"]
    assert (rows[0]["points"], rows[-1]["points"]) == (100, 10**6)
    values = [row["value"] for row in rows]
    assert values == sorted(values)
    assert len(values) == 25
    expected = bounds.linear_cover(weight_norm=1, input_norm=1, epsilon=0.1, points=10**6).value
    assert values[-1] == expected
    text = bound("linear-cover", *vary).stdout
    assert "1,000,000" in text
    assert "linear-cover: Log covering number of linear functions of bounded norm (after Zhang 2002)" in text
    assert "Explicit" in text
    said = bound("linear-cover", *vary, "--plot", "curve.svg").stdout
    assert said == "curve.svg: linear-cover along points, 25 values\n"
    assert "linear-cover" in (directory / "curve.svg").read_text()
    bound("rademacher", "--capacity", 5, "--range", 1, "--vary", "samples=10:1e8", "--plot", "curve.png")
    assert (directory / "curve.png").read_bytes().startswith(b"\x89PNG")
    few = json.loads(bound("lower", "--context-length", 9, "--vary", "support-size=1:5", "--json").stdout)["curve"]
    assert [row["support_size"] for row in few] == [1, 2, 3, 4, 5]
    assert few[0]["vacuous"] is False


def test_an_axis_from_zero_goes_in_equal_steps(bound):
    curve = json.loads(bound("rademacher", *flags(CASES["rademacher"]), "--vary", "capacity=0:24", "--json").stdout)
    assert [row["capacity"] for row in curve["curve"]] == pytest.approx(range(25))


def test_help_has_options_meanings_and_theorem(bound):
    text = " ".join(bound("head", "--help").stdout.replace("│", " ").split())
    assert "--query-key-21" in text
    assert "bound of the spectral norm of W_V" in text
    assert "edelman2022, Corollary 4.5" in text
    assert "$" not in text
    assert "python -m pydoc genscope.bounds.head" in text
    listed = bound("--help").stdout
    assert "Example: genscope bound linear-cover" in listed
    assert all(name in listed for name in bounds.ALL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["linear-cover", *LINEAR, "--outputs", 3], "got --outputs 3: its options are --weight-norm, --input-norm"),
        (["linear-cover", *LINEAR[2:]], "got no value for --weight-norm (norm bound of the weights)"),
        (["linear-cover", *LINEAR[:-1], 0], "got --points 0:"),
        (["linear-cover", *LINEAR[:-1], "nan"], "Change --points"),
        (["linear-cover", *LINEAR[:-1], "many"], "'--points': it must be a number"),
        (["linear-cover", *LINEAR, "--vary", "outputs=1:9"], "the options that can vary are weight-norm, input-norm"),
        (["linear-cover", *LINEAR, "--vary", "points=9:1"], "Write --vary points=FROM:TO"),
        (["linear-cover", *LINEAR, "--vary", "points"], "Write --vary points=FROM:TO"),
        (["linear-cover", *LINEAR, "--vary", "points=1:2:3"], "Write --vary points=FROM:TO"),
        (["linear-cover", *LINEAR, "--vary", "points=1:inf"], "Write --vary points=FROM:TO"),
        (["linear-cover", *LINEAR, "--vary", "points=0.5:9"], "points=0.5"),
        (["linear-cover", *LINEAR, "--plot", "x.svg"], "Add --vary NAME=FROM:TO"),
        (["linear-cover", *LINEAR, "--vary", "points=1:9", "--plot", "x.doc"], "must end in .svg, .png, .pdf"),
        (["linear-cover", *LINEAR, "--vary", "points=1:9", "--plot", "no/x.svg"], "there is no directory no"),
        (["lower", "--context-length", 9, "--support-size", 3, "--form", "order"], "is not one of 'explicit'"),
        (["head", *flags(CASES["head"]), "--query-key-spectral", 1], "without fixed_context"),
        (["linear-cover", *LINEAR, "--form", "exact"], "explicit"),
        (["nothing"], "the bounds are linear-cover"),
    ],
)
def test_refusals(arguments, message, bound):
    result = bound(*arguments, status=2)
    assert result.stdout == ""
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.stderr


def test_no_jax_and_no_array_is_loaded():
    code = (
        "import json, sys; from genscope.cli import bound\n"
        "assert not {'numpy', 'scipy', 'polars', 'matplotlib'} & set(sys.modules), 'slow start'\n"
        "for request in json.loads(sys.argv[1]):\n"
        "    try: bound.app(request)\n"
        "    except SystemExit as end: assert not end.code, end.code\n"
        "    assert 'jax' not in sys.modules, 'JAX was loaded'"
    )
    plain = ["linear-cover", *map(str, LINEAR), "--json"]
    subprocess.run([sys.executable, "-c", code, json.dumps([["--help"], plain])], check=True, capture_output=True)


def test_tables_show_enough_digits(bound):
    assert f"{398.8346082524098:.7g}" in bound("linear-cover", *LINEAR).stdout
    told = bound("volumetric", *flags(CASES["volumetric"])).stdout
    assert math.isfinite(float(next(line.split()[1] for line in told.splitlines() if line.startswith(" cover "))))
