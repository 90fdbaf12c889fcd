"""The room Construction: the Transformer that computes an expression, its weights, and what it attends to.

Source: edelman2022, Section 5; lintilhac2026, Appendix B.
Guarantee: that of `constructions`: every construction is verified before it is shown.
"""

import re
import shlex
from typing import Any, NamedTuple

import numpy as np

from genscope.explorer import asking, question_queue
from genscope.explorer.room import Ask, Download, Room
from genscope.fourier.expression import parse
from genscope.refusal import Refusal

NETWORKS = {
    "positional": "One head, positional embeddings (Edelman et al., 2022)",
    "bag": "One head, bag of vectors (Edelman et al., 2022)",
    "random": "One head, random vectors of low dimension (Edelman et al., 2022)",
    "full": "Fourier components, all parameters (Lintilhac and Shaikh, 2026)",
    "minimal": "Fourier components, few parameters (Lintilhac and Shaikh, 2026)",
    "tuned": "Fourier components, rescaled (ours)",
}
FOURIER = ("full", "minimal", "tuned")
LONGEST = 2_000  # characters
MOST_BITS, MOST_BITS_FOURIER = 64, 32  # some seconds of verification
MOST_RELEVANT, MOST_RELEVANT_RANDOM = 8, 5  # all patterns meet all inputs, and random vectors share nothing


class Wanted(NamedTuple):
    """A construction by name: the expression, the number of bits, and the kind of network."""

    expression: str
    context_length: int
    network: str


def room(store: str) -> Room:
    """The room; it needs no store."""
    return Room(
        "construction",
        "Construction",
        "A Transformer whose weights are written down instead of learned: flip the bits and watch where it looks.",
        {"build": build, "attend": attend},
        {"model.safetensors": download},
        page=lambda: {"networks": NETWORKS, "most": MOST_BITS, "longest": LONGEST},
    )


def build(ask: Ask) -> dict[str, Any]:
    """The construction: norms beside the theorem's, weights, and whether it is exact."""
    wanted = _wanted(ask)
    from genscope.explorer import _building

    question_queue.check()
    return _building.build(wanted).facts


def attend(ask: Ask) -> dict[str, Any]:
    """Attention and output at the input `bits`, a text of 0 and 1."""
    wanted = _wanted(ask)
    bits = asking.text(ask, "bits", longest=MOST_BITS)
    if not re.fullmatch("[01]*", bits) or len(bits) != wanted.context_length:
        raise Refusal(
            f"got the input {bits[:40]!r}: it must be {wanted.context_length} characters, each 0 or 1, one for each "
            "bit. Correct it."
        )
    from genscope.explorer import _building

    question_queue.check()
    return _building.attend(wanted, np.array([bit == "1" for bit in bits]))


def download(ask: Ask) -> Download:
    """The model as a file."""
    wanted = _wanted(ask)
    from genscope.explorer import _building

    return Download("model.safetensors", "application/octet-stream", _building.file(wanted))


def _wanted(ask: Ask) -> Wanted:
    """The construction that is asked for, if it is small enough for a page."""
    text = asking.text(ask, "expression", longest=LONGEST)
    network = asking.choice(ask, "network", tuple(NETWORKS))
    most = MOST_BITS_FOURIER if network in FOURIER else MOST_BITS
    length = asking.whole(ask, "context_length", least=1, most=most, instead="genscope construct")
    expression = parse(text, length)
    if len(expression.variables) > 16:
        raise Refusal(
            f"the expression mentions {len(expression.variables)} variables: this page takes at most 16. Use fewer, "
            "or run genscope construct."
        )
    relevant = len(expression.support)
    allowed = MOST_RELEVANT_RANDOM if network == "random" else MOST_RELEVANT
    if relevant > allowed:
        raise Refusal(
            f"the expression depends on {relevant} variables: this page builds such a network for at most "
            f"{allowed}. Use fewer, or run genscope construct {shlex.quote(text)} --context-length {length}."
        )
    return Wanted(text, length, network)
