"""The room Function: a Boolean expression, its truth table and what its spectrum says.

Source: lintilhac2026, Equation (1).
Guarantee: that of `fourier`: exact up to rounding, for at most `LARGEST` variables.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from genscope.explorer import asking, question_queue
from genscope.explorer.room import Ask, Room
from genscope.fourier import spectrum
from genscope.fourier.cube import signs
from genscope.fourier.expression import Expression, parse
from genscope.fourier.transform import walsh_coefficients
from genscope.refusal import Refusal

LONGEST = 20_000  # characters
LARGEST = 16  # variables of one question
LARGEST_WORK = 2**26  # characters times inputs: a fraction of a second
SHOWN_TABLE = 8  # variables of a truth table that a page shows
SHOWN_COMPONENTS = 24

GALLERY = (
    ("And", "x0 & x1 & x2", "One input in eight is 1: the sparse target of the sample bounds."),
    ("Majority of 5", "maj(x0, x1, x2, x3, x4)", "Monotone and symmetric: one attention head suffices."),
    ("Parity of 4", "parity(x0, x1, x2, x3)", "A single component, of full degree: the hardest to learn."),
    ("Address", "~x0 & ~x1 & x2 | x0 & ~x1 & x3 | ~x0 & x1 & x4 | x0 & x1 & x5", "Two bits choose one of four."),
    ("Inner product", "x0 & x1 ^ x2 & x3 ^ x4 & x5", "All coefficients have the same size: a bent function."),
    ("Tribes", "x0 & x1 & x2 | x3 & x4 & x5 | x6 & x7 & x8", "Every variable matters little."),
    ("Not all equal", "~(and(x0, x1, x2) | and(~x0, ~x1, ~x2))", "Weight on level 2 alone, besides the constant."),
    ("Exactly two of 6", "thr(2; x0, x1, x2, x3, x4, x5) & ~thr(3; x0, x1, x2, x3, x4, x5)", "Not monotone."),
    ("Twelve variables", "maj(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10) ^ x11", "4,096 inputs, all of them read."),
)


def room(store: str) -> Room:
    """The room; it needs no store."""
    return Room(
        "function",
        "Function",
        "Write a Boolean function of bits, or click its truth table, and see what makes it easy or hard to learn.",
        {"analyse": analyse},
        page=lambda: {"gallery": GALLERY, "longest": LONGEST, "largest": LARGEST},
    )


def analyse(ask: Ask) -> dict[str, Any]:
    """What there is to say of the expression in `expression`, with `values` "signs" (the default) or "bits"."""
    text = asking.text(ask, "expression", longest=LONGEST)
    values = asking.choice(ask, "values", ("signs", "bits"), default="signs")
    expression = parse(text)
    variables = _few(expression)
    bits = expression.truth_table(variables)
    question_queue.check()
    table = signs(bits, np.float64) if values == "signs" else bits.astype(np.float64)
    coefficients = walsh_coefficients(table)
    question_queue.check()
    influences = spectrum.influences(table)
    return {
        "variables": list(variables),
        "support": list(expression.support),
        "ones": int(bits.sum()),
        "inputs": len(bits),
        "mean": float(coefficients[0]),
        "degree": spectrum.degree(table),
        "sparsity": spectrum.sparsity(table),
        "levels": spectrum.level_weights(table).tolist(),
        "influences": influences.tolist(),
        "total_influence": float(influences.sum()),
        "components": _largest(coefficients, variables),
        "constant": {"chi": float(coefficients[0]), "phi": float(2 * coefficients[0] - coefficients.sum())},
        "table": "".join(map(str, bits.astype(int))) if len(variables) <= SHOWN_TABLE else None,
    }


def _few(expression: Expression) -> tuple[int, ...]:
    """The variables, if their inputs can be listed at once."""
    variables = expression.variables
    if len(variables) > LARGEST:
        raise Refusal(
            f"the expression mentions {len(variables)} variables: this page lists all inputs, so it takes at most "
            f"{LARGEST} variables. Use fewer here; genscope probe EXPR --bits {max(variables) + 1} finds the "
            "spectrum of a larger one by queries."
        )
    if len(expression.text) * 2 ** len(variables) > LARGEST_WORK:  # no step without a character
        raise Refusal(
            f"the expression has {len(expression.text):,} characters, evaluated at 2^{len(variables)} inputs: for "
            f"that many inputs this page takes at most {LARGEST_WORK >> len(variables):,} characters. Shorten it, "
            "or use fewer variables."
        )
    return variables


def _largest(coefficients: Float[np.ndarray, " sets"], variables: tuple[int, ...]) -> list[dict[str, Any]]:
    """The components of largest coefficient, the constant aside: sets of variables, in both bases."""
    sizes = np.abs(coefficients)
    present = np.flatnonzero(sizes > spectrum.TOLERANCE * np.linalg.norm(coefficients))
    chosen = present[present > 0]
    chosen = chosen[np.lexsort((chosen, -sizes[chosen].round(12)))][:SHOWN_COMPONENTS]  # equal ones in a fixed order
    return [
        {
            "set": [variable for j, variable in enumerate(variables) if mask >> j & 1],
            "chi": float(coefficients[mask]),
            "phi": float(2 * coefficients[mask]),
        }
        for mask in chosen.tolist()
    ]
