r"""Construction: a Transformer with explicit weights, and what its theorem promises about it.

Source: edelman2022, Section 5, cited by the parts (i) to (iii) of its proposition (Proposition 5.5 of the lecture
notes; the paper's own number is not in our texts): $\|W_Q\|_F\le O(\log(Ts))$;
$\|W_K\|_F,\|W_V\|_F,\|W_C\|_F\le O(s)$; the perceptron poly(s) for symmetric functions and $2^s$poly(s) for all.
Departures: the proposition is stated in orders; the weights, their constants and the proofs beside them are ours. One
query-key dimension is used, and the others, which would be zero, are left out.
Guarantee: weights are float64, whatever JAX's mode; promised norms and errors are proved up to rounding.

Every construction has one head with $W_Q=\gamma v_{CLS}$ and $W_K=\kappa$, so that a token x scores
$\gamma\langle\kappa,x\rangle$. Weights on tokens are written as coefficients on a few vectors of the encoding: its
special vectors, CLS first, and those of the support.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from genscope.display import Card, Displayed, Table
from genscope.models.edelman2022 import Head, Heads, Hidden, Readout, Transformer
from genscope.models.encoding import AbstractEncoding, Coordinates
from genscope.precision import float64
from genscope.refusal import Refusal

Matrix = Float[np.ndarray, "_ _"]
Vector = Float[np.ndarray, "_"]


@dataclass(frozen=True)
class Construction(Displayed):
    """A model and what is promised of it; `verify` checks the promise.

    `gamma` is the sharpness in use, `needed` the one that the proof asks for. `error` is the promised largest error,
    infinite where the proof promises nothing. `norms` bound the Frobenius norms of the weights by their names in the
    paper, and `orders` are the paper's own bounds on them.
    """

    model: Transformer
    gamma: float
    needed: float
    error: float
    norms: Mapping[str, float]
    orders: Mapping[str, str]
    source: str
    constants: Mapping[str, float] = field(default_factory=dict)

    def card(self) -> Card:
        """What is shown: the promises, and the norms of the weights beside the promised ones."""
        actual = weight_norms(self.model)
        rows = [
            ("largest error promised", self.error if math.isfinite(self.error) else "nothing is promised"),
            ("sharpness", self.gamma),
            ("sharpness of the proof", self.needed),
            ("source", self.source),
        ]
        norms = [(name, actual.get(name), bound, self.orders.get(name)) for name, bound in self.norms.items()]
        columns = ["weight", "Frobenius norm", "at most", "order in the paper"]
        return Card("A Transformer with explicit weights", rows, [Table(columns, norms)])

    def start(self) -> Transformer:
        """The model in float32: a starting point for training.

        >>> import jax.random as jr
        >>> from genscope.constructions import SparseFunction, symmetric
        >>> from genscope.tasks import SparseParity
        >>> from genscope.train import Whole, adam, fit, squared
        >>> task = SparseParity.at([2, 3, 7], context_length=8)
        >>> data = task.sample(jr.key(0), 32)
        >>> run = fit(symmetric(SparseFunction.of(task)).start(), Whole(data), squared, 1, optimizer=adam(1e-3))
        >>> attention = run.model.activations(data.x[0]).attention[0]
        >>> bool(run.losses[0] < 1e-9), bool(attention[task.support].sum() > 0.9)
        (True, True)
        """
        return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float32)), self.model)


def only_head(model: Transformer) -> Head:
    """The head of a model that has one, with the ReLU of the constructions."""
    heads = model.heads.heads
    if len(heads) != 1 or heads[0].sigma is not jax.nn.relu or heads[0].projected:
        raise Refusal(
            f"got a Transformer with {len(heads)} heads: a construction has one head, sigma=jax.nn.relu, and no "
            "projection. Give such a model."
        )
    return heads[0]


def weight_norms(model: Transformer) -> dict[str, float | None]:
    """Frobenius norms of a one-head model by the paper's names; None for weights that it does not have."""
    head = only_head(model)
    weights = {"W_Q": head.w_q, "W_K": head.w_k, "W_V": head.w_v, "W_C": head.w_c, "W_1": None, "W_2": None}
    weights |= {f"W_{number}": layer.weight for number, layer in enumerate(model.readout.hidden, start=1)}
    weights["w"] = model.readout.w
    return {name: None if w is None else float(np.linalg.norm(np.asarray(w, float))) for name, w in weights.items()}


