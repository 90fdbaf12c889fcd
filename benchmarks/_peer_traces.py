"""The time to a trace of given standard error: ours against the three estimators of curvlinops.

Errors are the true ones, spreads of whole estimates over seeds, not those that programs state. An estimate of variance
s² that takes t seconds takes t s²/e² for the error e, because probes, or whole estimates, can be averaged: ratios are
those of t s². Hutchinson's estimator is one law whoever draws it: its variance is taken from 96 probes of ours.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from genscope.measure import Trace

PROBES, TOGETHER, OURS, THEIRS, LAW = 32, 4, 12, 6, 96
Measure = Callable[[str, int, int], Trace]  # by method, probes and seed


def ours(measure: Measure) -> tuple[dict[str, Any], float, float]:
    """Rows; CPU seconds times variance; variance of one of Hutchinson's probes."""
    start = time.process_time()
    measure("split", PROBES, 0)
    first = time.process_time() - start
    start = time.process_time()
    found = [measure("split", PROBES, seed) for seed in range(1, OURS + 1)]
    seconds = (time.process_time() - start) / OURS
    spread = float(np.std([each.mean for each in found], ddof=1))
    stated = float(np.sqrt(np.mean([each.sem**2 for each in found])))
    law = measure("hutchinson", LAW, 0)
    rows = {
        "ours, CPU s": seconds,
        "ours, first call with compilation, CPU s": first,
        "ours, mean of the estimates": float(np.mean([each.mean for each in found])),
        f"ours, spread over {OURS} seeds": spread,
        "ours, stated error": stated,
        f"Hutchinson with {LAW} probes": f"{law.mean:.4g} ± {law.sem:.2g}",
    }
    return rows, seconds * spread**2, LAW * law.sem**2


def theirs(hessian: Any, cost: float, law: float, first: float, seconds: float) -> dict[str, Any]:
    """Rows of curvlinops: time, spread and ratio for each of its estimators."""
    import curvlinops  # pyright: ignore[reportMissingImports]  # a peer
    import torch  # pyright: ignore[reportMissingImports]  # a peer

    matrix = _Columns(hessian)
    curvlinops.hutchinson_trace(matrix, TOGETHER)  # builds its graph
    rows: dict[str, Any] = {}
    for name, estimate, products, repeats in (
        ("hutchinson", curvlinops.hutchinson_trace, PROBES, 1),
        ("hutchpp", curvlinops.hutchpp_trace, PROBES + 1, THEIRS),
        ("xtrace", curvlinops.xtrace, PROBES, THEIRS),
    ):
        torch.manual_seed(0)
        start = time.process_time()
        found = [float(estimate(matrix, products)) for _ in range(repeats)]
        each = (time.process_time() - start) / repeats
        variance = law / products if repeats == 1 else float(np.var(found, ddof=1))
        label = f"curvlinops, {name}"
        rows |= {f"{label}, CPU s": each, f"{label}, mean of the estimates": float(np.mean(found))}
        rows |= {f"{label}, spread": float(np.sqrt(variance))}
        rows[f"{label}: times slower at equal error"] = each * variance / cost
        rows[f"{label}: with our compilation, at our error"] = each * variance / cost * seconds / first
        if name == "hutchinson":
            rows["curvlinops, hutchinson, CPU s for a probe"] = each / products
    return rows


class _Columns:
    """The operator, a few columns at a time: all at once would take gigabytes."""

    def __init__(self, hessian: Any) -> None:
        self._hessian = hessian
        self.shape, self.device, self.dtype = hessian.shape, hessian.device, hessian.dtype

    def __matmul__(self, columns: Any) -> Any:
        import torch  # pyright: ignore[reportMissingImports]  # a peer

        return torch.cat([self._hessian @ part for part in columns.split(TOGETHER, dim=1)], dim=1)
