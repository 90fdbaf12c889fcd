"""Appendix H's testers as their proximity parameter falls, beside ours: where the levels that are found "wilt".

Source: lintilhac2026, Appendix H and Figure 8 (first levels accepted by sweeps, and the effect of the proximity).
Departures: those of `genscope.probe.published`; T = 64 beside 20; sparsities are ours, as in `lintilhac2026_probes`.
Our testers have no such parameter, and run once for a function.
Guarantee: reported beside claim C8, of which it is no part: nothing is decided here. Ours has that of
`genscope.probe`, with confidence 0.99 for coefficients in general position; the published ones have none. Whether a
level is right is checked against the drawn function.
"""

import time
from typing import Any

import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.fourier.walsh import random_function
from genscope.lab import Group, Line, Mean, Plan, Reference, Study, grid, within
from genscope.lab.plans.study import Point
from genscope.probe import Finding, Oracle, find_degree, find_sparsity, published_degree, published_sparsity
from genscope.random import stream
from genscope.refusal import Refusal

TESTERS = ("ours", "coordinates", "directions")
CONFIDENCE = 0.99
MAX_DEGREE, MAX_SPARSITY = 8, 32
QUERIES = 2**22  # of each tester; a level that they do not decide is not accepted


def trial(
    key: Key[Array, ""], *, context_length: int, degree: int, sparsity: int, tester: str, proximity: float
) -> dict[str, Any]:
    """Draw a function, and sweep the levels of degree and sparsity by one tester."""
    function = random_function(stream(key, "function"), dim=context_length, degree=degree, sparsity=sparsity)
    rng = np.random.default_rng(np.asarray(jr.key_data(stream(key, tester))))
    start = time.thread_time()
    shared: dict[str, Any] = {"rng": rng, "confidence": CONFIDENCE}

    def oracle() -> Oracle:
        return Oracle(function, context_length, limit=QUERIES)

    counted: Finding | None = None
    if tester == "ours":
        level = find_degree(oracle(), max_degree=MAX_DEGREE, generic=True, **shared)
        counted = find_sparsity(oracle(), max_sparsity=MAX_SPARSITY, generic=True, **shared)
    else:
        shared["proximity"] = proximity
        level = published_degree(oracle(), sides=tester, max_degree=MAX_DEGREE, **shared)  # pyright: ignore[reportArgumentType]  # checked
        if tester == "coordinates":  # the sparsity has one reading
            counted = published_sparsity(oracle(), max_sparsity=MAX_SPARSITY, **shared)
    return {
        "found_degree": level.at_least,
        "exact_degree": level.value == degree,
        "degree_queries": level.queries,
        "found_sparsity": None if counted is None else counted.at_least,
        "exact_sparsity": None if counted is None else counted.value == sparsity,
        "sparsity_queries": None if counted is None else counted.queries,
        "cpu_seconds": time.thread_time() - start,
    }


def _check(point: Point) -> None:
    within(context_length=(2, 1000), degree=(1, 16), sparsity=(1, 1000), proximity=(1e-6, 0.999))(point)
    if "tester" in point and point["tester"] not in TESTERS:
        raise Refusal(f"tester must be one of {', '.join(TESTERS)}. Choose one of them.")


def _points(lengths: list[int], proximities: list[float]) -> tuple[Point, ...]:
    shape = {"context_length": lengths, "degree": [1, 2, 3, 4, 5], "sparsity": [2, 5, 10, 20]}
    return (
        *grid(**shape, tester=["ours"], proximity=[proximities[-1]]),
        *grid(**shape, tester=["coordinates"], proximity=proximities),
        *grid(**shape, tester=["directions"], proximity=proximities[:2]),
    )


_LABELS = {
    "degree": "degree k",
    "sparsity": "components s",
    "found_degree": "first degree accepted",
    "found_sparsity": "first sparsity accepted",
    "proximity": "proximity ε",
}


def _degrees(context_length: int) -> Line:
    return Line(
        title=f"Cubes along coordinates, T = {context_length}",
        where={"context_length": context_length, "tester": "coordinates"},
        x="degree",
        y=Mean("found_degree"),
        by="proximity",
        references=(Reference("true degree", (1, 5), (1, 5)),),
    )


STUDY = Study(
    name="lintilhac2026-proximity",
    title="The published property testers as their proximity parameter falls",
    source="lintilhac2026, Appendix H",
    labels=_LABELS,
    trial=trial,
    trial_cost=0.05,
    points=_points([20, 64], [0.1, 0.01, 0.001]),
    seeds=4,
    budgets={
        "quick": Plan(_points([20], [0.1, 0.01]), seeds=1, trial_cost=0.02),
        "paper": Plan(_points([20, 64], [0.1, 0.01, 0.001, 0.0001]), seeds=8, trial_cost=0.3),
    },
    figures=(
        Group(
            title="Degrees found by the published test",
            caption=(
                "First degree accepted, means over functions of 2 to 20 components with 95 % intervals. A cube along "
                "k of T coordinates meets a given set of k bits once in binom(T, k) trials, so the test accepts too "
                "low a degree unless the proximity is very small, and the more so the more bits there are. Our blocks "
                "meet it as often at every T (study lintilhac2026-probes)."
            ),
            panels=(_degrees(20), _degrees(64)),
        ),
        Line(
            title="Degrees found along random directions",
            caption=(
                "The same with random directions for sides: a component survives once in 2^(k + 1) trials, whatever "
                "its degree, so the first level accepted depends on the number of trials instead. Levels end at 8."
            ),
            where={"tester": "directions"},
            x="degree",
            y=Mean("found_degree"),
            by="proximity",
            references=(Reference("true degree", (1, 5), (1, 5)),),
        ),
        Line(
            title="Sparsity found by the published test",
            caption=(
                "First sparsity accepted at T = 20 by restrictions to 12 coordinates, means over degrees 1 to 5 with "
                "95 % intervals, by the share of the energy that may lie beyond. Part of the shortfall comes from "
                "components that merge, and stays as the share goes to 0."
            ),
            where={"tester": "coordinates", "context_length": 20},
            x="sparsity",
            y=Mean("found_sparsity"),
            by="proximity",
            references=(Reference("true sparsity", (2, 20), (2, 20)),),
        ),
    ),
    paired=frozenset({"tester", "proximity"}),
    batch=8,
    check=_check,
)
