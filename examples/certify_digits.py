"""Real data, a network of PyTorch, and a proof: the error on ten handwritten digits is at most a few percent.

Run it with `python examples/certify_digits.py`, or with `transformer` for a small vision Transformer in place of a
perceptron; it takes genscope[torch] and scikit-learn, whose package holds the 1,797 images. Half of the sample makes
the prior: a network trained in the usual way, with noise on its weights. The other half trains a posterior about it on
the bound itself and certifies it. A part that neither has seen checks the certificate.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import torch  # pyright: ignore[reportMissingImports]  # an extra
from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]  # for this example
from torch import nn  # pyright: ignore[reportMissingImports]

import genscope as gs
from genscope.measure import certify
from genscope.random import stream
from genscope.tasks import Batch
from genscope.train import (
    Draws,
    GaussianPosterior,
    PacBayes,
    Risk,
    WeightNoise,
    adam,
    cosine,
    cross_entropy,
    each_loss,
    error,
    fit,
)

TEST = 297


def perceptron() -> nn.Module:
    """64 hidden units: 4,810 weights."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


class VisionTransformer(nn.Module):
    """Sixteen patches of four pixels as tokens, two layers of PyTorch's own encoder, the mean of the tokens."""

    def __init__(self, width: int = 16):
        """With positions that are learned."""
        torch.manual_seed(0)
        super().__init__()
        self.patches = nn.Linear(4, width)
        self.positions = nn.Parameter(torch.randn(16, width) / width**0.5)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        """Logits of images of 64 pixels."""
        patches = x.reshape(-1, 4, 2, 4, 2).transpose(2, 3).reshape(-1, 16, 4)
        return self.head(self.encoder(self.patches(patches) + self.positions).mean(dim=1))


class Found(NamedTuple):
    """What one split gave."""

    certificate: float
    on_sample: float
    on_test: float  # of drawn networks, of which the certificate speaks, on examples that nobody has seen
    nats: float


class Settings(NamedTuple):
    """Deviation of the prior's weights, steps of its training (half as many on the bound), and draws."""

    deviation: float
    steps: int
    draws: int


PERCEPTRON = Settings(0.03, 1000, 4000)
TRANSFORMER = Settings(0.02, 600, 1000)  # 42 CPU seconds for a split


def one_split(seed: int, module: Callable[[], Any], settings: Settings = PERCEPTRON) -> Found:
    """Split, train the prior, train on the bound, certify, and look at the test examples."""
    deviation, steps, draws = settings
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    parts = np.split(order, [TEST, (len(order) + TEST) // 2])
    test, first, second = (
        Batch(jnp.asarray(digits.data[part] / 16, "float32"), jnp.asarray(digits.target[part])) for part in parts
    )
    key = jr.key(seed)
    optimizer = adam(5e-3, schedule=cosine(steps))
    noisy = WeightNoise(Risk(cross_entropy), deviation)
    start = gs.from_torch(module())
    prior = fit(start, Draws(first, stream(key, "prior"), 128), noisy, steps, optimizer=optimizer, every=steps).model
    bound = PacBayes(cross_entropy, prior=prior, sample_size=len(second.y), prior_deviation=deviation)
    posterior = fit(
        GaussianPosterior.around(prior, deviation, by_weight=True),
        Draws(second, stream(key, "bound"), 256),
        bound,
        steps // 2,
        optimizer=adam(1e-3, schedule=cosine(steps // 2)),
        every=steps // 2,
    ).model
    found = certify(
        posterior, second, error, prior=prior, prior_deviation=deviation, key=stream(key, "draws"), draws=draws
    )
    drawn = [each_loss(posterior.draw(each), test, error).mean() for each in jr.split(stream(key, "test"), 20)]
    return Found(found.certificate, found.empirical_risk, float(np.mean(drawn)), found.divergence)


def main(splits: int = 5) -> None:
    """Several splits, each with its own prior and certificate."""
    transformer = sys.argv[1:] == ["transformer"]
    for seed in range(splits):
        found = one_split(seed, VisionTransformer, TRANSFORMER) if transformer else one_split(seed, perceptron)
        print(
            f"split {seed}: error at most {found.certificate:.3f} with confidence 0.95; on the sample "
            f"{found.on_sample:.3f}, on {TEST} unseen digits {found.on_test:.3f}; {found.nats:.1f} nats"
        )


if __name__ == "__main__":
    main()
