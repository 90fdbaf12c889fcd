"""Bound: what a theorem promises, summand by summand, and whether its constants are proved.

Guarantee: exact; the value is the sum of the terms. A number that no float can hold is `inf`, which is still a valid
upper bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from genscope.display import Card, Displayed, shown

Kind = Literal["analytic", "semi-analytic", "estimate"]


@dataclass(frozen=True)
class Bound(Displayed):
    """The promise of a theorem for given norms, accuracies and sample sizes."""

    name: str
    terms: Mapping[str, float]
    """Named summands."""
    explicit: bool
    """Every constant is proved; otherwise the number is an order with a constant of the caller's choice."""
    source: str
    kind: Kind = "analytic"
    trivial: float | None = None
    """What everyone knows without the theorem (the range of the loss); None: a covering number has no such value."""
    lower: bool = False
    """The theorem bounds from below."""
    choices: Mapping[str, float] = field(default_factory=dict)
    """Free parameters that were chosen, by name."""

    @property
    def value(self) -> float:
        """The sum of the terms."""
        return float(sum(self.terms.values()))

    def __repr__(self) -> str:
        form = self.kind if self.explicit or self.kind == "estimate" else "order only"
        return f"Bound({self.name!r}, {self.value:.6g}, {form}, {self.source!r})"

    @property
    def vacuous(self) -> bool | None:
        """Whether the bound says nothing new; None without a trivial value."""
        if self.trivial is None:
            return None
        return self.value <= self.trivial if self.lower else self.value >= self.trivial

    @property
    def proved(self) -> str:
        """Whether the constants are proved, as a sentence."""
        if self.kind == "estimate":
            return "An estimate, not a certificate: a term is left out."
        return "Explicit: every constant is proved." if self.explicit else "Order only: the constant is not known."

    @property
    def trust(self) -> str:
        """How far the number can be trusted, in sentences."""
        if self.vacuous is None:
            return self.proved
        if self.vacuous:
            return f"{self.proved} Vacuous: the trivial bound is {self.trivial:.7g}."
        return f"{self.proved} Informative: the trivial bound is {self.trivial:.7g}."

    def card(self) -> Card:
        """What is shown: the value, its terms, and how far to trust it."""
        side = "about" if self.kind == "estimate" else "at least" if self.lower else "at most"
        title = f"{self.name}: {side if self.explicit else 'of the order of'} {shown(self.value)}"
        rows = [*self.terms.items(), *self.choices.items(), ("source", self.source)]
        return Card(title, rows, notes=[self.trust])

    def facts(self) -> dict[str, Any]:
        """The bound as the command line prints it."""
        return {
            "name": self.name,
            "value": self.value,
            "kind": self.kind,
            "explicit": self.explicit,
            "terms": dict(self.terms),
            "vacuous": self.vacuous,
            "source": self.source,
            **self.choices,
        }
