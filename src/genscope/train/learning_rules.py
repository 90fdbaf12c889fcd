r"""Learning rules of the theory as objectives: regularized, constrained and of least norm; and stationary points.

Norms are those of all floating point arrays of a model together, $\|\mathrm{vec}\,\Theta\|$, in the scale of its
parameters.

Source: mousavi2025, Section 2 (constrained ERM; minimum-norm $\epsilon$-ERM, Eq. 2.4) and Definition 8 (stationary
points of the regularized risk).
Departures: descent finds what it finds: a stationary point of the rule, not its global minimum. Definition 8 asks for
stationarity in the first layer only; here the whole network is regularized and stationary.
Guarantee: values and gradients are exact on the examples of a step. `Stationary` measures the gradient of what is
descended, over all examples.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from genscope.refusal import Refusal
from genscope.train._program import program, split
from genscope.train.objective import AbstractObjective
from genscope.train.optimizers import number
from genscope.train.sources import Whole
from genscope.train.stops import TrainingState


def squared_norm(model: Any) -> Float[Array, ""]:
    r"""$\|\mathrm{vec}\,\Theta\|^2$."""
    return sum((jnp.sum(part**2) for part in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))), jnp.zeros(()))


def _positive(caller: str, **values: Any) -> None:
    wrong = {name: float(value) for name, value in values.items() if not value > 0}
    if wrong:
        name, value = next(iter(wrong.items()))
        raise Refusal(f"{caller} got {name}={value:g}: it must be positive. Change {name}.")


class Regularised(AbstractObjective):
    r"""$\hat R+\frac\lambda2\|\mathrm{vec}\,\Theta\|^2$: at a stationary point $\nabla\hat R+\lambda\Theta=0$."""

    objective: AbstractObjective
    decay: Array = eqx.field(converter=number)

    def __check_init__(self):
        _positive("Regularised", decay=self.decay)

    def losses(self, model, batch):
        """Without the penalty."""
        return self.objective.losses(model, batch)

    def __call__(self, model, batch, key):
        """The risk and the penalty; the risk is recorded."""
        risk, recorded = self.objective(model, batch, key)
        return risk + self.decay.astype(risk.dtype) / 2 * squared_norm(model), recorded | {"risk": risk}


class Constrained(AbstractObjective):
    r"""$\hat R$ over the ball $\|\mathrm{vec}\,\Theta\|\le R$: the risk at the nearest of it, which `within` gives.

    Beyond the sphere the gradient is tangent to it: only the direction of the weights counts there.
    """

    objective: AbstractObjective
    radius: Array = eqx.field(converter=number)

    def __check_init__(self):
        _positive("Constrained", radius=self.radius)

    def within(self, model: Any) -> Any:
        """The nearest model of the ball."""
        weights, rest = eqx.partition(model, eqx.is_inexact_array)
        square, radius = squared_norm(model), self.radius
        inside = square <= radius.astype(square.dtype) ** 2
        factor = jnp.where(inside, 1.0, radius.astype(square.dtype) / jnp.sqrt(jnp.where(inside, 1.0, square)))
        return eqx.combine(jax.tree.map(lambda part: part * factor.astype(part.dtype), weights), rest)

    def losses(self, model, batch):
        """Of the nearest model of the ball."""
        return self.objective.losses(self.within(model), batch)

    def __call__(self, model, batch, key):
        """The risk of the nearest model of the ball."""
        return self.objective(self.within(model), batch, key)


class MinimumNorm(AbstractObjective):
    r"""The least $\|\mathrm{vec}\,\Theta\|^2$ with $\hat R\le\hat R_{\min}+\epsilon$, by the penalty
    $\frac12\|\mathrm{vec}\,\Theta\|^2+\mu(\hat R-\hat R_{\min}-\epsilon)_+$, which is exact once $\mu$ exceeds the
    multiplier of the constraint. `least` is $\hat R_{\min}$, 0 for networks that can interpolate.
    """

    objective: AbstractObjective
    excess: Array = eqx.field(converter=number)
    penalty: Array = eqx.field(converter=number)
    least: Array = eqx.field(converter=number, default=0.0)

    def __check_init__(self):
        _positive("MinimumNorm", excess=self.excess, penalty=self.penalty)

    def losses(self, model, batch):
        """Without norm or penalty."""
        return self.objective.losses(model, batch)

    def __call__(self, model, batch, key):
        """Norm and penalty; risk and squared norm are recorded."""
        risk, recorded = self.objective(model, batch, key)
        square = squared_norm(model)
        over = jnp.maximum(risk - (self.least + self.excess).astype(risk.dtype), 0)
        value = square.astype(risk.dtype) / 2 + self.penalty.astype(risk.dtype) * over
        return value, recorded | {"risk": risk, "squared_norm": square}


class Stationary(eqx.Module):
    """Ends a run on a whole sample when the gradient of what is descended is at most `tolerance` long."""

    tolerance: float
    name: ClassVar[str] = "stationary"

    def __call__(self, progress: TrainingState) -> bool:
        """By the gradient over all examples."""
        return gradient_norm(progress) <= self.tolerance


def gradient_norm(progress: TrainingState) -> float:
    """Length of the gradient of a run's objective, at its model, over its whole sample."""
    if not isinstance(progress.source, Whole) or progress.source.key is not None:
        raise Refusal(
            f"Stationary got a run on {type(progress.source).__name__}: it needs the gradient over the whole training "
            "set, without noise. Train on train.Whole(examples) without a key."
        )
    arrays, static = split((progress.fixed, progress.objective, progress.source.examples))
    compiled = program(_gradient_norm, ("static",), (), brief=progress.brief)
    return float(compiled(progress.trained, arrays, static=static))


def _gradient_norm(trained, arrays, *, static) -> Array:
    fixed, objective, examples = static.join(arrays)
    gradient = jax.grad(lambda trained: objective(eqx.combine(trained, fixed), examples, None)[0])(trained)
    return jnp.sqrt(squared_norm(gradient))
