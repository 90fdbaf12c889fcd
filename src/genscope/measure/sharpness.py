r"""Sharpness of any model at any data: trace and norm of the Hessian of its loss, and that of the smoothed loss.

Any `eqx.Module` whose weights are floating point arrays; the loss is one of `genscope.train`, a mean over examples (and
outputs, tokens), so that the squared one has no factor 1/2. A group of parameters is one array, named by its path.

Source: lintilhac2026, Sections 2.2 and 2.3, Appendix A.
Departures: XTrace is the default where the paper has Hutchinson's estimator: these Hessians have few large eigenvalues.
Guarantee: `exact` is exact up to rounding, `gauss_newton` exact for the Gauss–Newton matrix, which is the Hessian at
zero training loss; `fisher` estimates the same trace from gradients at labels that the model itself draws, whose law
has the loss as its negative logarithm; the others are unbiased estimates with a standard error over probes at the given
data. `split` adds the Gauss–Newton part (exact for one output, else from drawn labels) and the rest of the Hessian,
from signs of a few arrays at a time, new for every 16 examples; its error is that over draws within each part of
the sample. That of XTrace and XNysTrace is inflated by the factor by which the plain one was seen to be too small
(`_traces.OPTIMISM`).
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key, PyTree

from genscope.display import Card, Displayed, Table, shown
from genscope.estimate import Estimate
from genscope.measure import _traces
from genscope.measure._curvature import Curvature, ParameterGroup, groups
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train.loss import Loss, squared
from genscope.train.objective import Predict

METHODS = ("exact", "gauss_newton", "fisher", "split", "hutchinson", "hutchpp", "xtrace", "xnystrace")
PROBES, CHUNK, DEPTH = 32, 1024, 20
ROWS = 2**26  # numbers in random vectors that are held at a time
SKETCH = 2**28  # at most, where a method needs all of its vectors at once
_UNITS = 64  # unit vectors per call of the exact method


@dataclass(frozen=True)
class Trace(Estimate, Displayed):
    """A trace with its standard error, and those of the diagonal blocks of the groups (which sum to it)."""

    groups: Mapping[str, Estimate]
    products: int
    """Hessian-vector products that it cost."""

    def card(self) -> Card:
        """What is shown: the trace, and its share in each group."""
        rows = [(name, _told(each)) for name, each in self.groups.items()]
        tables = [Table(["parameters", "trace"], rows)] if rows else []
        return Card(f"Trace of the Hessian: {_told(self)}", [("Hessian-vector products", self.products)], tables)


@dataclass(frozen=True)
class OperatorNorm(Displayed):
    """The eigenvalue of largest absolute value that was found; some eigenvalue is within `residual` of it.

    The norm is never below its absolute value (rounding aside), and equal to it once the iteration has converged.
    """

    eigenvalue: float
    residual: float
    lowest: float
    highest: float

    @property
    def norm(self) -> float:
        """The absolute value: a lower limit of the operator norm."""
        return abs(self.eigenvalue)

    def card(self) -> Card:
        """What is shown: the norm, and the ends of the spectrum that were seen."""
        rows = [
            ("eigenvalue", self.eigenvalue),
            ("an eigenvalue is within", self.residual),
            ("lowest value seen", self.lowest),
            ("highest value seen", self.highest),
        ]
        return Card(f"Operator norm of the Hessian: at least {shown(self.norm)}", rows)


def hessian_trace(
    model: PyTree,
    batch: Batch,
    loss: Loss = squared,
    *,
    method: str = "xtrace",
    probes: int = PROBES,
    key: Key[Array, ""] | None = None,
    masked: bool = False,
    chunk: int = CHUNK,
    predict: Predict | None = None,
) -> Trace:
    r"""$\operatorname{Tr}\nabla^2L(\theta)$ and, for each group g, $\operatorname{Tr}\nabla^2_{gg}L$.

    With m `probes` of p parameters, `hutchinson` takes m products, `split` at most m and gradients of every example,
    `xtrace` 2m, `hutchpp` 3m, `xnystrace` m (with the
    Gauss–Newton matrix, and no groups), `exact` p; `fisher` takes m draws of all labels, with a gradient of every
    example for each. All groups are served by the same products; with `masked`, each has products of its own, in which
    the blocks beside the diagonal cannot disturb. From $2m\ge p$ on, the exact method is cheaper, and taken.
    `predict(model, x)` evaluates a batch, if there is a faster way than one example at a time (that of `BitTransformer`
    is known).
    """
    if method not in METHODS:
        raise Refusal(f"hessian_trace got {method=}: methods are {', '.join(METHODS)}. Choose one of them.")
    curvature = Curvature(model, batch, loss, chunk=chunk, predict=predict)
    if method == "gauss_newton":
        return _certain(curvature, curvature.gauss_newton_diagonal(), 0)
    if method == "exact" or (method in ("hutchpp", "xtrace") and 2 * probes >= curvature.size):
        return _certain(curvature, _diagonal(curvature), curvature.size)
    if key is None or probes < 2:
        raise Refusal(
            f"hessian_trace got {probes=} and key={key!r} for method {method}: a standard error needs at least two "
            "random probes. Give more probes and a key, such as jax.random.key(0), or choose another method."
        )
    if method == "split":
        return _split(curvature, key, probes, masked)
    if method == "fisher":
        return _spread(curvature, curvature.fisher(stream(key, "labels"), probes), 0, 1.0)
    if method != "hutchinson" and probes * curvature.size > SKETCH:
        raise Refusal(
            f"hessian_trace got {probes=} and {curvature.size} parameters for method {method}, which stores all of its "
            f"vectors at once: at most {SKETCH} numbers are allowed. Use method hutchinson or fisher, or fewer probes."
        )
    if method == "xnystrace":
        return _nystrom(curvature, key, probes)
    if masked:
        return _masked(curvature, method, key, probes)
    values, products = _estimated(curvature, method, key, probes)
    return _spread(curvature, values, products, _inflation(method))


def gradient_trace(
    model: PyTree, batch: Batch, loss: Loss = squared, *, chunk: int = CHUNK, predict: Predict | None = None
) -> Trace:
    r"""Trace of the Gauss–Newton matrix, $2\,\mathbb E_x\|\nabla_\theta f(x)\|^2$ for the squared loss, without noise.

    At zero training loss it is the Hessian's; the two differ by $2\,\mathbb E[(f-y)\operatorname{Tr}\nabla^2f]$.
    """
    return hessian_trace(model, batch, loss, method="gauss_newton", chunk=chunk, predict=predict)


def operator_norm(
    model: PyTree,
    batch: Batch,
    loss: Loss = squared,
    *,
    key: Key[Array, ""],
    depth: int = DEPTH,
    chunk: int = CHUNK,
    predict: Predict | None = None,
) -> OperatorNorm:
    """The largest eigenvalue of the Hessian in absolute value, by `depth` steps of Lanczos."""
    if depth < 1:
        raise Refusal(
            f"operator_norm got depth={depth!r}: the Lanczos iteration needs at least one step. Give a positive number."
        )
    curvature = Curvature(model, batch, loss, chunk=chunk, predict=predict)
    start = curvature.draw(stream(key, "start"), 1)[0]
    values, residuals = _traces.lanczos(curvature.products, start, depth)
    largest = int(np.argmax(np.abs(values)))
    eigenvalue = float(values[largest])
    rounding = float(jnp.finfo(curvature.parameters.dtype).eps) * abs(eigenvalue)  # of the products
    return OperatorNorm(eigenvalue, float(residuals[largest]) + rounding, float(values[0]), float(values[-1]))


def smoothed_sharpness(
    model: PyTree,
    batch: Batch,
    loss: Loss = squared,
    *,
    sigma: float,
    key: Key[Array, ""],
    pairs: int = PROBES,
    chunk: int = CHUNK,
    predict: Predict | None = None,
) -> Estimate:
    r"""$2(\mathbb E_\epsilon L(\theta+\epsilon)-L(\theta))/\sigma^2$, $\epsilon\sim N(0,\sigma^2I)$, kinks included.

    From antithetic pairs $\pm\epsilon$, in which odd terms cancel; it tends to the trace as $\sigma\to0$ where the loss
    is smooth.
    """
    if not (0 < sigma < np.inf) or pairs < 2:
        raise Refusal(
            f"smoothed_sharpness got {sigma=} and {pairs=}: sigma must be positive, and a standard error needs at "
            "least two pairs. Correct the one that is out of range."
        )
    curvature = Curvature(model, batch, loss, chunk=chunk, predict=predict)
    here = curvature.losses(np.zeros((1, curvature.size)))
    found = []
    for rows in _drawn(curvature, stream(key, "noise"), pairs):
        there, back = curvature.losses(rows, sigma), curvature.losses(rows, -sigma)
        found.append((there + back - 2 * here) / sigma**2)
    return Estimate.of(np.concatenate(found))


def mean_loss(
    model: PyTree, batch: Batch, loss: Loss = squared, *, chunk: int = CHUNK, predict: Predict | None = None
) -> float:
    """The mean loss whose curvature is measured."""
    curvature = Curvature(model, batch, loss, chunk=chunk, predict=predict)
    return float(curvature.losses(np.zeros((1, curvature.size)))[0])


def group_sizes(model: PyTree) -> dict[str, int]:
    """How many parameters each group has."""
    return {group.name: group.stop - group.start for group in groups(model)}


def _told(trace: Estimate) -> str:
    """With its standard error, if it has one."""
    return str(trace) if trace.sem else f"{shown(trace.mean)} (exact)"


def _estimated(curvature: Curvature, method: str, key: Array, probes: int, mask: np.ndarray | float = 1.0):
    """Values for every probe and group, and the number of products."""
    starts = [group.start for group in curvature.groups]

    def products(vectors: np.ndarray) -> np.ndarray:
        return mask * curvature.products(mask * vectors)

    if method == "hutchinson":
        rows = _drawn(curvature, stream(key, "probes"), probes, signs=True)
        return np.concatenate([_traces.hutchinson(products, part, starts) for part in rows]), probes
    normal = curvature.draw(stream(key, "probes"), probes)
    if method == "xtrace":
        return _traces.xtrace(products, normal, starts), 2 * probes
    signs = curvature.draw(stream(key, "complement"), probes, signs=True)
    return _traces.hutchpp(products, normal, signs, starts), 3 * probes


def _drawn(curvature: Curvature, key: Array, number: int, *, signs: bool = False) -> Iterator[np.ndarray]:
    """Random rows, all at once unless there are too many numbers in them."""
    together = max(1, ROWS // curvature.size)
    if together >= number:
        yield curvature.draw(key, number, signs=signs)
        return
    for first in range(0, number, together):
        yield curvature.draw(jr.fold_in(key, first), min(together, number - first), signs=signs)


def _masked(curvature: Curvature, method: str, key: Array, probes: int) -> Trace:
    found, total = {}, 0
    for number, group in enumerate(curvature.groups):
        mask = np.zeros(curvature.size)
        mask[group.start : group.stop] = 1
        values, products = _estimated(curvature, method, stream(key, group.name), probes, mask)
        found[group.name] = _mean(values[:, number], _inflation(method))
        total += products
    sem = float(np.sqrt(sum(each.sem**2 for each in found.values())))  # keys differ, so groups are independent
    return Trace(sum(each.mean for each in found.values()), sem, found, total)


def _split(curvature: Curvature, key: Array, probes: int, masked: bool) -> Trace:
    """The Gauss–Newton matrix and the rest of the Hessian, each by what knows it best."""
    colors = np.arange(len(curvature.groups)) if masked else _colors(curvature.groups, probes // 2)
    number = int(colors.max()) + 1
    draws = probes if masked else probes // number
    rest = _by_parts(curvature.residual_parts(stream(key, "signs"), colors, draws))
    if curvature.outputs > 1 and curvature.draws_labels:
        newton = _by_parts(curvature.fisher_parts(stream(key, "labels"), draws))
    else:
        known = _certain(curvature, curvature.gauss_newton_diagonal(), 0)
        newton = [known, *known.groups.values()]
    total, *each = (Estimate(a.mean + b.mean, float(np.hypot(a.sem, b.sem))) for a, b in zip(rest, newton, strict=True))
    return Trace(
        total.mean, total.sem, dict(zip((group.name for group in curvature.groups), each, strict=True)), number * draws
    )


def _colors(groups: Sequence[ParameterGroup], most: int) -> np.ndarray:
    """Groups of one color are probed at once: matrices one by one as long as colors last, vectors together."""
    matrix = np.array([len(group.shape) > 1 for group in groups])
    cycle = max(1, min(most - (not matrix.all()), matrix.sum()))
    return np.where(matrix, (np.cumsum(matrix) - 1) % cycle, cycle if most > 1 and matrix.any() else 0)


def _by_parts(values: np.ndarray) -> list[Estimate]:
    """Total and groups from values of parts, draws and groups: draws differ by chance alone, parts also otherwise."""
    values = np.concatenate([values.sum(axis=2, keepdims=True), values], axis=2)
    variance = values.var(axis=1, ddof=1).sum(axis=0) / values.shape[1]
    means = values.mean(axis=1).sum(axis=0)
    return [Estimate(float(a), float(b)) for a, b in zip(means, np.sqrt(variance), strict=True)]


def _nystrom(curvature: Curvature, key: Array, probes: int) -> Trace:
    if probes >= curvature.size:
        raise Refusal(
            f"hessian_trace got {probes=} for {curvature.size} parameters: xnystrace needs fewer probes than "
            "parameters. Use method='gauss_newton', which is exact."
        )
    values = _traces.nystrom(
        functools.partial(curvature.products, gauss_newton=True), curvature.draw(stream(key, "probes"), probes)
    )
    total = _mean(values, _inflation("xnystrace"))
    return Trace(total.mean, total.sem, {}, probes)


def _diagonal(curvature: Curvature) -> np.ndarray:
    """Diagonal of the Hessian, by products with all unit vectors, as many at a time as fit the last call too."""
    size = curvature.size
    calls = -(-size // _UNITS)
    rows = -(-size // calls)
    found = []
    for start in range(0, calls * rows, rows):
        units = np.zeros((rows, size))
        index = np.minimum(np.arange(start, start + rows), size - 1)
        units[np.arange(rows), index] = 1
        found.append(curvature.products(units)[np.arange(rows), index])
    return np.concatenate(found)[:size]


def _certain(curvature: Curvature, diagonal: np.ndarray, products: int) -> Trace:
    groups = {group.name: Estimate(float(diagonal[group.start : group.stop].sum()), 0.0) for group in curvature.groups}
    return Trace(float(diagonal.sum()), 0.0, groups, products)


def _spread(curvature: Curvature, values: np.ndarray, products: int, inflation: float) -> Trace:
    total = _mean(values.sum(axis=1), inflation)
    groups = {group.name: _mean(values[:, number], inflation) for number, group in enumerate(curvature.groups)}
    return Trace(total.mean, total.sem, groups, products)


def _mean(values: np.ndarray, inflation: float) -> Estimate:
    plain = Estimate.of(values)
    return Estimate(plain.mean, inflation * plain.sem)


def _inflation(method: str) -> float:
    return _traces.OPTIMISM if method in ("xtrace", "xnystrace") else 1.0
