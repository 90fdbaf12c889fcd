r"""How many samples no learner can do without.

Source: edelman2022, Section 5, states the order $s\log T$; the number here counts hypotheses.
Guarantee: proved, for noiseless binary labels and inputs that do not depend on the support.
"""

import math
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import log, log_multisets
from genscope.bounds._parameters import Number, checked, count
from genscope.refusal import Refusal


@checked
def lower(
    *,
    context_length: Annotated[float, count("context length T")],
    support_size: Annotated[float, count("support size s")],
    confidence: Annotated[float, Number("probability of finding the support", high=1, closed=(False, True))] = 0.95,
) -> Bound:
    r"""Samples needed to find a uniformly random support of s among T bits (edelman2022, Section 5).

    With probability $1-\delta$: $m\ge\log_2\binom Ts+\log_2(1-\delta)$. For given inputs, $m$ labels lead a
    deterministic learner to at most $2^m$ supports, so it is right with probability at most $2^m/\binom Ts$; a
    randomized learner is a mixture of these.
    """
    if support_size > context_length:
        raise Refusal(
            f"lower got support_size={support_size} with context_length={context_length}: the support is a set of "
            f"positions, so support_size must be at most {context_length}. Choose a smaller support or a longer "
            "context."
        )
    rest = context_length - support_size
    terms = {
        "supports": log_multisets(log(rest), support_size) / math.log(2) if rest else 0.0,
        "confidence": math.log2(confidence),
    }
    return Bound("lower", terms, explicit=True, source="edelman2022, Section 5", trivial=0.0, lower=True)
