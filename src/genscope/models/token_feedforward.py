r"""Trained feedforward network over a whole prompt: all tokens at once, a prediction at each.

Source: mousavi2025, Appendix E: Linear($Ndq$), ReLU, Linear(1000), ReLU, Linear(N), on the $ND_e$ inputs of its code.
Guarantee: exact up to rounding, padded or not.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from genscope.models import _drawing
from genscope.models.mousavi2025 import Affine, relu_net
from genscope.refusal import Refusal


class TokenFeedForward(eqx.Module):
    """Three layers, ReLU between them."""

    layers: tuple[Affine, ...]

    @classmethod
    def draw(
        cls,
        key: Key[Array, ""],
        *,
        context_length: int,
        dim: int,
        first: int,
        second: int = 1000,
        used: Bool[Array, " D"] | None = None,
        real: Bool[Array, " N"] | None = None,
        units: Bool[Array, " first"] | None = None,
    ) -> "TokenFeedForward":
        r"""Weights and biases within $\pm1/\sqrt{\text{fan-in}}$.

        Of a padded network `used`, `real` and `units` mark the entries of a token, the tokens and the units of the
        first layer that are not padding; give all three or none.
        """
        if min(context_length, dim, first, second) < 1:
            raise Refusal(
                f"TokenFeedForward.draw got {context_length=}, {dim=}, {first=}, {second=}: all must be at least 1. "
                "Increase the one that is not."
            )
        inputs = None if used is None or real is None else jnp.outer(real, used).reshape(-1)
        sizes = (context_length * dim, first, second, context_length)
        shapes = {f"w{i}": (sizes[i + 1], sizes[i]) for i in range(3)} | {f"b{i}": (sizes[i + 1],) for i in range(3)}
        drawn = _drawing.uniforms(key, **shapes)
        layers = []
        for i, (reads, gives) in enumerate(itertools.pairwise((inputs, units, None, real))):
            bound = _drawing.fan_in(reads, sizes[i])
            weight = _drawing.only(_drawing.only(bound * drawn[f"w{i}"], reads, 1), gives, 0)
            layers.append(Affine(weight, _drawing.only(bound * drawn[f"b{i}"], gives, 0)))
        return cls(tuple(layers))

    def __call__(self, z: Float[Array, "N D"]) -> Float[Array, " N"]:
        """Predictions for one prompt."""
        return relu_net(self.layers, z.reshape(-1))

    def outputs(self, z: Float[Array, "B N D"], real: Bool[Array, " N"] | None = None) -> Float[Array, "B N"]:
        """Predictions for a batch of prompts; of a padded one, those at the padding mean nothing."""
        del real  # padded rows are zeros
        x = z.reshape(len(z), -1)
        for layer in self.layers[:-1]:
            x = jax.nn.relu(_affine(layer, x))
        return _affine(self.layers[-1], x)


def _affine(layer: Affine, x: Float[Array, "B inputs"]) -> Float[Array, "B outputs"]:
    image = x @ layer.weight.T
    return image if layer.bias is None else image + jnp.broadcast_to(layer.bias, image.shape)
