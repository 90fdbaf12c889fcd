r"""The capacity of a real layer's heads, and how many samples it would take to trust them.

The layer is taken as the sum of its heads, on tokens of norm at most $B$ of which each is a context, with the model's
factor $s$ on its scores (mostly $1/\sqrt k$): its $\log\mathcal N_\infty(\epsilon)$ is `bounds.heads` of $sW_{QK}$ on
$N=mT$ points. A fixed read-out $w^\top y$, $\|w\|\le1$, has the same cover. By `bounds.margin`, with probability
$1-\delta$ the sign of such a read-out errs at most
$\sqrt{\frac8m(\log\mathcal N_\infty(\epsilon,2mT)+\log\frac2\delta)}$ more often than training examples lie within a
margin $\gamma>2\epsilon$: the excess error.

Source: edelman2022, Corollary 4.5 and its sum over heads; Anthony and Bartlett (1999), Theorem 10.1.
Departures: of $\|W_{QK}^\top\|_{2,1}$, which covers $x\mapsto W_{QK}x$, and $\|W_{QK}\|_{2,1}$, which covers
$z\mapsto W_{QK}^\top z$, the smaller is taken for each head: tokens and contexts are the same points here, so both
covers cost and yield the same.
Guarantee: certified for all heads with these norms, as if the norms had been fixed before the training; not for the
model, of which `Model.left_out` says what is missing.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from genscope import bounds
from genscope.checkpoints.model import Model
from genscope.checkpoints.norms import LayerNorms

CONFIDENCE = 0.95
TARGET = 0.1
"""Excess error at which a sample is called large enough."""


class TheoremLayer(NamedTuple):
    """What the theorem knows of a layer; the query-key maps carry the model's factor on its scores."""

    value_21: list[float]
    value_spectral: list[float]
    query_key_21: list[float]
    input_norm: float
    context_norm: float
    width: int
    dimension: int

    def capacity(self, *, samples: int, context_length: int, epsilon: float) -> dict[str, Any]:
        """Log covering number on the 2mT tokens that the margin bound asks for, and the excess error it implies."""
        cover = bounds.heads(**self._asdict(), epsilon=epsilon, points=2 * samples * context_length)
        if math.isinf(cover.value):
            return {"log_cover": math.inf, "excess_error": math.inf, "vacuous": True}
        excess = bounds.margin(log_cover=cover.value, empirical_error=0.0, samples=samples, confidence=CONFIDENCE)
        return {"log_cover": cover.value, "excess_error": excess.value, "vacuous": excess.vacuous}

    def sample_size(self, *, context_length: int, epsilon: float, least: int = 1) -> int | None:
        r"""Samples that bring the excess error down to `TARGET`, to one in a thousand; None if 1e280 do not.

        The excess at m is $\sqrt{g(m)/m}$ with g increasing and concave, so $m\leftarrow g(m)/\mathrm{TARGET}^2$ rises
        towards the answer from any `least` below it, in a few steps since g is mostly a logarithm. Each step is taken a
        little too far, in order to arrive.
        """
        samples = least
        while True:
            excess = self.capacity(samples=samples, context_length=context_length, epsilon=epsilon)["excess_error"]
            if excess <= TARGET:
                return samples
            if excess > 1e140:
                return None
            samples = math.ceil(1.001 * samples * (excess / TARGET) ** 2)


def theorem_layer(model: Model, layer: int, norms: LayerNorms, *, input_norm: float) -> TheoremLayer:
    """A layer as the theorem sees it, if no token that enters is longer than `input_norm`."""
    query_key_21 = np.minimum(norms.query_key.two_one, norms.query_key.two_one_transposed)
    heads = model.heads(layer)
    return TheoremLayer(
        norms.value.two_one.tolist(),
        norms.value.spectral.tolist(),
        (model.score_scale(layer) * query_key_21).tolist(),
        *(input_norm, input_norm),
        *(heads.value.shape[2], heads.value.shape[1]),
    )


def bound_capacity(
    model: Model,
    norms: Sequence[LayerNorms],
    *,
    samples: int,
    context_length: int,
    epsilon: float = 0.5,
    input_norm: float | None = None,
) -> dict[str, Any]:
    """Capacity and excess error of every layer, and curves for the one of largest capacity.

    `input_norm` replaces the bound that the norm before a layer gives; a layer without either has no bounds.
    """
    for name, number in (("samples", samples), ("context-length", context_length)):
        if not 1 <= number <= 10**30:
            raise ValueError(f"got {number} for --{name}: it is at least 1 and at most 1e30. Give such a number.")
    point = {"samples": samples, "context_length": context_length}
    rows, known = [], {}
    for number, layer in enumerate(norms):
        longest = model.input_norm(number) if input_norm is None else input_norm
        row = {"layer": number, "input_norm": longest, "score_scale": model.score_scale(number)}
        if longest is not None:
            known[number] = theorem_layer(model, number, layer, input_norm=longest)
            row |= known[number].capacity(**point, epsilon=epsilon)
        rows.append(dict.fromkeys(("log_cover", "excess_error", "vacuous")) | row)
    largest = max(known, key=lambda number: rows[number]["log_cover"], default=None)
    return {
        "explicit": True,
        "source": "edelman2022, Section 4 (multi-head); anthony1999, Theorem 10.1",
        "epsilon": epsilon,
        **point,
        "confidence": CONFIDENCE,
        "target": TARGET,
        "layers": rows,
        "largest": None if largest is None else {"layer": largest} | _curves(known[largest], **point, epsilon=epsilon),
    }


def _curves(layer: TheoremLayer, *, samples: int, context_length: int, epsilon: float) -> dict[str, Any]:
    """Capacity by sample size, and the sample size that suffices by context length: the theorem's logarithms."""
    many = [samples * 100**power for power in range(4)]
    long = [context_length * 100**power for power in range(3)]
    by_samples = [
        {"samples": m} | layer.capacity(samples=m, context_length=context_length, epsilon=epsilon) for m in many
    ]
    by_length, least = [], 1
    for length in long:
        found = layer.sample_size(context_length=length, epsilon=epsilon, least=least)
        by_length.append({"context_length": length, "sample_size": found})
        least = found or 1
    return {"by_samples": by_samples, "by_context_length": by_length}
