"""Does a construction keep its promise? All inputs where they can be listed, the hardest ones where not.

Guarantee: up to 20 bits every input is checked. Beyond, every pattern of the support meets all-zero, all-one, random
and adversarial irrelevant bits; the last make a unit behind the head as large or as small as any bits can
(`_attention_sums.extremes`). Such a unit is monotone in what it reads, so a bit that it tells rightly at both extremes
it tells rightly everywhere (read-outs that the head's ReLU clips aside). All in float64.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.constructions._attention_sums import Sums, Terms, attention_terms, directions, extremes, outputs
from genscope.constructions._base import Construction
from genscope.constructions.sparse_function import SparseFunction
from genscope.display import Card, Displayed
from genscope.models.edelman2022 import Transformer
from genscope.refusal import Refusal

EXHAUSTIVE = 20  # bits
ROUNDING = 1e-10  # of an exact construction in float64, relative to the function's largest value
_BLOCK = 2**14  # inputs listed at a time


@dataclass(frozen=True)
class Verification(Displayed):
    """What `verify` found. An error that is not a number is neither exact nor kept."""

    max_error: float
    inputs_checked: int
    exhaustive: bool
    exact: bool  # no error beyond rounding
    kept: bool  # no error beyond a promised one, and rounding

    def card(self) -> Card:
        """What is shown."""
        word = "exact, rounding aside" if self.exact else "as promised" if self.kept else "not as promised"
        inputs = (
            f"all {self.inputs_checked:,} inputs"
            if self.exhaustive
            else f"{self.inputs_checked:,} hard and random inputs"
        )
        return Card(f"The construction is {word}", [("largest error", self.max_error), ("checked", inputs)])

    @property
    def verified(self) -> bool:
        """The construction does what it should."""
        return self.exact or self.kept


def verify(construction: Construction, function: SparseFunction, *, key: Key[Array, ""]) -> Verification:
    """Compare the model with the function that it represents.

    >>> from genscope.constructions import symmetric
    >>> function = SparseFunction.parse("parity(x1, x4, x5)", context_length=8)
    >>> verdict = verify(symmetric(function), function, key=jr.key(0))
    >>> verdict.exact, verdict.inputs_checked, verdict.exhaustive
    (True, 256, True)
    """
    model = construction.model
    if model.encoding.context_length != function.context_length:
        raise Refusal(
            f"verify got a model of {model.encoding.context_length} bits and a function of {function.context_length}: "
            "both must read the same inputs. Build the construction for this function."
        )
    split = _split(model, function)
    exhaustive = function.context_length <= EXHAUSTIVE
    errors, checked = [], 0
    for sums in _all_inputs(split) if exhaustive else _hard_inputs(split, model, key):
        values = np.tile(function.values, len(sums) // len(function.values))
        errors.append(np.abs(outputs(model, sums) - values).max())
        checked += len(sums)
    if exhaustive:
        checked = 2**function.context_length
    largest = float(np.max(errors))
    exact = largest <= _allowed(0.0, function)
    return Verification(largest, checked, exhaustive, exact, largest <= _allowed(construction.error, function))


def _allowed(promised: float, function: SparseFunction) -> float:
    """The promised error with rounding; a promise of nothing is never kept."""
    return promised + ROUNDING * max(1.0, float(np.abs(function.values).max())) if math.isfinite(promised) else -1.0


def smallest_gamma(
    construct: Callable[..., Construction], function: SparseFunction, *, key: Key[Array, ""], tolerance: float = 1e-3
) -> float:
    """The least sharpness, to within `tolerance`, at which a construction still does what it should; by bisection.

    `construct` takes the function and `gamma=`. The error allowed is the one promised at the default sharpness; NaN if
    there is no promise, or it is not kept.
    """
    usual = construct(function)
    allowed = _allowed(usual.error, function)

    def works(built: Construction) -> bool:
        return verify(built, function, key=key).max_error <= allowed

    if not works(usual):
        return math.nan
    low, high = 0.0, usual.gamma
    while high - low > tolerance:
        middle = (low + high) / 2
        low, high = (low, middle) if works(construct(function, gamma=middle)) else (middle, high)
    return high


class _Split(NamedTuple):
    """Sums over the support for all its patterns, with CLS, and the terms of the irrelevant positions."""

    patterns: Sums
    others: Terms

    def meet(self, fillings: Sums) -> Sums:
        """Every pattern with every filling of the irrelevant positions, the patterns varying fastest."""
        return (fillings[:, None] + self.patterns[None]).reshape(-1, fillings.shape[1])


def _split(model: Transformer, function: SparseFunction) -> _Split:
    terms, cls = attention_terms(model)
    support = np.asarray(function.support, int)
    others = np.delete(np.arange(function.context_length), support)
    return _Split(terms.at(support).all_choices() + cls, terms.at(others))


def _all_inputs(split: _Split) -> Iterator[Sums]:
    """All inputs; those that differ by exchanging tokens which the head cannot tell apart are computed once."""
    fillings = split.others.different_choices()
    size = max(1, _BLOCK // len(split.patterns))
    for start in range(0, len(fillings), size):
        yield split.meet(fillings[start : start + size])


def _hard_inputs(split: _Split, model: Transformer, key: Key[Array, ""]) -> Iterator[Sums]:
    """Every pattern of the support, with irrelevant bits that are all equal, random of all densities, adversarial.

    With tokens that are alike, N and D are affine in the number of ones, and N/D is extreme where all bits are equal.
    """
    patterns, others = split
    yield split.meet(np.stack([others.zero.sum(axis=0), others.one.sum(axis=0)]))
    rng = np.random.default_rng(np.asarray(jr.key_data(key)))  # JAX would compile for each length
    for density in rng.random(min(64, 2**16 // len(patterns))):
        yield split.meet(others.choice(rng.random(len(others.zero)) < density)[None])
    if not others.alike:
        for direction in directions(model):
            yield extremes(others, patterns, direction)
