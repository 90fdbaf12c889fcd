"""The class of a question: all functions that an expression becomes when its variables are placed at other bits.

Guarantee: exact; None where the project cannot tell (more than 8 variables that are not all exchangeable).
"""

import math

from genscope.questions.question import Question
from genscope.refusal import Refusal
from genscope.tasks import information_bound


def placements(question: Question, context_length: int) -> int | None:
    """How many different functions the placements of an expression are.

    >>> from genscope.questions.question import ask
    >>> placements(ask("maj(x0,x5,x9)^x20"), 64)
    2541504
    """
    if question.expression is None:
        return None
    if question.fixed_support:
        return 1
    size = len(question.expression.support)
    try:
        distinct = information_bound(question.expression, context_length=size)
    except Refusal:
        return None
    # Among as many bits as there are variables the numbers are small, and the quotient is exact.
    return math.perm(context_length, size) // round(math.factorial(size) / 2**distinct)
