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
model, of which `Model.left_out` says what is missing. Where `Model.doubts` has reasons there is no bound at all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from genscope import bounds
from genscope.checkpoints.model import Model
from genscope.checkpoints.norms import LayerNorms
from genscope.refusal import Refusal

CONFIDENCE = 0.95
_MOST = 10**100
TARGET = 0.1
"""Excess error at which a sample is called large enough."""


@dataclass(frozen=True)
class CapacityQuestion:
    """What a bound is asked for; `input_norm` replaces what the norm before a layer says of the tokens that enter."""

    samples: int
    context_length: int
    epsilon: float = 0.5
    input_norm: float | None = None

    def __post_init__(self) -> None:
        allowed = {
            "samples": (1 <= self.samples <= _MOST, "a whole number from 1 to 1e100"),
            "context_length": (1 <= self.context_length <= _MOST, "a whole number from 1 to 1e100"),
            "epsilon": (0 < self.epsilon < math.inf, "a finite number above 0"),
            "input_norm": (self.input_norm is None or 0 <= self.input_norm < math.inf, "a finite number, 0 or more"),
        }
        for name, (fits, what) in allowed.items():
            if not fits:
                raise Refusal(f"got {name}={getattr(self, name)}: it must be {what}. Change it.")


class TheoremLayer(NamedTuple):
    """What the theorem knows of a layer; the query-key maps carry the model's factor on its scores."""

    value_21: list[float]
    value_spectral: list[float]
    query_key_21: list[float]
    input_norm: float
    context_norm: float
    width: int
    dimension: int

    def capacity(self, setting: CapacityQuestion) -> dict[str, Any]:
        """Log covering number on the 2mT tokens that the margin bound asks for, and the excess error it implies."""
        points = 2 * setting.samples * setting.context_length
        cover = bounds.heads(**self._asdict(), epsilon=setting.epsilon, points=points)
        if math.isinf(cover.value):
            return {"log_cover": math.inf, "excess_error": math.inf, "vacuous": True}
        excess = bounds.margin(
            log_cover=cover.value, empirical_error=0.0, samples=setting.samples, confidence=CONFIDENCE
        )
        return {"log_cover": cover.value, "excess_error": excess.value, "vacuous": excess.vacuous}

    def sample_size(self, setting: CapacityQuestion) -> int | None:
        r"""Samples that bring the excess error down to `TARGET`, to one in a thousand; None if 1e100 do not.

        The excess at m is $\sqrt{g(m)/m}$ with g increasing and concave, so $m\leftarrow g(m)/\mathrm{TARGET}^2$ rises
        toward the answer from the samples of the setting, if these are too few, and in a few steps since g is mostly a
        logarithm. Each step is taken a little too far, in order to arrive.
        """
        while (excess := self.capacity(setting)["excess_error"]) > TARGET:
            needed = 1.001 * setting.samples * (excess / TARGET) ** 2 if excess < 1e100 else math.inf
            if needed > _MOST:
                return None
            setting = replace(setting, samples=math.ceil(needed))
        return setting.samples


def theorem_layer(model: Model, layer: int, norms: LayerNorms, *, input_norm: float) -> TheoremLayer:
    """A layer as the theorem sees it, if no token that enters is longer than `input_norm`."""
    scale = model.score_scale(layer)
    if scale is None:
        raise Refusal(f"no bound applies to this model: {'; '.join(model.doubts())}. Only its norms are available.")
    query_key_21 = np.minimum(norms.query_key.two_one, norms.query_key.two_one_transposed)
    heads = model.heads(layer)
    return TheoremLayer(
        norms.value.two_one.tolist(),
        norms.value.spectral.tolist(),
        (scale * query_key_21).tolist(),
        *(input_norm, input_norm),
        *(heads.value.shape[2], heads.value.shape[1]),
    )


def bound_capacity(model: Model, norms: Sequence[LayerNorms], setting: CapacityQuestion) -> dict[str, Any]:
    """Capacity and excess error of every layer, and curves for the one of largest capacity.

    A layer whose tokens are bounded neither by a norm nor by the setting has no bounds; nor has a model of which the
    reader does not know what it computes, for the reasons under `withheld`.
    """
    withheld = model.doubts()
    rows, known = [], {}
    for number, layer in enumerate(norms):
        longest = model.input_norm(number) if setting.input_norm is None else setting.input_norm
        row = {"layer": number, "input_norm": longest, "score_scale": model.score_scale(number)}
        if longest is not None and not withheld:
            known[number] = theorem_layer(model, number, layer, input_norm=longest)
            row |= known[number].capacity(setting)
        rows.append(dict.fromkeys(("log_cover", "excess_error", "vacuous")) | row)
    largest = max(known, key=lambda number: rows[number]["log_cover"], default=None)
    return {
        "withheld": list(withheld),
        "explicit": None if withheld else True,
        "source": "edelman2022, Section 4 (multi-head); anthony1999, Theorem 10.1",
        "epsilon": setting.epsilon,
        "samples": setting.samples,
        "context_length": setting.context_length,
        "confidence": CONFIDENCE,
        "target": TARGET,
        "layers": rows,
        "largest": None if largest is None else {"layer": largest} | _curves(known[largest], setting),
    }


def _curves(layer: TheoremLayer, setting: CapacityQuestion) -> dict[str, Any]:
    """Capacity by sample size, and the sample size that suffices by context length: the theorem's logarithms."""
    many, long = (
        [number * 100**power for power in range(steps) if number * 100**power <= _MOST]
        for number, steps in ((setting.samples, 4), (setting.context_length, 3))
    )
    by_length, least = [], 1
    for length in long:
        found = layer.sample_size(replace(setting, samples=least, context_length=length))
        by_length.append({"context_length": length, "sample_size": found})
        least = found or 1  # a longer context takes no fewer
    return {
        "by_samples": [{"samples": m} | layer.capacity(replace(setting, samples=m)) for m in many],
        "by_context_length": by_length,
    }
