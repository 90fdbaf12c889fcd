"""The room Bounds without a browser: every bound, its curve, its command, and what it says of bad values."""

import json
import math
import shlex

import pytest

from genscope import bounds
from genscope.explorer import _bound_curve, bounds_room
from genscope.explorer._bound_asked import LAYERS, first, read
from tests.cli.program import invoke

LOWER = "lower context_length=300 support_size=3"


def card(text):
    return bounds_room.view({"bounds": [text]})["bounds"][0]


def printed(command):
    """What the command of a page prints."""
    program, *arguments = shlex.split(command)
    assert program == "genscope"
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def curve(text, axis, span):
    return bounds_room.curve({"bounds": [text], "axis": axis, "span": span})["lines"][0]


@pytest.mark.parametrize("name", bounds.ALL)
def test_every_bound_has_an_example_whose_command_prints_the_same_number(name):
    found = card(bounds_room.example({"name": name})["bound"])
    assert found["error"] == ""
    facts = printed(found["command"])
    assert facts["value"] == (found["value"] if math.isfinite(found["value"]) else None)
    assert facts["terms"] == {term["name"]: term["value"] for term in found["terms"]}
    assert (facts["vacuous"], facts["explicit"], facts["source"]) == (
        found["vacuous"],
        found["explicit"],
        found["source"],
    )
    assert read(found["word"]) == first(name)  # the address reproduces it
    for each in found["fields"]:
        slider = each["slider"]
        assert slider is None or slider["low"] <= float(each["text"]) <= slider["high"]


def test_the_page_lists_every_bound_once():
    listed = [name for members in bounds_room.page()["listed"].values() for name, _ in members]
    assert sorted(listed) == sorted(bounds.ALL)


def test_sample_size_and_context_length_are_the_axes_of_a_risk():
    axes = bounds_room.example({"name": "token-regression-risk"})["axes"]
    assert [axis["name"] for axis in axes] == ["samples", "tokens"]


def test_a_curve_is_what_its_command_prints():
    answer = bounds_room.curve({"bounds": [LOWER], "axis": "context_length", "span": "3:300000"})
    line = answer["lines"][0]
    assert line["command"] == "genscope bound lower --support-size 3 --vary context_length=3:300000"
    rows = printed(line["command"])["curve"]
    assert [row["context_length"] for row in rows] == line["places"]
    assert [row["value"] for row in rows] == line["values"]
    assert answer["measures"] == ["samples needed"]


def test_the_place_where_a_bound_stops_being_vacuous_is_exact():
    text = "margin log_cover=100 empirical_error=0.01 samples=10000"
    line = curve(text, "samples", "100:1e7")
    (place,) = line["crossings"]
    assert f"stops being vacuous at samples = {place:,.0f}" in line["said"]
    assert line["vacuous"] == [(100.0, place)]
    at = [bounds.margin(log_cover=100, empirical_error=0.01, samples=place - step).vacuous for step in (0, 1)]
    assert at == [False, True]


def test_a_number_that_is_not_whole_is_found_to_six_digits():
    line = curve("rademacher capacity=1 range=1 samples=10000", "capacity", "0.01:1000")
    (place,) = line["crossings"]
    assert "becomes vacuous" in line["said"]
    assert line["vacuous"] == [(place, line["places"][-1])]
    below, above = (bounds.rademacher(capacity=place * f, range=1, samples=10000).vacuous for f in (1 - 1e-6, 1))
    assert (below, above) == (False, True)


@pytest.mark.parametrize(
    ("text", "axis", "span", "said"),
    [
        (
            "generalization rademacher=0.05 samples=10000",
            "samples",
            "100:1e7",
            "Nowhere vacuous on this range: the trivial",
        ),
        (
            "parity-chain context_length=64 samples=1e9",
            "samples",
            "1e7:1e12",
            "Vacuous on this range: the trivial bound",
        ),
        ("volumetric parameters=10 radius=1 epsilon=0.1", "epsilon", "0.01:1", "never called vacuous"),
    ],
)
def test_what_is_said_where_nothing_changes(text, axis, span, said):
    assert said in curve(text, axis, span)["said"]


def test_terms_of_a_curve_add_up_to_its_values():
    line = curve("pac-bayes norm_squared=100 trace=10 constant=0.1 samples=10000", "samples", "100:1e7")
    for total, *terms in zip(line["values"], *line["terms"].values(), strict=True):
        assert total == pytest.approx(sum(term for term in terms if term is not None))
    assert line["mark"] == "estimate"
    assert "not a certificate" in line["proved"]
    order = curve("linear-cover weight_norm=1 input_norm=1 epsilon=0.1 points=100 form=order", "points", "10:1000")
    assert (order["mark"], order["proved"]) == ("order only", "Order only: the constant is not known.")


