"""Claim C10 on made-up readings: each part can hold, fail and stay undecided."""

import itertools

import polars as pl
import pytest

from genscope.claims.lintilhac2026_figure1 import C10
from genscope.lab.results.reading import Reading


def rows(law, constant="0.1", *, converged=True, degrees=(1, 2, 3), sparsities=(2, 5, 10)):
    return [
        {
            "status": "ok",
            "constant": constant,
            "degree": degree,
            "sparsity": sparsity,
            "converged": converged,
            "semi_analytic": law(degree, sparsity) * scatter if converged else None,
            **dict.fromkeys(("direct", "truncated", "analytic"), 1.0 if converged else None),
            "constant_used": 0.1,
            "dominated": None if constant == "0.1" else True,
        }
        for degree, sparsity, scatter in itertools.product(degrees, sparsities, (0.95, 1.0, 1.05))
    ]


def decisions(records, missing=0):
    frame = pl.DataFrame(records, infer_schema_length=None)
    found = C10.verdict([Reading(frame, (), missing)], budget="standard", seconds=0.0)
    return [part.decision for part in found.parts]


def steep(degree, sparsity):
    return 1e-4 * degree**1.5 * sparsity**1.2


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (steep, ["holds", "holds", "holds"]),
        (lambda k, s: 200 * steep(k, s), ["holds", "holds", "fails"]),
        (lambda k, s: 0.01 * k**0.6 * s**0.05, ["fails", "fails", "holds"]),
        (lambda k, s: 0.01 * k * s, ["undecided", "undecided", "holds"]),
    ],
)
def test_growth_and_vacuity(law, expected):
    assert decisions(rows(law)) == [*expected, "undecided", "undecided", "undecided"]
    assert decisions(rows(law) + rows(steep, "fitted")) == [*expected, "holds", "holds", "holds"]


def test_one_vacuous_class_is_enough():
    worse = rows(lambda k, s: steep(k, s) + 2 * ((k, s) == (3, 10)))
    assert decisions(worse)[2] == "fails"


def test_what_is_missing_withholds_what_would_hold():
    assert decisions(rows(steep), missing=1)[:3] == ["holds", "holds", "undecided"]
    open_ = rows(steep, "fitted") + rows(steep, "fitted", converged=False, degrees=(3,), sparsities=(10,))
    assert decisions(open_)[3:] == ["holds", "holds", "undecided"]
    assert decisions(rows(steep, degrees=(1,), sparsities=(2,)))[:2] == ["undecided", "undecided"]
