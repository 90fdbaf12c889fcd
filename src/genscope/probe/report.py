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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genscope.fourier import Expression, points
from genscope.fourier.walsh import WalshFunction
from genscope.probe.agreement import Agreement, agree
from genscope.probe.degree import find_degree
from genscope.probe.influence import Influences, flips_needed, influences
from genscope.probe.oracle import LIMIT, Inputs, Oracle
from genscope.probe.recovery import Recovery, recover
from genscope.probe.table import Tabled, read_table
from genscope.probe.verdict import check_confidence

TABLE = 16  # bits to which the whole table is read at once
LARGEST_TABLE = 20  # and to which it is read after all, if there are too many components to recover
LARGEST_BITS = 10_000
_TRIED = 64  # inputs asked first, and asked again


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
    if isinstance(target, Expression):
        oracle, found = Oracle(target, bits, limit=limit, inputs="booleans"), _known(target, bits, limit, tolerance)
    else:
        oracle, found = Oracle(target, bits, limit=limit, inputs=inputs), None
    if found is None and bits <= TABLE and _affords_table(oracle):
        found = _from_table(oracle, tolerance)
    if found is None:
        found = _asked(oracle, rng, confidence, tolerance)
    return replace(found, queries=found.queries or oracle.queries, seconds=time.perf_counter() - start)


# --- The whole table -------------------------------------------------------------------------------------------------


def _known(target: Expression, bits: int, limit: int, tolerance: float) -> Findings | None:
    """A short expression, by its table over the variables that it mentions: no other bit can matter."""
    variables = target.variables
    if variables and variables[-1] >= bits:
        raise ValueError(
            f"probe got {bits=} for an expression that mentions x{variables[-1]}: bits are numbered from x0. "
            f"Give at least {variables[-1] + 1} bits."
        )
    if len(variables) > LARGEST_TABLE or 2 ** len(variables) > limit:
        return None
    tabled = read_table(target.truth_table(variables), variables, bits, resolution=1e-12, tolerance=tolerance)
    return replace(_exact(tabled, len(variables)), queries=2 ** len(variables))


def _affords_table(oracle: Oracle) -> bool:
    return 2**oracle.dim + 2 * _TRIED <= oracle.left


def _from_table(oracle: Oracle, tolerance: float) -> Findings:
    values = oracle(points(oracle.dim))
    oracle.ask_again()
    hint = _about_signs(oracle, values)
    bits = oracle.dim
    tabled = read_table(values, tuple(range(bits)), bits, resolution=oracle.resolution, tolerance=tolerance)
    exact = _exact(tabled, bits)
    return replace(exact, guarantee=exact.guarantee + hint)


def _exact(tabled: Tabled, variables: int) -> Findings:
    close = f" The sum listed leaves out components of energy {tabled.left_out:.3g}." if tabled.left_out else ""
    guarantee = f"Exact: read from the values at all inputs of {variables} bits.{close}"
    return _decided(tabled, 1.0, guarantee, exact=True)


def _decided(tabled: Tabled, confidence: float, guarantee: str, *, exact: bool = False) -> Findings:
    return Findings(
        degree=tabled.degree,
        sparsity=tabled.sparsity,
        degree_at_least=tabled.degree,
        sparsity_at_least=tabled.sparsity,
        relevant=tabled.relevant,
        function=tabled.function,
        queries=0,
        seconds=0.0,
        confidence=confidence,
        exact=exact,
        mean_squared_error=tabled.left_out,
        guarantee=guarantee,
    )


# --- Queries ---------------------------------------------------------------------------------------------------------


