r"""What function is it? Degree, sparsity, relevant bits and Fourier components of a black box, in one call.

Source: lintilhac2026, Appendix H (degree and sparsity from queries); sharpness.md, Section 5.
Departures: components are recovered first and the sum is then compared with the function at fresh inputs, instead of
testing degree and sparsity one after the other: it costs fewer queries and says more.
Guarantee: `exact` where the whole table was read. Otherwise, if `degree` and `sparsity` are given, the sum of the
components passed the comparison of `probe.agreement` with the stated confidence: right on all but a share of the
inputs, and right everywhere if the function differs from it by few components or by a function of low degree. No
black-box test can promise more: a function that differs at one input of $2^T$ looks the same. If they are None, the
function has more components than the queries allow to find, and what is given are lower limits that are certain.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from genscope.fourier import Expression, points
from genscope.fourier.transform import walsh_coefficients
from genscope.fourier.walsh import WalshFunction
from genscope.probe.agreement import Agreement
from genscope.probe.degree import find_degree
from genscope.probe.influence import influences
from genscope.probe.oracle import LIMIT, Inputs, Oracle
from genscope.probe.recovery import Recovery, recover
from genscope.probe.verdict import check_confidence

TABLE = 16  # bits to which the whole table is read at once
LARGEST_TABLE = 20  # and to which it is read after all, if there are too many components to recover
LARGEST_BITS = 10_000
LISTED = 4096  # components of a function, the largest, if it has more
_SIGNS_TRIED = 64


@dataclass(frozen=True)
class Findings:
    """What a probe found; `degree`, `sparsity` and `confidence` are None if it cannot tell with its queries.

    `function` is the sum of the components that were found (of more than 4096 in a table, the largest), in the basis of
    characters; the constant is not counted in its sparsity.
    """

    degree: int | None
    sparsity: int | None
    degree_at_least: int
    sparsity_at_least: int
    relevant: tuple[int, ...]
    function: WalshFunction
    queries: int
    seconds: float
    confidence: float | None
    exact: bool
    mean_squared_error: float
    guarantee: str


def probe(
    target: Callable[..., Any],
    bits: int,
    *,
    confidence: float = 0.99,
    queries: int | None = None,
    tolerance: float = 0.0,
    inputs: Inputs = "integers",
    seed: int = 0,
) -> Findings:
    """Probe a function of `bits` bits with at most `queries` of them (default: two millions).

    `target` takes a batch [n, bits] or one input [bits] and returns a number for each, as `Oracle` says. With a
    tolerance E, a sum whose mean squared difference from the function is at most E counts as the function.

    >>> found = probe(lambda x: 3.0 * (x[0] ^ x[5]), 8)
    >>> found.degree, found.sparsity, found.relevant, found.exact
    (2, 1, (0, 5), True)
    """
    check_confidence(confidence)
    limit = LIMIT if queries is None else queries
    if not 1 <= bits <= LARGEST_BITS or limit < 1 or not 0 <= tolerance < math.inf:
        raise ValueError(
            f"probe got {bits=}, {queries=} and {tolerance=}: bits lie between 1 and {LARGEST_BITS}, queries are at "
            "least 1, and a tolerance is an energy of 0 or more. Correct the one that does not fit."
        )
    start = time.perf_counter()
    rng = np.random.default_rng(seed)
    known = _known_table(target, bits, limit)
    oracle = Oracle(target, bits, limit=limit, inputs="booleans" if isinstance(target, Expression) else inputs)
    if known is not None:
        facts = _from_table(*known, bits, tolerance, len(known[1]), 1e-12)
    elif bits <= TABLE and _affords_table(oracle):
        facts = _read_table(oracle, tolerance)
    else:
        facts = _recovered(oracle, rng, confidence, tolerance)
    return Findings(**facts, seconds=time.perf_counter() - start)


def _known_table(target: object, bits: int, limit: int) -> tuple[tuple[int, ...], np.ndarray] | None:
    """The variables of a short expression, and its table over them: the other bits cannot matter."""
    if not isinstance(target, Expression) or len(target.variables) > LARGEST_TABLE:
        return None
    if target.variables and target.variables[-1] >= bits:
        raise ValueError(
            f"probe got {bits=} for an expression that mentions x{target.variables[-1]}: bits are numbered from x0. "
            f"Give at least {target.variables[-1] + 1} bits."
        )
    return (target.variables, target.truth_table(target.variables)) if 2 ** len(target.variables) <= limit else None


def _affords_table(oracle: Oracle) -> bool:
    return 2**oracle.dim + _SIGNS_TRIED <= oracle.left


def _read_table(oracle: Oracle, tolerance: float) -> dict[str, Any]:
    values = oracle(points(oracle.dim))
    oracle.ask_again()
    hint = _about_signs(oracle, np.random.default_rng(0), values)
    facts = _from_table(tuple(range(oracle.dim)), values, oracle.dim, tolerance, oracle.queries, oracle.resolution)
    return facts | {"guarantee": facts["guarantee"] + hint, "queries": oracle.queries}


def _from_table(
    variables: tuple[int, ...],
    table: np.ndarray,
    bits: int,
    tolerance: float,
    queries: int,
    resolution: float,
) -> dict[str, Any]:
    """All there is to know, from the values at all inputs of the variables."""
    coefficients: Float64[np.ndarray, " sets"] = walsh_coefficients(table.astype(np.float64))
    coefficients[np.abs(coefficients) <= resolution] = 0.0
    order = np.argsort(np.abs(coefficients))
    small = order[np.cumsum(coefficients[order] ** 2) <= tolerance]
    left_out = float(np.sum(coefficients[small[small > 0]] ** 2))
    coefficients[small[small > 0]] = 0.0
    sets = np.flatnonzero(coefficients)
    degree, sparsity = int(np.bitwise_count(sets).max(initial=0)), int((sets > 0).sum())
    relevant = np.bitwise_or.reduce(sets, initial=0)
    largest = sets[np.argsort(-np.abs(coefficients[sets]), kind="stable")][:LISTED]
    left_out += float(np.sum(coefficients[sets] ** 2) - np.sum(coefficients[largest] ** 2))
    function = _function({_bits_of(each, variables): float(coefficients[each]) for each in largest.tolist()}, bits)
    close = f" The sum listed leaves out components of energy {left_out:.3g}." if left_out else ""
    return {
        "degree": degree,
        "sparsity": sparsity,
        "degree_at_least": degree,
        "sparsity_at_least": sparsity,
        "relevant": _bits_of(int(relevant), variables),
        "function": function,
        "queries": queries,
        "confidence": 1.0,
        "exact": True,
        "mean_squared_error": left_out,
        "guarantee": f"Exact: read from the values at all inputs of {len(variables)} bits.{close}",
    }


def _bits_of(number: int, variables: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(variable for place, variable in enumerate(variables) if number >> place & 1)


def _recovered(oracle: Oracle, rng: np.random.Generator, confidence: float, tolerance: float) -> dict[str, Any]:
    x = rng.integers(0, 2, (min(_SIGNS_TRIED, max(oracle.left // 4, 0)), oracle.dim), dtype=np.int8).astype(bool)
    values = oracle(x)
    oracle.ask_again()
    hint = _about_signs(oracle, rng, values)
    limit = oracle.limit
    tabled = oracle.dim <= LARGEST_TABLE and _affords_table(oracle)
    if tabled:  # a search that costs as much as the table is none
        oracle.limit = min(limit - 2**oracle.dim - _SIGNS_TRIED, 2**oracle.dim // 4)
    found = recover(oracle, rng=rng, confidence=confidence, tolerance=tolerance)
    oracle.limit = limit
    if not found.complete and tabled and _affords_table(oracle):
        return _read_table(oracle, tolerance)
    oracle.ask_again()
    facts: dict[str, Any] = {"function": found.function, "exact": False}
    facts["mean_squared_error"] = found.agreement.mean_squared_error
    if found.complete:
        function = found.function
        facts |= {"degree": function.degree, "sparsity": function.sparsity, "relevant": function.relevant}
        facts |= {"degree_at_least": function.degree, "sparsity_at_least": function.sparsity, "confidence": confidence}
        facts["guarantee"] = _promise(oracle, found.agreement, confidence, tolerance) + hint
    else:
        level = find_degree(oracle, rng=rng, confidence=confidence)
        seen = influences(oracle, rng=rng, confidence=confidence)
        facts |= {"degree": None, "sparsity": None, "confidence": None}
        facts |= {"degree_at_least": level.at_least, "sparsity_at_least": found.at_least}
        facts["relevant"] = seen.relevant if seen else found.function.relevant
        facts["guarantee"] = _excuse(oracle, found, tolerance) + hint
    return facts | {"queries": oracle.queries}


def _promise(oracle: Oracle, agreement: Agreement, confidence: float, tolerance: float) -> str:
    if tolerance:
        return (
            f"With confidence {confidence:g} the mean squared difference from the sum listed is at most "
            f"{tolerance:g}, if |f| never exceeds {oracle.scale:.6g}, the largest value seen. Degree and sparsity are "
            "those of this sum."
        )
    return (
        f"The sum listed agrees with the function at {agreement.inputs} fresh random inputs: with confidence "
        f"{confidence:g} it is right on all but {100 * agreement.share:.2g} % of the inputs, and everywhere if the "
        f"function differs from it by at most {agreement.terms} components, or by a function of degree at most "
        f"{int(math.log2(agreement.terms))}."
    )


def _excuse(oracle: Oracle, found: Recovery, tolerance: float) -> str:
    agreement, at_least, function = found.agreement, found.at_least, found.function
    close = (
        f" The components listed leave a mean squared difference of about {agreement.mean_squared_error:.3g}; "
        "a tolerance above that would accept them."
        if agreement.inputs and agreement.mean_squared_error <= function.variance
        else ""
    )
    more = f"at least {at_least} components besides the constant" if at_least else "more components than can be found"
    within = f" within the tolerance {tolerance:g}" if tolerance else ""
    return (
        f"Cannot tell with {oracle.limit} queries{within}: the function has {more}.{close} The degree and the number "
        "of components are at least those given, and bits called relevant are. Allow more queries."
    )


def _about_signs(oracle: Oracle, rng: np.random.Generator, values: np.ndarray) -> str:
    """A function that is constant on bits may have been written for signs."""
    if not len(values) or (values != values[0]).any():
        return ""
    x = rng.integers(0, 2, (_SIGNS_TRIED, oracle.dim), dtype=np.int8).astype(bool)
    if not oracle.expects_signs(x):
        return ""
    return (
        " It is constant on the bits 0, 1 that were tried, but not on the signs 1, -1: if it was written for signs, "
        "say inputs='signs' (on the command line, --inputs signs)."
    )


def _function(found: dict[tuple[int, ...], float], bits: int) -> WalshFunction:
    supports = tuple(sorted(support for support in found if support))
    return WalshFunction(bits, supports, tuple(found[s] for s in supports), constant=found.get((), 0.0))
