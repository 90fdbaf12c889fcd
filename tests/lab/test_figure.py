"""Figures are declarations: they travel as plain JSON and come back equal."""

import json

import numpy as np
import pytest

from genscope.lab.plans.figure import (
    LAWS,
    Crossing,
    Curves,
    Figure,
    Group,
    Heatmap,
    Level,
    Line,
    Mean,
    Median,
    Panel,
    Published,
    Reference,
    Scatter,
    Smallest,
    Success,
)
from genscope.lab.plans.study import Study
from genscope.lab.statistics import scaling

SAID = {"title": "A title", "caption": "What one sees.", "source": "edelman2022, Figure 2"}
FIGURES = [
    Line(
        "context_length",
        Crossing("sample_size", "solved", 0.9),
        "preset",
        log_x=True,
        laws=["log", "power"],
        references=[Reference("ideal", [1, 2], [3.5, 4.0])],
        published=[Published(300, 70, "about 70")],
        labels={"context_length": "context length T"},
        where={"preset": ["tuned", "minGPT"], "solved": True},
        **SAID,
    ),
    Line("degree", Mean("gap"), **SAID),
    Line("degree", Median("samples", reached="reached"), log_y=True, **SAID),
    Line("degree", Smallest("sample_size", "solved"), **SAID),
    Success(Crossing("sample_size", "solved"), panel="context_length", log_x=True, **SAID),
    Curves("step", ["training", "validation"], "accuracy", facet="sample_size", levels=[Level(0.5, "chance")], **SAID),
    Curves("step", ["loss"], "loss (nats)", by="preset", every=10, **SAID),
    Heatmap([Panel("best", "best head")], "example", "position", seed=3, marked="support", **SAID),
    Scatter("degree", "gap", "sparsity", sem="gap_sem", **SAID),
]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: type(figure).__name__)
def test_a_figure_survives_json(figure: Figure):
    text = json.dumps(figure.manifest(), allow_nan=False)
    assert Figure.from_manifest(json.loads(text)) == figure


def test_a_column_may_have_any_name():
    """The word that marks a type cannot be confused with an axis or a value."""
    figure = Line("kind", Mean("type"), where={"type": "and", "kind": ["x"]}, labels={"kind": "kind"}, **SAID)
    assert Figure.from_manifest(figure.manifest()) == figure


def test_numpy_numbers_become_plain_ones():
    curve = Reference("bound", [1, 2], list(np.linspace(0, 1, 2)))
    assert curve == Reference("bound", (1, 2), (0.0, 1.0))
    assert type(curve.y[0]) is float


def test_labels_fall_back_to_the_name_in_words():
    figure = FIGURES[0]
    assert figure.label("context_length") == "context length T"
    assert figure.label("sample_size") == "sample size"


def test_figures_and_panels_share_what_their_study_says_and_keep_their_own():
    own = Line("size", Mean("gap"), title="own", source="a lemma", labels={"gap": "own words"})
    plain = Line("size", Mean("gap"), title="plain")
    figures = [own, plain, Group(title="both", panels=[own, plain])]
    labels = {"gap": "gap", "size": "size m"}
    made = Study("s", "t", "a theorem", trial=dict, points=[], figures=figures, labels=labels).figures
    first, second, group = made
    assert isinstance(group, Group)
    for one, other in [(first, second), group.panels]:
        assert (one.source, one.label("gap"), one.label("size")) == ("a lemma", "own words", "size m")
        assert (other.source, other.label("gap")) == ("a theorem", "gap")


def test_a_curve_needs_as_many_x_as_y():
    with pytest.raises(ValueError, match=r"got 2 values of x and 1 of y.*Compute y at every x"):
        Reference("bound", [1, 2], [1])


def test_a_line_needs_a_reduction():
    line = object.__new__(Line)  # past the type checker of the tests, which users do not have
    line.__dict__.update(FIGURES[1].__dict__, y="gap")
    with pytest.raises(ValueError, match=r"got y='gap'.*Write y=Mean\('value'\)"):
        line.__post_init__()


@pytest.mark.parametrize(("y", "laws"), [(Mean("gap"), ["log"]), (Crossing("m", "solved"), ["log", "cubic"])])
def test_laws_are_known_ones_for_thresholds(y, laws):
    with pytest.raises(ValueError, match=r"log, power, linear can be fitted, and only to thresholds. Choose"):
        Line("length", y, laws=laws, **SAID)


def test_laws_are_those_that_can_be_fitted():
    assert set(LAWS) == set(scaling.FORMS)


@pytest.mark.parametrize(("y", "by"), [("loss", None), ([], None), (["a", "b"], "preset")])
def test_curves_have_one_meaning_of_colour(y, by):
    with pytest.raises(ValueError, match="color shows either several values, or one value along an axis"):
        Curves("step", y, "loss", by=by, **SAID)


def test_infinities_are_refused():
    figure = Line("x", Mean("y"), published=[Published(1, float("inf"), "beyond")], **SAID)
    with pytest.raises(ValueError, match=r"holds inf.*Leave the point out"):
        figure.manifest()


@pytest.mark.parametrize(
    "change", [{"$type": "Hologram"}, {"$type": "Mean"}, {"depth": 3}, {"y": {"$type": "Mode", "value": "gap"}}]
)
def test_a_figure_of_a_later_version_is_refused_with_advice(change):
    with pytest.raises(ValueError, match=r"this version of genscope knows Line, Success, .* or a newer one"):
        Figure.from_manifest(FIGURES[1].manifest() | change)
