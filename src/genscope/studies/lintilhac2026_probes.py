"""Degree and sparsity of random functions from queries alone: affine restrictions beside the paper's coordinates.

Source: lintilhac2026, Figure 8 and Appendix H: 8 functions for each of 20 classes.
Departures: T = 32 and 64 beside 20; sparsities 2, 5, 10 and 20 are ours, since the text we have does not give them. The
degree test has disjoint blocks with dead bits, and the default restriction is affine (`genscope.probe`).
Guarantee: that of the testers, at confidence 0.99 for functions of at most 32 components and coefficients in general
position (`generic`), as all functions here are, drawn from a density; whether an answer is right is checked against the
drawn function.
"""

import time
from typing import Any

import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.fourier.walsh import random_function
from genscope.lab import Group, Line, Mean, Plan, Reference, Study, grid, within
from genscope.probe import Oracle, find_degree, find_sparsity, probe
from genscope.random import stream
from genscope.refusal import Refusal

CONFIDENCE = 0.99
MAX_DEGREE, MAX_SPARSITY = 8, 32
ROWS, REPEATS = 12, 3  # of the restriction to coordinates: its best of three
RESTRICTIONS = ("affine", "coordinate")


def trial(key: Key[Array, ""], *, context_length: int, degree: int, sparsity: int, restriction: str) -> dict[str, Any]:
    """Draw a function, and find its degree and sparsity by our testers, or its sparsity by the paper's."""
    function = random_function(stream(key, "function"), dim=context_length, degree=degree, sparsity=sparsity)
    rng = np.random.default_rng(np.asarray(jr.key_data(stream(key, restriction))))
    start = time.thread_time()
    if restriction == "coordinate":
        counted = find_sparsity(
            Oracle(function, context_length),
            rng=rng,
            max_sparsity=MAX_SPARSITY,
            generic=True,
            kind="coordinate",
            rows=ROWS,
            repeats=REPEATS,
        )
        return {
            "found_sparsity": counted.at_least,
            "exact_sparsity": counted.value == sparsity,
            "queries": counted.queries,
            "cpu_seconds": time.thread_time() - start,
        }
    options: dict[str, Any] = {"rng": rng, "confidence": CONFIDENCE, "generic": True}
    level = find_degree(Oracle(function, context_length), max_degree=MAX_DEGREE, **options)
    counted = find_sparsity(Oracle(function, context_length), max_sparsity=MAX_SPARSITY, **options)
    middle = time.thread_time()
    found = probe(function, context_length, confidence=CONFIDENCE, seed=int(rng.integers(2**32)))
    return {
        "found_degree": level.at_least,
        "found_sparsity": counted.at_least,
        "exact_degree": level.value == degree,
        "exact_sparsity": counted.value == sparsity,
        "recovered": (found.degree, found.sparsity) == (degree, sparsity)
        and found.function.supports == function.supports
        and bool(np.allclose(found.function.coefficients, function.coefficients, atol=1e-8)),
        "queries": level.queries + counted.queries,
        "probe_queries": found.queries,
        "cpu_seconds": middle - start,
        "probe_cpu_seconds": time.thread_time() - middle,
    }


def _check(point) -> None:
    within(context_length=(2, 1000), degree=(1, 16), sparsity=(1, 1000))(point)
    if "restriction" in point and point["restriction"] not in RESTRICTIONS:
        raise Refusal(f"restriction must be one of {', '.join(RESTRICTIONS)}. Choose one of them.")


def _points(lengths: list[int]) -> tuple[dict[str, Any], ...]:
    return grid(context_length=lengths, degree=[1, 2, 3, 4, 5], sparsity=[2, 5, 10, 20], restriction=list(RESTRICTIONS))


_LABELS = {
    "degree": "degree k",
    "sparsity": "components s",
    "context_length": "bits T",
    "found_degree": "first degree accepted",
    "found_sparsity": "first sparsity accepted",
}
_MERGE = (
    "Components that agree on the 12 coordinates kept are counted once, so restricting to coordinates finds too few "
    "of them, the more so the more bits there are, whatever the tolerance. An affine restriction merges any two "
    "components with the same small probability."
)


def _sparsity_panel(context_length: int) -> Line:
    return Line(
        title=f"T = {context_length}",
        answer=f"At T = {context_length}, {{to affine}} components are found as {{last affine}} by affine maps, "
        "as {last coordinate} by coordinates"
        if context_length == 64
        else "",
        where={"context_length": context_length},
        x="sparsity",
        y=Mean("found_sparsity"),
        by="restriction",
        references=(Reference("true sparsity", (2, 20), (2, 20)),),
    )


STUDY = Study(
    name="lintilhac2026-probes",
    title="Degree and sparsity from queries",
    source="lintilhac2026, Figure 8",
    labels=_LABELS,
    trial=trial,
    trial_cost=0.1,
    points=_points([20, 32, 64]),
    seeds=8,
    budgets={
        "quick": Plan(_points([20, 64]), seeds=2),
        "paper": Plan(_points([20, 32, 64, 1000]), seeds=32),
    },
    figures=(
        Line(
            title="Degree found by queries",
            answer="At T = 64, functions of degree {to 64} are found to have degree {last 64}",
            claims=("C8",),
            caption="First degree accepted, means over functions of 2 to 20 components with 95 % intervals.",
            where={"restriction": "affine"},
            x="degree",
            y=Mean("found_degree"),
            by="context_length",
            references=(Reference("true degree", (1, 5), (1, 5)),),
        ),
        Group(
            title="Sparsity found by queries",
            caption=f"First sparsity accepted, means over functions of degrees 1 to 5 with 95 % intervals. {_MERGE}",
            panels=(_sparsity_panel(20), _sparsity_panel(64)),
        ),
    ),
    paired=frozenset({"restriction"}),
    batch=8,
    check=_check,
)
