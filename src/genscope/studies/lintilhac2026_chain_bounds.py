"""Does the bound for parity grow exponentially in one pass, and linearly by a chain of thought? Numbers to T = 1024.

Source: lintilhac2026, Theorems 7, 8 and 16.
Departures: both readings of the comparison (`bounds.parity_chain`); rescaled weights of both functions beside the
paper's; a chain with short codes of its positions ("coded-chain", `constructions.cyclic_code`) beside one-hot ones. The
confidence is inverted at one width and sample size for all T, as in the paper, chosen so large that it is
a probability over the whole range.
Guarantee: exact arithmetic, up to rounding; nothing is random. The bounds themselves are no certificates.
"""

import math
from typing import Any, Literal

from jaxtyping import Array, Key

from genscope.bounds import Bound
from genscope.bounds.parity_chain import Codes, Method, Weights, blocks, parity_chain
from genscope.constructions.cyclic_code import LONGEST, cyclic_code, usual_dim
from genscope.lab import Group, Study, grid
from genscope.lab.plans.figure import Level, Line, Mean
from genscope.lab.plans.study import within
from genscope.refusal import Refusal

SAMPLES = 10**12
DELTA_SAMPLES, DELTA_WIDTH = 10**24, 1e-6
LENGTHS = [2**power for power in range(3, 11)]
METHODS, WEIGHTS = ("one-pass", "chain", "coded-chain"), ("paper", "tuned")


def trial(key: Key[Array, ""], *, method: str, weights: Weights, context_length: int) -> dict[str, Any]:
    """Both readings at T, and their local exponents between T and 2T."""
    del key  # nothing is random
    way: Method = "one-pass" if method == "one-pass" else "chain"

    def bound(length: int, reading: Literal["risk", "delta"], samples: int, sigma: float | None) -> Bound:
        dim, coherence = _codes(method, length) or (None, 0.0)
        return parity_chain(
            context_length=length,
            samples=samples,
            method=way,
            weights=weights,
            reading=reading,
            sigma=sigma,
            dim=dim,
            coherence=coherence,
        )

    built = blocks(way, context_length, weights=weights, codes=_codes(method, context_length))
    lengths = (context_length, 2 * context_length)
    risks = [bound(length, "risk", SAMPLES, None) for length in lengths]
    logs = [bound(length, "delta", DELTA_SAMPLES, DELTA_WIDTH).value for length in lengths]
    best = bound(context_length, "delta", SAMPLES, None)
    return {
        "norm_squared": built.total,
        "trace": built.trace,
        "risk": risks[0].value,
        "risk_exponent": math.log2(risks[1].value / risks[0].value),
        "risk_vacuous": risks[0].vacuous,
        "log_delta": logs[0],
        "delta_exponent": (logs[1] - logs[0]) / math.log(2),
        "log_delta_best_width": best.value,
        "delta_vacuous": best.vacuous,
    }


def _codes(method: str, length: int) -> Codes | None:
    """Dimension and coherence of short codes; None for one-hot ones."""
    if method != "coded-chain":
        return None
    code = cyclic_code(length, usual_dim(length))
    return code.dim, code.coherence


def _check(point) -> None:
    within(context_length=(2, 10**6))(point)
    if point.get("method") == "coded-chain":
        within(context_length=(3, LONGEST // 2))(point)
    for axis, known in (("method", METHODS), ("weights", WEIGHTS)):
        if axis in point and point[axis] not in known:
            raise Refusal(f"{axis} must be one of {', '.join(known)}. Choose one of them.")


_LABELS = {
    "context_length": "context length T",
    "risk": "bound on the error probability",
    "delta_exponent": "d log δ / d log T",
    "method": "method",
}


def _risk_panel(weights: str, about: str) -> Line:
    return Line(
        title=about,
        answer=(
            "At T = {at one-pass/coded-chain}, the bound for one pass is {ratio one-pass/coded-chain} times that of a "
            "coded chain"
        ),
        where={"weights": weights},
        x="context_length",
        y=Mean("risk"),
        by="method",
        vacuous="risk_vacuous",
        trivial=Level(1.0, "a probability is at most 1"),
        log_x=True,
        log_y=True,
    )


STUDY = Study(
    name="lintilhac2026-chain-bounds",
    title="Parity in one pass and by a chain of thought: the bounds",
    source="lintilhac2026, Theorems 7 and 8",
    labels=_LABELS,
    trial=trial,
    trial_cost=0.5,
    points=grid(weights=list(WEIGHTS), method=list(METHODS), context_length=LENGTHS),
    figures=(
        Group(
            title="The bound for parity in one pass and by a chain of thought",
            caption=(
                "Bound on the probability of a wrong answer, truncated form, 10¹² samples, C = 0.1. Powers of T are "
                "straight lines. Shaded: vacuous. The coded chain has short codes of its positions in place of one-hot "
                "ones; tuned weights are rescaled to a smaller product of norm and trace."
            ),
            claims=("C7",),
            panels=(_risk_panel("paper", "The paper's weights"), _risk_panel("tuned", "Tuned weights")),
        ),
        Line(
            title="Growth of the confidence parameter δ",
            caption=(
                "Theorem 16 fixes the loss and solves for δ, the probability over training samples that the loss "
                "exceeds ¼. Drawn is d log δ / d log T between T and 2T, at 10²⁴ samples and σ = 10⁻⁶: constant for a "
                "power of T, a straight line of slope 1 for an exponential."
            ),
            folded=True,
            source="lintilhac2026, Theorem 16",
            where={"weights": "paper"},
            x="context_length",
            y=Mean("delta_exponent"),
            by="method",
            log_x=True,
            log_y=True,
        ),
    ),
    revision=3,
    check=_check,
)
