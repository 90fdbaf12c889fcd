"""One color, one marker and one name for each thing, in every figure, whatever else is in it.

Filled marks are measured, hollow stars published; what is proved is a dashed line without marks.
Guarantee: what the table names looks the same everywhere; other series look by their place in their figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from genscope.lab import Figure
from genscope.report.svg import SERIES

MARKERS = "osD^vP"


@dataclass(frozen=True)
class Look:
    """How a series is drawn."""

    colour: str
    marker: str


_ORDER: Mapping[str, Sequence[str]] = {  # axes, and their values by the place of their look
    "architecture": ("transformer", "ffn", "gru", "rnn", "lstm"),
    "network": ("transformer", "mlp", "gru", "rnn", "lstm", "linear"),
    "method": ("chain", "one-pass", "coded-chain"),
    "preset": ("tuned", "minGPT", "decayed"),
    "learner": ("plain", "noisy", "split"),
    "degree": ("1", "2", "3", "4", "5", "6"),
    "sparsity": ("2", "8", "5", "10", "20"),
    "restriction": ("affine", "coordinate"),
    "scores": ("factored", "full"),
    "arm": ("paper", "half", "quarter", "decay", "noise"),
    "bound": ("paper", "covering", "tuned", "paper-semi-analytic", "tuned-clipped"),
}
_WORDS = {
    "transformer": "Transformer",
    "ffn": "FFN",
    "mlp": "MLP",
    "gru": "GRU",
    "gru-128": "GRU (128 units)",
    "rnn": "simple RNN",
    "lstm": "LSTM",
    "one-pass": "one pass",
    "chain": "chain of thought",
    "coded-chain": "chain, coded positions",
    "tuned-clipped": "tuned weights, clipped loss",
    "paper-semi-analytic": "paper's weights, perturbation measured",
}


_SMALLER = {"gru-128": ("gru", "P")}  # the color of another, with a marker of its own


def said(name: str, figure: Figure | None = None) -> str:
    """The name of a series in words: the figure's, or those that all figures share.

    >>> said("ffn"), said("8"), said("8", Figure(title="", labels={"8": "8 heads"}))
    ('FFN', '8', '8 heads')
    """
    return (figure.labels.get(name) if figure else None) or _WORDS.get(name, name)


def looks(axis: str | None, names: Sequence[str]) -> dict[str, Look]:
    """The looks of the series of a figure, no two alike.

    >>> looks("architecture", ["ffn", "gru"])["ffn"] == looks("architecture", ["transformer", "ffn"])["ffn"]
    True
    """
    order = _ORDER.get(axis or "", ())
    taken = {order.index(name) for name in names if name in order}
    found = {}
    for name in names:
        if name in _SMALLER and axis == "architecture":
            other, marker = _SMALLER[name]
            found[name] = Look(_look(order.index(other)).colour, marker)
            continue
        place = order.index(name) if name in order else next(n for n in range(len(names) + 9) if n not in taken)
        taken.add(place)
        found[name] = _look(place)
    return found


def _look(place: int) -> Look:
    """Six colors with six markers, then the colors again with other markers."""
    turn, rest = divmod(place, len(SERIES))
    return Look(SERIES[rest], MARKERS[(rest + turn) % len(MARKERS)])
