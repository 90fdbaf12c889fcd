r"""What function is it? Degree, sparsity, relevant bits and Fourier components of a black box, in one call.

Source: lintilhac2026, Appendix H (degree and sparsity from queries).
Departures: components are recovered first and the sum is then compared with the function at fresh inputs, instead of
testing degree and sparsity one after the other: it costs fewer queries and says more.
Guarantee: that of `probe.witness` if `degree` and `sparsity` are given, and in words with every answer. If they are
None, the function has more components than the queries allow to find, and what is given are lower limits that are
certain.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genscope.display import Card, Displayed
from genscope.fourier import Expression
from genscope.fourier.walsh import WalshFunction
from genscope.probe.degree import find_degree
from genscope.probe.oracle import LIMIT, Inputs, Oracle
from genscope.probe.outcome import check_confidence
from genscope.probe.recovery import Recovery
from genscope.probe.table import read_table
from genscope.probe.witness import LARGEST_TABLE, TRIED, Glimpse, Witness, exactly, find_witness, reads_at_once
from genscope.refusal import Refusal

LARGEST_BITS = 10_000


@dataclass(frozen=True)
class Findings(Displayed):
    """What a probe found; `degree`, `sparsity` and `confidence` are None if it cannot tell with its queries.

    `function` is the sum of the components that were found (of more than 4096 in a table, the largest), in the basis of
    characters; the constant is not counted in its sparsity. `left_out` is the share of the function's energy, its
    variance, that the sum leaves out: exact from a table, else as measured at fresh inputs.
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
    left_out: float
    guarantee: str

    def card(self) -> Card:
        """What is shown: the answers, the largest components, and the guarantee."""
        told = self.degree is not None
        function = self.function.card()
        rows = [
            ("degree", self.degree if told else f"at least {self.degree_at_least}"),
            ("components", self.sparsity if told else f"at least {self.sparsity_at_least}"),
            (
                "relevant bits",
                [f"x{bit}" for bit in self.relevant[:20]] + ["…"] * (len(self.relevant) > 20) or "none found",
            ),
            ("queries", self.queries),
            ("share of energy left out", self.left_out),
            ("confidence", "certain" if self.exact else self.confidence),
        ]
        title = "The function was identified" if told else "The function was not identified with these queries"
        return Card(title, rows, function.tables, [self.guarantee])


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
    tolerance E, a sum that leaves out at most the share E of the function's energy counts as the function.

    >>> found = probe(lambda x: 3.0 * (x[0] ^ x[5]), 8)
    >>> found.degree, found.sparsity, found.relevant, found.exact
    (2, 1, (0, 5), True)
    """
    check_confidence(confidence)
    limit = LIMIT if queries is None else queries
    if not 1 <= bits <= LARGEST_BITS or limit < 1 or not 0 <= tolerance < 1:
        raise Refusal(
            f"probe got {bits=}, {queries=} and {tolerance=}: bits must be 1 to {LARGEST_BITS}, queries at least 1, "
            "and the tolerance a share of the energy, at least 0 and below 1. Correct the one that is out of range."
        )
    start = time.perf_counter()
    rng = np.random.default_rng(seed)
    found = _known(target, bits, limit, tolerance) if isinstance(target, Expression) else None
    if found is None:
        given: Inputs = "booleans" if isinstance(target, Expression) else inputs
        found = _queried(Oracle(target, bits, limit=limit, inputs=given), rng, confidence, tolerance)
    return replace(found, seconds=time.perf_counter() - start)


def _known(target: Expression, bits: int, limit: int, tolerance: float) -> Findings | None:
    """A short expression, by its table over the variables that it mentions: no other bit can matter."""
    variables = target.variables
    if variables and variables[-1] >= bits:
        raise Refusal(
            f"probe got {bits=} for an expression that mentions x{variables[-1]}: bits are numbered from x0. Give at "
            f"least {variables[-1] + 1} bits."
        )
    if len(variables) > LARGEST_TABLE or 2 ** len(variables) > limit:
        return None
    tabled = read_table(target.truth_table(variables), variables, bits, resolution=1e-12, tolerance=tolerance)
    return _decided(exactly(tabled, len(variables)), 1.0, queries=2 ** len(variables))


def _queried(oracle: Oracle, rng: np.random.Generator, confidence: float, tolerance: float) -> Findings:
    """Ask some inputs twice, look for a witness, and say what is certain if there is none."""
    constant, hint = False, ""
    if not reads_at_once(oracle):
        values = oracle(_random_inputs(oracle, rng, min(TRIED, max(oracle.left // 4, 0))))
        oracle.ask_again()
        constant = len(values) > 0 and bool((values == values[0]).all())
        hint = _about_signs(oracle) if constant else ""
    found = find_witness(oracle, rng=rng, confidence=confidence, tolerance=tolerance)
    if isinstance(found, Witness):
        answer = _decided(found, confidence, queries=0)
        if found.tabled.sparsity:
            hint = ""
        elif not constant:
            hint = _about_signs(oracle)
    else:
        answer = _open(oracle, found, rng, confidence, tolerance)
    oracle.ask_again()
    return replace(answer, queries=oracle.queries, guarantee=answer.guarantee + hint)


def _decided(witness: Witness, confidence: float, *, queries: int) -> Findings:
    tabled = witness.tabled
    return Findings(
        degree=tabled.degree,
        sparsity=tabled.sparsity,
        degree_at_least=tabled.degree,
        sparsity_at_least=tabled.sparsity,
        relevant=tabled.relevant,
        function=tabled.function,
        queries=queries,
        seconds=0.0,
        confidence=1.0 if witness.exact else confidence,
        exact=witness.exact,
        left_out=tabled.left_out,
        guarantee=witness.guarantee,
    )


def _open(oracle: Oracle, seen: Glimpse, rng: np.random.Generator, confidence: float, tolerance: float) -> Findings:
    """No answer: lower limits that are certain, and what was found."""
    level = find_degree(oracle, rng=rng, confidence=confidence, generic=True)
    found = seen.recovery
    return Findings(
        degree=None,
        sparsity=None,
        degree_at_least=level.at_least,
        sparsity_at_least=found.at_least,
        relevant=seen.influences.relevant if seen.influences else found.function.relevant,
        function=found.function,
        queries=0,
        seconds=0.0,
        confidence=None,
        exact=False,
        left_out=found.agreement.left_out,
        guarantee=_excuse(oracle, found, tolerance),
    )


def _random_inputs(oracle: Oracle, rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.integers(0, 2, (size, oracle.dim), dtype=np.int8).astype(bool)


def _about_signs(oracle: Oracle) -> str:
    """A function that is constant on bits may have been written for signs."""
    if not oracle.expects_signs(_random_inputs(oracle, np.random.default_rng(0), TRIED)):
        return ""
    return (
        " It is constant on the bits 0, 1 that were tried, but not on the signs 1, -1: if it was written for signs, "
        "say inputs='signs' (on the command line, --inputs signs)."
    )


def _excuse(oracle: Oracle, found: Recovery, tolerance: float) -> str:
    agreement, at_least = found.agreement, found.at_least
    close = (
        f" The components listed leave out about {agreement.left_out:.3g} of the energy; a tolerance above that would "
        "accept them."
        if 0 < agreement.left_out < 0.5
        else ""
    )
    if agreement.reached is None:
        why = "it takes more to compare what is listed with the function"
    elif at_least:
        why = f"the function has at least {at_least} components besides the constant"
    else:
        why = "what is listed is not the function"
    within = f" within the tolerance {tolerance:g}" if tolerance else ""
    return (
        f"Cannot tell with {oracle.limit} queries{within}: {why}.{close} The degree and the number of components are "
        "at least those given, and bits called relevant are. Allow more queries."
    )
