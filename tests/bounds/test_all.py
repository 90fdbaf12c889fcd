"""What holds of every bound: its terms, its words, its corners; and the golden numbers."""

import inspect
import math
import random
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from genscope import bounds
from genscope.bounds._parameters import Number, apply, parameters
from tests.bounds.cases import CASES

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "edelman2022_bounds.toml").read_text())["value"]
# Corners are tried for these; a bound of another paper has its own tests.
OURS = [name for name in bounds.ALL if name in CASES]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: f"{golden['bound']}: {golden['section']}")
def test_golden_numbers(golden):
    value = bounds.ALL[golden["bound"]](**golden["arguments"]).value
    assert value == pytest.approx(golden["expected"], rel=golden["tolerance"])
    if golden.get("at_most"):
        assert value <= golden["expected"]


@pytest.mark.parametrize("name", OURS)
def test_a_bound_says_what_it_is(name):
    bound = bounds.ALL[name](**CASES[name])
    assert bound.name == name
    assert bound.explicit
    assert bound.kind == "analytic"
    assert bound.source
    assert bound.value == sum(bound.terms.values()) > 0
    covers = name.endswith("cover") or name in ("head", "heads", "deep", "volumetric", "volumetric-head")
    assert (bound.trivial is None) == covers
    assert bound.vacuous is (None if covers else False)
    assert list(bound.facts()) == ["name", "value", "kind", "explicit", "terms", "vacuous", "source"]


@pytest.mark.parametrize("name", OURS)
def test_every_parameter_has_a_meaning(name):
    function = bounds.ALL[name]
    known = parameters(function)
    assert all(each.about.meaning for each in known.values())
    first = inspect.getdoc(function).splitlines()[0]
    assert first.endswith(".")
    ungrouped = [each for each in inspect.signature(function).parameters if each != "refine"]
    assert set(ungrouped) <= set(known)


EXTREMES = {False: [0.0, 1e-300, 1e-3, 1e3, 1e300], True: [1, 2, 10**15, 10**100, 10**400]}


@pytest.mark.parametrize("form", ["explicit", "order"])
@pytest.mark.parametrize("name", OURS)
def test_corners_give_a_number(name, form, coarse):
    """Arguments at the ends of their ranges: no error but a refusal with words, no NaN, nothing negative."""
    function, known = bounds.ALL[name], parameters(bounds.ALL[name])
    if form == "order" and "form" not in known:
        return
    abouts = {word: each.about for word, each in known.items() if each.group is None}
    whole = {word: about.whole for word, about in abouts.items() if isinstance(about, Number)}
    numeric = list(whole)
    choose = random.Random(f"{name} {form}")
    tried = 0
    for _ in range(60):
        moved = choose.sample(numeric, min(choose.choice([1, 2, 3, len(numeric)]), len(numeric)))
        given = CASES[name] | {word: choose.choice(EXTREMES[whole[word]]) for word in moved}
        try:
            bound = apply(function, given | ({"form": form} if "form" in known else {}))
        except ValueError as refusal:
            assert " got " in str(refusal)  # noqa: PT017
            continue
        tried += 1
        assert not math.isnan(bound.value), given
        assert all(not math.isnan(term) for term in bound.terms.values()), given
        assert bound.value >= 0 or bound.lower, given
    assert tried > 10


def test_everything_extreme_at_once():
    tiny = bounds.head(**CASES["head"] | dict.fromkeys(("value_21", "value_spectral", "query_key_21"), 1e-300))
    assert tiny.value == 0
    huge = bounds.head(**CASES["head"] | dict.fromkeys(("value_21", "value_spectral", "query_key_21"), 1e300))
    assert huge.value == math.inf
    far = bounds.head(**CASES["head"] | {"points": 10**100}).value
    near = bounds.head(**CASES["head"]).value
    assert far / near == pytest.approx(235 / 16, rel=0.1)  # the ratio of the logarithms


def test_bounds_are_arithmetic():
    code = (
        "import sys, genscope.bounds\n"
        "assert not {'jax', 'numpy', 'scipy', 'equinox'} & set(sys.modules), 'more than arithmetic'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_bound_shows_its_value():
    assert repr(bounds.lower(context_length=300, support_size=3)) == (
        "Bound('lower', 22.013, analytic, 'edelman2022, Section 5')"
    )