def _asked(oracle: Oracle, rng: np.random.Generator, confidence: float, tolerance: float) -> Findings:
    """Recover the components; if there are too many, read the whole table, or that of the bits that matter."""
    values = oracle(_random_inputs(oracle, rng, min(_TRIED, max(oracle.left // 4, 0))))
    oracle.ask_again()
    hint = _about_signs(oracle, values)
    limit, tabled = oracle.limit, oracle.dim <= LARGEST_TABLE and _affords_table(oracle)
    if tabled:  # a search that costs as much as the table is none
        oracle.limit = min(limit - 2**oracle.dim - 2 * _TRIED, 2**oracle.dim // 4)
    else:
        oracle.limit -= min(oracle.left // 2, flips_needed(oracle.dim, confidence) + 2 ** (TABLE + 1))
    found = recover(oracle, rng=rng, confidence=1 - (1 - confidence) / 2, tolerance=tolerance)
    oracle.limit = limit
    if found.complete:
        function = found.function
        sum_ = Tabled(
            function.degree, function.sparsity, function.relevant, function, found.agreement.mean_squared_error
        )
        answer = _decided(sum_, confidence, _promise(oracle, found.agreement, confidence, tolerance))
    elif tabled and _affords_table(oracle):
        return _from_table(oracle, tolerance)
    else:
        seen = influences(oracle, rng=rng, confidence=confidence)
        answer = _of_few_bits(oracle, seen.relevant, rng, confidence) if seen and not tolerance else None
        answer = answer or _open(oracle, found, seen, rng, confidence, tolerance)
    oracle.ask_again()
    return replace(answer, guarantee=answer.guarantee + hint)


def _of_few_bits(
    oracle: Oracle, relevant: tuple[int, ...], rng: np.random.Generator, confidence: float
) -> Findings | None:
    """The function by its table over the bits that were seen to matter, if it agrees with that at fresh inputs."""
    if len(relevant) > TABLE or 2 ** len(relevant) > oracle.left // 2:
        return None
    x = np.zeros((2 ** len(relevant), oracle.dim), bool)
    x[:, list(relevant)] = points(len(relevant))
    values, place = oracle(x), 1 << np.arange(len(relevant))
    agreement = agree(
        oracle,
        lambda x: values[x[:, list(relevant)] @ place],
        rng=rng,
        confidence=1 - (1 - confidence) / 2,
    )
    if not agreement.reached:
        return None
    tabled = read_table(values, relevant, oracle.dim, resolution=oracle.resolution)
    return _decided(tabled, confidence, _promise(oracle, agreement, confidence, 0.0))


def _open(
    oracle: Oracle,
    found: Recovery,
    seen: Influences | None,
    rng: np.random.Generator,
    confidence: float,
    tolerance: float,
) -> Findings:
    """No answer: lower limits that are certain, and what was found."""
    level = find_degree(oracle, rng=rng, confidence=confidence)
    return Findings(
        degree=None,
        sparsity=None,
        degree_at_least=level.at_least,
        sparsity_at_least=found.at_least,
        relevant=seen.relevant if seen else found.function.relevant,
        function=found.function,
        queries=0,
        seconds=0.0,
        confidence=None,
        exact=False,
        mean_squared_error=found.agreement.mean_squared_error,
        guarantee=_excuse(oracle, found, tolerance),
    )


def _random_inputs(oracle: Oracle, rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.integers(0, 2, (size, oracle.dim), dtype=np.int8).astype(bool)


def _about_signs(oracle: Oracle, values: np.ndarray) -> str:
    """A function that is constant on bits may have been written for signs."""
    if not len(values) or (values != values[0]).any():
        return ""
    if not oracle.expects_signs(_random_inputs(oracle, np.random.default_rng(0), _TRIED)):
        return ""
    return (
        " It is constant on the bits 0, 1 that were tried, but not on the signs 1, -1: if it was written for signs, "
        "say inputs='signs' (on the command line, --inputs signs)."
    )


# --- Words -----------------------------------------------------------------------------------------------------------


def _promise(oracle: Oracle, agreement: Agreement, confidence: float, tolerance: float) -> str:
    if tolerance and agreement.share < 1:
        return (
            f"At {agreement.inputs} fresh random inputs the squared difference from the sum listed is at most "
            f"{tolerance:g}: with confidence {confidence:g} it is on all but {100 * agreement.share:.2g} % of the "
            "inputs. Degree and sparsity are those of this sum."
        )
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