def chosen_gamma(gamma: float | None, default: float) -> float:
    """The sharpness that was asked for, or the default."""
    if gamma is not None and not 0 < gamma < math.inf:
        raise Refusal(
            f"a construction got {gamma=}: the sharpness must be positive. Leave it out to use {default}, which is "
            "enough."
        )
    return default if gamma is None else gamma


def log_or_zero(argument: float) -> float:
    """The least sharpness with e^gamma at least `argument`."""
    return math.log(argument) if argument > 1 else 0.0


def lift(encoding: AbstractEncoding, support: Sequence[int], coefficients: Matrix) -> tuple[Matrix, float]:
    r"""Weights $W$ with prescribed products $AW=M$, where the rows of $A$ are the special vectors and the support's.

    $W=D^\top M$ with the dual rows $D=(AA^\top)^{-1}A$ has the least norm; orthonormal rows are their own duals. The
    second result is $\|D\|_2=1/\sigma_{min}(A)$: the norm of $W$ is at most that times the norm of $M$.
    """
    rows = np.asarray([*range(encoding.specials), *(encoding.specials + position for position in support)])
    if isinstance(encoding.vectors, Coordinates):
        weights = np.zeros((encoding.dim, coefficients.shape[1]))
        weights[rows] = coefficients
        return weights, 1.0
    weights, _, rank, scales = np.linalg.lstsq(np.asarray(encoding.vectors)[rows], coefficients)
    if rank < len(rows):
        raise Refusal(
            f"the vectors of CLS, of the two bits and of the {len(support)} relevant positions are linearly dependent "
            f"in dimension {encoding.dim}, so no weights can tell them apart. Increase the dimension to at least "
            f"{len(rows)}, and further for random vectors."
        )
    return weights, float(1 / scales[-1])


def build(
    encoding: AbstractEncoding,
    support: Sequence[int],
    *,
    gamma: float,
    needed: float,
    kappa: Vector,
    values: Matrix,
    w_c: Vector,
    hidden: Sequence[tuple[Matrix, Vector | None]] = (),
    w: Vector,
    error: float,
    squares: Mapping[str, float],
    orders: Mapping[str, str],
    source: str,
    cls_is_key: bool = True,
    constants: Mapping[str, float] | None = None,
) -> Construction:
    """Put a construction together.

    `kappa` and `values` are coefficients, `w_c` is a diagonal, `squares` are the formulas for squared norms (except
    that of W_Q, which is gamma), as they are for orthonormal vectors.
    """
    query = np.zeros(len(kappa))
    query[0] = gamma
    weights, stretch = lift(encoding, support, np.column_stack([query, kappa, values]))
    with float64():
        w_q, w_k, w_v = (jnp.asarray(weights[:, part]) for part in (slice(1), slice(1, 2), slice(2, None)))
        head = Head(w_q, w_k, w_v, jnp.asarray(np.diag(w_c)))
        layers = tuple(Hidden(jnp.asarray(a), None if b is None else jnp.asarray(b)) for a, b in hidden)
        model = Transformer(encoding, Heads((head,)), Readout(jnp.asarray(w), layers), cls_is_key)
    norms = {name: math.sqrt(square) for name, square in {"W_Q": gamma**2, **squares}.items()}
    norms |= {name: stretch * norms[name] for name in ("W_Q", "W_K", "W_V")}
    promised = error if gamma >= needed else math.inf
    return Construction(model, gamma, needed, promised, norms, orders, source, constants or {})
