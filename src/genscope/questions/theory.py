r"""What theory says of a question: numbers of samples that no learner can do without, that an ideal one needs, and that
bounds for networks imply.

Source: edelman2022, Sections 4 and 5 (covering bound of a head with the norms of the construction; hypotheses counted);
anthony1999, Theorem 10.1 (margins); lintilhac2026, Theorem 2 (norm and sharpness of the Fourier construction).
Departures: upper bounds are asked for an error of at most `TARGET`; a classifier by a real function errs at most four
times its squared error.
Guarantee: each row says whether its constants are proved. The covering bound speaks of all heads with norms at most
those of the construction under its read-out, the bound by norm and sharpness of networks that the Fourier construction
dominates (of uniform bits, and without the remainder beyond the second order): both are about existence, not training.
"""

import contextlib
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array

from genscope import bounds, constructions
from genscope.constructions import SparseFunction
from genscope.fourier import influences, signs
from genscope.fourier.spectrum import degree, from_table, sparsity
from genscope.fourier.walsh import WalshFunction
from genscope.questions.networks import IDEAL, shown
from genscope.questions.placements import placements
from genscope.questions.question import Question
from genscope.questions.trial import network_of
from genscope.refusal import Refusal
from genscope.tasks import expected_rivals, ideal_sample_size
from genscope.tasks.ideal_learner import MOST_VARIABLES

TARGET = 0.1  # error that upper bounds are asked for
GUESSING = 0.5  # error of whoever knows nothing of balanced labels
CONFIDENCE = 0.95
HELD_OUT = 10_000  # examples that a run must get right
MOST_COMPONENTS = 256  # of a Fourier construction: some seconds


