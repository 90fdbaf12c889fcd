r"""The idealised learner of low sharpness: loss, squared norm and trace of the Hessian in one objective.

$\hat R(\theta)+\mu\|\theta\|^2+\nu\operatorname{Tr}\nabla^2\hat R(\theta)$, with the trace estimated at every step: for
independent signs $v$, $v^\top\nabla^2\hat R\,v=\frac{d^2}{dt^2}\hat R(\theta+tv)$ has the trace as its mean, and its
gradient has the gradient of the trace, so that a step is unbiased, on a batch as on the whole sample. Two forward
derivatives give it, and one reverse derivative descends it, in about four times the time of a plain step.

Source: lintilhac2026, Definition 1, Eq. (2).
Departures: the paper abstracts from training; descent finds a stationary point, not the global minimum.
`train.WeightNoise` with weight decay is the cheaper learner, whose noise sees the loss beyond its second order too.
Guarantee: unbiased for the trace that automatic differentiation has, in which the kinks of ReLU count for nothing
(`measure.smoothed_sharpness` sees them). Domination (Theorem 2) does not follow from a small sum: one term may be large
where the other is small. `genscope dominate` checks it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from genscope.random import stream
from genscope.refusal import Refusal
from genscope.train.learning_rules import squared_norm
from genscope.train.objective import AbstractObjective
from genscope.train.optimizers import number


class LowSharpness(AbstractObjective):
    r"""An objective with $\mu\|\theta\|^2$ and $\nu$ times the trace of its Hessian, from `probes` vectors of signs.

    Risk, squared norm and trace are recorded at every step; `losses` are the objective's own.
    """

    objective: AbstractObjective
    mu: Array = eqx.field(converter=number, kw_only=True)
    nu: Array = eqx.field(converter=number, kw_only=True)
    probes: int = eqx.field(default=1, kw_only=True)

    def __check_init__(self):
        if not (0 <= self.mu < jnp.inf and 0 <= self.nu < jnp.inf and self.probes >= 1):
            raise Refusal(
                f"LowSharpness got mu={float(self.mu):g}, nu={float(self.nu):g} and probes={self.probes}: mu and nu "
                "must not be negative, and there must be at least one probe. Correct the one that is out of range."
            )

    def losses(self, model, batch):
        """Without norm or trace."""
        return self.objective.losses(model, batch)

    def __call__(self, model, batch, key):
        """The sum, with one estimate of the trace; the probes come from the key."""
        if key is None:
            raise Refusal(
                "LowSharpness got a source without a key: the trace is estimated with random signs. Give the source a "
                "key, as in train.Whole(examples, key)."
            )
        weights, rest = eqx.partition(model, eqx.is_inexact_array)
        flat, restore = ravel_pytree(weights)

        def risk(flat: Array) -> Array:
            return self.objective(eqx.combine(restore(flat), rest), batch, key)[0]

        def curvature(signs: Array) -> Array:
            slope = lambda at: jax.jvp(risk, (at,), (signs,))[1]  # noqa: E731
            return jax.jvp(slope, (flat,), (signs,))[1]

        signs = jr.rademacher(stream(key, "signs"), (self.probes, flat.size), flat.dtype)
        trace = jnp.mean(jax.lax.map(curvature, signs))
        value, recorded = self.objective(model, batch, key)
        square = squared_norm(model)
        penalty = self.mu.astype(value.dtype) * square.astype(value.dtype) + self.nu.astype(value.dtype) * trace
        return value + penalty, recorded | {"risk": value, "squared_norm": square, "trace": trace}
