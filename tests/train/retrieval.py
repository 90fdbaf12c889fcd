"""A model that knows where to look and learns a direction, on token regression with two tokens."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from genscope.tasks.token_regression import TokenRegression
from genscope.train import AbstractObjective

TASK = TokenRegression.draw(jr.key(0), context_length=2, dim=3)
EXAMPLES = TASK.sample(jr.key(5), 1000)


class Retriever(eqx.Module):
    weight: jax.Array
    fixed: jax.Array  # an integer: training leaves it alone

    def __call__(self, x):
        tokens, t = x[:, :3], x[:, 3].astype("int32")
        return tokens[t] @ self.weight


START = Retriever(jnp.array([0.3, -0.2, 0.1]), jnp.int32(7))


class PromptLoss(AbstractObjective):
    """Squared error, averaged over positions; `roll` plants a fault: the labels of other prompts."""

    roll: int = 0

    def losses(self, model, batch):
        y = jnp.roll(batch.y, self.roll, axis=0)
        return jnp.mean((jax.vmap(model)(batch.x) - y) ** 2, axis=1)