@dataclass(frozen=True)
class Statement:
    """A number of samples that theory names, for one context length.

    `explicit`: its constants are proved; otherwise it is an order or an estimate. `vacuous`: at the sample sizes that
    were measured it says nothing that is not known without it; None where nothing was measured.
    """

    name: str
    context_length: int
    sample_size: float | None
    explicit: bool
    vacuous: bool | None
    says: str
    source: str
    lower: bool = False

    def facts(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def function_facts(question: Question) -> dict[str, Any]:
    """Degree, sparsity, support and influence of the function."""
    if question.expression is None:
        return {"degree": None, "sparsity": None, "support": None, "influence": None}
    _, table = question.expression.reduced
    return {
        "degree": degree(table),
        "sparsity": sparsity(table),
        "support": len(table).bit_length() - 1,
        "influence": math.fsum(influences(signs(table, np.float64))),
    }


def statements(
    question: Question,
    context_length: int,
    networks: Sequence[str] = (),
    measured: float | None = None,
) -> list[Statement]:
    """All that is known for a context length; `measured` is a sample size at which a network has learned."""
    made = limits(question, context_length)
    if question.expression is not None:
        made += [_covering(question, context_length, measured), _flatness(question, context_length, measured)]
    made += [_counting(question, name, context_length, measured) for name in networks if name != IDEAL]
    return made


def limits(question: Question, context_length: int) -> list[Statement]:
    """What no learner can do without, and what an ideal one needs."""
    if question.expression is None or question.fixed_support:
        return []
    return [_information(question, context_length), _ideal(question, context_length)]


def _information(question: Question, context_length: int) -> Statement:
    """Labels that name one of the placements: noiseless by counting, noisy by Fano's inequality."""
    count = placements(question, context_length)
    bits = math.log2(count or 1)
    least = bits + math.log2(question.success)
    if question.noise:
        least = (question.success * bits - 1) / question.label_bits
    reason = _blurred(question, context_length, count)
    exact = reason is None
    return Statement(
        "information bound",
        context_length,
        max(0, math.ceil(least)) if exact else None,
        explicit=True,
        vacuous=not exact or least <= 0,
        says="no learner that must find the relevant bits can do with fewer" if exact else f"nothing: {reason}",
        source="edelman2022, Section 5",
        lower=True,
    )


def _blurred(question: Question, context_length: int, count: int | None) -> str | None:
    """Why a run may succeed without having found the bits; None if it cannot."""
    if count is None:
        return "placements are not counted"
    if question.accuracy < 1:
        return "a network that may err need not find all bits"
    assert question.expression is not None
    known = {"context_length": context_length, "probability": question.probability}
    if expected_rivals(question.expression, sample_size=HELD_OUT, **known) > 0.01:
        return f"other placements may agree on all of {HELD_OUT:,} held-out examples, because the bits are so biased"
    return None


def _ideal(question: Question, context_length: int) -> Statement:
    """What suffices for the learner that returns any placement which fits, by Markov's inequality."""
    failure, found = 1 - question.success, None
    says = f"nothing: it is computed without noise, at an accuracy of 1, and up to {MOST_VARIABLES} unlike bits"
    if question.expression is not None and not question.noise and question.accuracy == 1:
        with contextlib.suppress(Refusal):  # too many variables
            known = {"context_length": context_length, "failure": failure, "probability": question.probability}
            found = ideal_sample_size(question.expression, **known)
            says = f"with this many samples, at most {failure:.2g} other placements are expected to fit"
    return Statement(
        "ideal learner",
        context_length,
        found,
        explicit=True,
        vacuous=found is None,
        says=says,
        source="hypotheses counted (genscope.tasks.ideal_sample_size)",
    )


def _construction_place(question: Question, context_length: int) -> SparseFunction:
    assert question.expression is not None
    support, table = question.expression.reduced
    places = support if question.fixed_support else tuple(range(len(support)))
    return SparseFunction(places, table.astype(float), context_length)


@functools.lru_cache(maxsize=64)
def construction_norms(question: Question, context_length: int) -> Mapping[str, float]:
    """Norms of the construction's head and all else that its covering bound reads, as `bounds.head` names it."""
    built = constructions.construct(_construction_place(question, context_length), key=jr.key(0))
    return constructions.cover_arguments(built, context_length)


def _covering(question: Question, context_length: int, measured: float | None) -> Statement:
    cover = bounds.head(**construction_norms(question, context_length))  # pyright: ignore[reportArgumentType]  # all are floats

    def error(samples: int) -> float:
        return bounds.margin(log_cover=cover.value, empirical_error=0.0, samples=samples, confidence=CONFIDENCE).value

    return Statement(
        "covering bound",
        context_length,
        bounds.sample_size(error, TARGET),
        explicit=True,
        vacuous=None if measured is None else error(math.ceil(measured)) >= GUESSING,
        says=f"heads with the construction's norms err at most {TARGET:g} if they fit the sample with its margin",
        source="edelman2022, Corollary 4.5; anthony1999, Theorem 10.1",
    )


def _flatness(question: Question, context_length: int, measured: float | None) -> Statement:
    assert question.expression is not None
    name, source = "PAC-Bayes bound", "lintilhac2026, Theorem 2"
    says = f"networks no larger and no sharper than the Fourier construction err at most {TARGET:g} (uniform bits)"
    most = min(context_length, MOST_COMPONENTS)
    if sparsity(question.expression.reduced[1]) > most:
        reason = f"nothing: the Fourier construction is computed for at most {most} components here"
        return Statement(name, context_length, None, explicit=False, vacuous=None, says=reason, source=source)

    norm, trace = _fourier(question, context_length)

    def error(samples: int) -> float:
        found = bounds.pac_bayes(
            norm_squared=norm, trace=trace, constant=0.5, samples=max(8, samples), confidence=CONFIDENCE, form="kl"
        )
        return 4 * found.value

    return Statement(
        name,
        context_length,
        bounds.sample_size(error, TARGET),
        explicit=False,
        vacuous=None if measured is None else error(math.ceil(measured)) >= GUESSING,
        says=says,
        source=source,
    )


def _fourier(question: Question, context_length: int) -> tuple[float, float]:
    """Squared norm and trace of the tuned Fourier construction."""
    function = _construction_place(question, context_length)
    short = from_table(function.values)
    supports = tuple(tuple(function.support[place] for place in each) for each in short.supports)
    whole = WalshFunction(context_length, supports, short.coefficients, "chi", short.constant)
    built = constructions.fourier_components(whole, variant="tuned", key=jr.key(0))
    return built.norm_squared["total"], built.trace + 4 * built.trace_sem


def _counting(question: Question, name: str, context_length: int, measured: float | None) -> Statement:
    learner = network_of(question, name)

    def weights() -> list[Array]:
        return jax.tree.leaves(eqx.filter(learner.build(jr.key(0), context_length), eqx.is_inexact_array))

    # A module of PyTorch cannot be built from a key that is only traced.
    own = any(file.label == name for file in question.builders)
    parameters = sum(math.prod(leaf.shape) for leaf in (weights() if own else jax.eval_shape(weights)))
    return Statement(
        f"parameters of {shown(name)}",
        context_length,
        parameters / TARGET,
        explicit=False,
        vacuous=None if measured is None else measured < 2 * parameters,
        says=f"{parameters:,} parameters divided by an error of {TARGET:g}",
        source="Vapnik and Chervonenkis, up to a constant and logarithms",
    )
