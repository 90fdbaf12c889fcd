r"""Theorem 4.2 for any covers: a head's covering number from those of its scores, its values and its output.

$f(X,z)=\phi_{out}(\sum_t\mathrm{Norm}(\mathrm{Score}(x_1,z),\dots)_t\,\phi_{in}(x_t))$. If
$\|\mathrm{Norm}(s)-\mathrm{Norm}(\hat s)\|_1\le C\|s-\hat s\|_\infty$, all $\|\phi_{in}(x_t)\|\le B$ and $\phi_{out}$
is $L$-Lipschitz, then covers of the scores at $\epsilon_s$ (on all pairs of token and context), of $\phi_{in}$ at
$\epsilon_{in}$ (on all tokens) and of $\phi_{out}$ at $\epsilon_{out}$ (on all means of covered values) give one of
the head at
$$\epsilon=CLB\epsilon_s+L\epsilon_{in}+\epsilon_{out}$$
by Lemma 4.3 and the triangle inequality; their sizes multiply. Only the true $\phi_{in}$ and $\phi_{out}$ need $B$
and $L$, so the covers may be external.

Source: edelman2022, Theorem 4.2 (with Lemma 4.3).
Departures: $\phi_{out}$ may be of a class too; where it is fixed, as in the paper, its cover has one element.
Guarantee: proved for every split of $\epsilon$; the least of a grid of splits is taken, whose neighbors differ by a
tenth.
"""

import itertools
import math
from collections.abc import Callable
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._parameters import Epsilon, checked, norm, positive
from genscope.refusal import Refusal

NormalisationConstant = Annotated[
    float, positive("C, of scores (largest difference) to attention (sum of differences); softmax and clipped: 1")
]
LogCover = Callable[[float], float]

_TILTS = tuple(step / 10 for step in range(-80, 81))
_COARSE = _TILTS[::8]


@checked
def composed_head(
    scores: LogCover,
    values: LogCover,
    output: LogCover | None = None,
    *,
    epsilon: Epsilon,
    value_norm: Annotated[float, norm("B, the largest norm of a value φ_in(x)")],
    output_lipschitz: Annotated[float, norm("L, the Lipschitz constant of φ_out")] = 1.0,
    normalisation: NormalisationConstant = 1.0,
) -> Bound:
    r"""A head from covers of its parts, each of which tells its nats at an accuracy (edelman2022, Theorem 4.2).

    The least $\log\mathcal N_s(\epsilon_s)+\log\mathcal N_{in}(\epsilon_{in})+\log\mathcal N_{out}(\epsilon_{out})$
    over splits $CLB\epsilon_s+L\epsilon_{in}+\epsilon_{out}=\epsilon$.

    >>> square = lambda accuracy: 1 / accuracy**2
    >>> bound = composed_head(square, square, epsilon=0.5, value_norm=1.0)
    >>> 32.0 <= bound.value <= 32.1  # (1 + 1)^3 / 0.5^2
    True
    """
    parts = {"scores": (scores, normalisation * output_lipschitz * value_norm), "values": (values, output_lipschitz)}
    if output is not None:
        parts["output"] = (output, 1.0)
    free = [name for name, (_, factor) in parts.items() if factor == 0]  # no error of theirs is seen
    used = [name for name in parts if name not in free]

    def nats(tilts: tuple[float, ...]) -> dict[str, float]:
        weights = [math.exp(tilt) for tilt in (0.0, *tilts)]
        shares = [weight / sum(weights) for weight in weights]
        found = dict.fromkeys(parts, 0.0)
        for name, share in zip(used, shares, strict=False):  # where none is used, there is nothing to share
            cover, factor = parts[name]
            found[name] = _log_size(name, cover, share * epsilon / factor)
        return found

    def best(*grids: tuple[float, ...]) -> tuple[float, ...]:
        return min(itertools.product(*grids), key=lambda tilts: sum(nats(tilts).values()))

    near = best(*[_COARSE] * (len(used) - 1)) if used else ()
    fine = best(*[tuple(t for t in _TILTS if abs(t - tilt) < 0.85) for tilt in near]) if used else ()
    return Bound("composed-head", nats(fine), explicit=True, source="edelman2022, Theorem 4.2")


def _log_size(name: str, cover: LogCover, accuracy: float) -> float:
    found = cover(accuracy)
    if not found >= 0:
        raise Refusal(
            f"composed_head got {found} nats from the cover of {name} at accuracy {accuracy:g}: a cover has at least "
            "one element, so the logarithm of its size cannot be negative. Return that logarithm."
        )
    return found
