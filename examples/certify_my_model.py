"""A certificate for a network of one's own: a small perceptron that learned the sign of a vote.

Run it with `python examples/certify_my_model.py`. Put your own network and data in its place: any Equinox module whose
weights are arrays will do. The same from the command line, once arrays x and y are saved:
`genscope certify certify_my_model:network --data data.npz` (there the weights stay as they are).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from genscope.measure import certify
from genscope.random import stream
from genscope.tasks import Batch
from genscope.train import Draws, GaussianPosterior, PacBayes, adam, cosine, fit, squared


class Perceptron(eqx.Module):
    """Ten bits in, one number out."""

    hidden: jax.Array
    output: jax.Array

    def __call__(self, x):
        """The output for one input."""
        return self.output @ jnp.tanh(self.hidden @ (1 - 2 * x))


def network(key=None) -> Perceptron:
    """The network before it has seen any data."""
    key = jr.key(0) if key is None else key
    hidden, output = jr.normal(stream(key, "hidden"), (16, 10)), jr.normal(stream(key, "output"), (16,))
    return Perceptron(hidden / 10**0.5, output / 4)


def main(size: int = 20_000, steps: int = 800) -> None:
    """Train with weight noise on the bound itself, then certify."""
    key = jr.key(1)
    x = jr.bernoulli(stream(key, "x"), 0.5, (size, 10)).astype(jnp.float32)
    data = Batch(x, jnp.sign(1.5 - x[:, :3].sum(axis=1)))  # the vote of three bits
    start = network()
    trained = fit(
        GaussianPosterior.around(start, 0.05, by_weight=True),
        Draws(data, stream(key, "training"), 256),
        PacBayes(squared, prior=start, sample_size=size),
        until=steps,
        optimizer=adam(1e-2, schedule=cosine(steps)),
    )
    found = certify(trained.model, data, squared, prior=start, key=stream(key, "draws"))
    print(f"certified: squared risk, clipped at 1, at most {found.certificate:.3f} with confidence {found.confidence}")
    print(f"on the sample {found.empirical_risk:.3f}; best constant {found.trivial:.3f}; {found.divergence:.0f} nats")
    print("vacuous" if found.vacuous else "not vacuous")


if __name__ == "__main__":
    main()
