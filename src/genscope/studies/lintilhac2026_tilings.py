r"""Norm and sharpness against covering numbers: bounds for tilings of parities by the sample size.

A tiling is $\sum_i\frac1{\sqrt s}\varphi_{S_i}$ with $s=T/k$ disjoint blocks $S_i$ of $k$ bits, of variance ¼.

Source: lintilhac2026, Appendix E.3.
Departures: the covering bound is ours, since the paper's formula is lost in our text; it is taken for the paper's and
for the tuned weights, and the smaller one counts. The tuned weights, and the form for clipped losses, are ours too.
Guarantee: arithmetic on closed forms; expectations over more inputs than can be listed come from random ones, and the
trace is then taken 4 standard errors above its mean. The remainder beyond the quadratic term is left out
(`bounds.flat_minima`): not a certificate.
"""

import functools
from typing import Any

import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.bounds import fourier_cover, pac_bayes
from genscope.constructions.fourier_components import fourier_components
from genscope.constructions.fourier_construction import FourierConstruction
from genscope.fourier import tiling
from genscope.lab import Plan, Study, grid
from genscope.lab.figure import Line, Mean, Reference
from genscope.lab.study import Point, within
from genscope.models.lintilhac2026 import FourierTransformer

BOUNDS = ("paper", "tuned", "tuned-clipped", "covering")
VARIANCE = 0.25
_ERRORS = 4  # standard errors that a sampled trace is raised by


def trial(
    key: Key[Array, ""], *, bound: str, context_length: int, degree: int, constant: float, sample_size: int
) -> dict[str, Any]:
    """One bound for one tiling; `constant` is C, half of the clip, and nothing to the covering bound."""
    seed = int(jr.randint(key, (), 0, 2**31 - 1))
    weights = {variant: _built(context_length, degree, variant, seed) for variant in ("full", "tuned")}
    if bound == "covering":
        covers = {name: covering(built, sample_size) for name, built in weights.items()}
        return {"value": min(covers.values()), "norm_squared": None, "trace": None, "sigma": None}
    built = weights["full" if bound == "paper" else "tuned"]
    norm, trace = built.norm_squared["total"], built.trace + _ERRORS * built.trace_sem
    form = "kl" if bound == "tuned-clipped" else "truncated"
    found = pac_bayes(norm_squared=norm, trace=trace, constant=constant, samples=sample_size, form=form)
    return {"value": found.value, "norm_squared": norm, "trace": trace, "sigma": found.choices["sigma"]}


@functools.cache
def _built(context_length: int, degree: int, variant: Any, seed: int) -> FourierConstruction:
    return fourier_components(tiling(context_length, degree), variant=variant, key=jr.key(seed))


def covering(built: FourierConstruction, sample_size: int) -> float:
    """The covering bound of a network, from the norms of its weights."""
    model: FourierTransformer = built.model
    fields = ("score", "key", "value", "expand", "threshold", "contract", "select", "readout")
    a, k, v, e, b, f, w2, w = (np.asarray(getattr(model, name)) for name in fields)
    return fourier_cover(
        query_key_21=_rows(a @ k),
        value_21=_rows(v),
        value_spectral=_largest(v),
        expand_21=min(_rows(e), _rows(e.T)),
        expand_spectral=_largest(e),
        contract_21=_rows(f),
        contract_spectral=_largest(f),
        threshold_norm=float(np.linalg.norm(b)),
        select_21=sum(_rows(head) for head in w2),
        readout_norm=float(np.linalg.norm(w)),
        width=len(b),
        tokens=model.positions,
        dimension=len(a),
        samples=sample_size,
    ).value


def _rows(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, axis=1).sum())


def _largest(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, 2))


def _check(point: Point) -> None:
    within(context_length=(1, 1024), degree=(1, None), constant=(1e-9, 1e9), sample_size=(8, 1e15))(point)
    if point.get("bound", BOUNDS[0]) not in BOUNDS:
        raise ValueError(f"bound is one of {', '.join(BOUNDS)}. Choose one of them.")
    if {"context_length", "degree"} <= {*point} and int(point["context_length"]) % int(point["degree"]):
        raise ValueError("the degree divides the context length: blocks tile the bits. Change one of them.")


_SIZES = [10**power for power in range(4, 11)]

STUDY = Study(
    name="lintilhac2026-tilings",
    title="Norm and sharpness against covering numbers on tilings of parities",
    source="lintilhac2026, Appendix E.3",
    trial=trial,
    trial_cost=0.3,
    points=grid(bound=BOUNDS, context_length=[20, 64], degree=[2, 4], constant=[0.1, 0.5], sample_size=[8192, *_SIZES]),
    budgets={
        "quick": Plan(
            grid(bound=BOUNDS, context_length=[64], degree=[2], constant=[0.1, 0.5], sample_size=[10**6, 10**8])
        )
    },
    figures=(
        Line(
            title="PAC-Bayes and covering bounds for the tiling of 64 bits by pairs",
            caption=(
                "Bounds on the risk against the sample size, C = 0.1: the truncated bound with the paper's weights and "
                "with weights rescaled to the least product of norm and trace, the form for losses clipped at 0.2, and "
                "a covering bound with all universal constants at 1. Below the variance ¼ a bound says something."
            ),
            source="lintilhac2026, Appendix E.3",
            labels={"sample_size": "samples n", "value": "bound on the risk"},
            where={"context_length": 64, "degree": 2, "constant": 0.1},
            x="sample_size",
            y=Mean("value"),
            by="bound",
            log_x=True,
            log_y=True,
            references=(Reference("variance of the labels", [_SIZES[0], _SIZES[-1]], [VARIANCE, VARIANCE]),),
        ),
    ),
    paired=frozenset({"bound", "constant", "sample_size"}),
    check=_check,
)