def test_bounds_lie_over_each_other_and_say_when_they_are_of_different_kinds():
    answer = bounds_room.curve(
        {"bounds": [LOWER, "vc-cover vc_dimension=3 points=100"], "axis": "points", "span": "10:1000"}
    )
    flat, sloping = answer["lines"]
    assert (flat["flat"], sloping["flat"]) == (True, False)
    assert flat["values"][0] == flat["values"][1]
    assert flat["command"] == ""
    assert answer["measures"] == ["samples needed", "log covering number (nats)"]


def test_a_curve_ends_where_its_arguments_do_not_fit_together():
    line = curve(LOWER, "support_size", "1:3000")
    assert max(line["places"]) <= 300
    assert "Choose a smaller support" in line["note"]


def test_the_message_of_a_bad_value_stands_beside_its_field():
    found = card("lower context_length=-3 support_size=three confidence=0.9")
    errors = {each["name"]: each["error"] for each in found["fields"]}
    assert errors["confidence"] == ""
    assert "a whole number at least 1" in errors["context_length"]
    assert "Write a number" in errors["support_size"]
    assert found["error"] == "Correct the marked arguments."
    assert "value" not in found
    assert "Correct the arguments first" in curve("lower context_length=-3", "support_size", "1:9")["error"]


def test_a_missing_value_and_arguments_that_do_not_fit():
    found = card("lower support_size=3")
    assert "context_length is missing" in found["fields"][0]["error"]
    assert "Choose a smaller support" in card("lower context_length=3 support_size=30")["error"]


def test_a_switch_and_a_choice():
    text = "linear-cover weight_norm=1 input_norm=1 epsilon=0.1 points=100"
    for extra, flag in (
        ("internal=yes", "--internal"),
        ("form=order", "--form order"),
        ("internal=no", "--points 100"),
    ):
        found = card(f"{text} {extra}")
        assert found["command"].endswith(flag)
        assert printed(found["command"])["value"] == found["value"]
    wrong = card(f"{text} internal=perhaps form=loose")
    errors = {each["name"]: each["error"] for each in wrong["fields"]}
    assert "no or yes" in errors["internal"]
    assert "Choose one of" in errors["form"]


def test_infinity_is_no_mistake():
    found = card("deep value_21=1e300 value_spectral=1e300 query_key_21=1 query_key_spectral=1 output_21=1 "
                 "output_spectral=1 readout_norm=1 layers=2 epsilon=0.1 width=2 dimension=2 points=10")  # fmt: skip
    assert found["value"] == math.inf


@pytest.mark.parametrize(
    ("ask", "advice"),
    [
        ({}, "Choose at least one"),
        ({"bounds": []}, "Choose at least one"),
        ({"bounds": [LOWER] * 5}, "at most 4"),
        ({"bounds": [3]}, "must be a text"),
        ({"bounds": ["x" * 2000]}, "Shorten it"),
        ({"bounds": ["nothing"]}, "the bounds are linear-cover"),
        ({"bounds": [""]}, "Choose one of them"),
        ({"bounds": ["lower colour=3"]}, "its arguments are context_length"),
        ({"bounds": ["lower support_size=" + "3" * 50]}, "at most 40 characters"),
    ],
)
def test_questions_that_make_no_sense(ask, advice):
    with pytest.raises(ValueError, match=advice):
        bounds_room.view(ask)


@pytest.mark.parametrize(
    ("axis", "span", "advice"),
    [
        ("colour", "1:2", "one of context_length"),
        ("context_length", "2:1", "Write it like 100:1000000"),
        ("context_length", "1:inf", "Write it like"),
        ("context_length", "many", "Write it like"),
        ("context_length", "-1:5", "Write it like"),
    ],
)
def test_axes_that_make_no_sense(axis, span, advice):
    with pytest.raises(ValueError, match=advice):
        bounds_room.curve({"bounds": [LOWER], "axis": axis, "span": span})


def test_a_page_does_not_compute_for_ever(monkeypatch):
    deep = first("deep").word().replace("layers=2", f"layers={LAYERS + 1}")
    (error,) = [each["error"] for each in card(deep)["fields"] if each["name"] == "layers"]
    assert f"at most {LAYERS} layers" in error
    monkeypatch.setattr(_bound_curve, "SECONDS", 0.0)
    with pytest.raises(TimeoutError, match="let the command line print it"):
        curve(LOWER, "context_length", "3:300")
