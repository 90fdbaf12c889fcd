"""One training step of the sparse-AND classifier at T = 300, m = 100, d = 64, 16 heads, against plain PyTorch.

Peers: a module that embeds and projects every token of every example but reads out CLS only, and one full
`nn.TransformerEncoderLayer`. Both are timed on all cores with full-batch Adam. Ours is timed with one trial at a time
and, as studies run it, with as many trials at once as there are cores; and against the arithmetic limit, its
multiply-adds at the rate of large matrix products that keep all cores busy.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr

from benchmarks._timing import best_seconds, show
from genscope.models.bit_classifier import TUNED, BitClassifier
from genscope.models.bit_classifier_fast import indicators, outputs_of_indicators
from genscope.random import stream
from genscope.tasks import Batch, SparseAnd
from genscope.train import Risk, Whole, adam, fit, logistic

LENGTH, SIZE, DIM, HEADS = 300, 100, 64, 16
STEPS = 50
CORES = len(os.sched_getaffinity(0))


def step_seconds(context_length: int, sample_size: int, *, threads: int = 1, steps: int = STEPS) -> float:
    """Seconds per step and trial of full-batch Adam, with `threads` trials at once."""
    run, trials = training(context_length, sample_size, threads, steps)
    with ThreadPoolExecutor(threads) as pool:
        return best_seconds(lambda: list(pool.map(run, trials))) / steps / threads


def training(context_length: int, sample_size: int, many: int, steps: int) -> tuple[Callable[..., None], list[Any]]:
    """What trains a classifier for so many steps, and what it trains."""

    def prepared(seed: int):
        key = jr.key(seed)
        task = SparseAnd.draw(stream(key, "support"), context_length=context_length, support_size=3)
        data = task.sample(stream(key, "data"), sample_size)
        model = BitClassifier(context_length, dim=DIM, heads=HEADS, initialisation=TUNED, key=stream(key, "init"))
        return model, Whole(Batch(indicators(data.x), data.y, jnp.ones(sample_size)))

    objective, optimizer = Risk(logistic, outputs_of_indicators), adam(1e-3)

    def run(trial) -> None:
        model, source = trial
        fit(model, source, objective, steps, optimizer=optimizer, every=steps)

    return run, [prepared(seed) for seed in range(many)]


def product_rate() -> float:
    """Multiply-adds per second of large products, one on each core."""
    matrix = jnp.ones((1024, 1024))
    product = jax.jit(jnp.matmul)
    with ThreadPoolExecutor(CORES) as pool:
        work = [matrix] * CORES
        seconds = best_seconds(lambda: list(pool.map(lambda m: product(m, m).block_until_ready(), work)))
    return CORES * 1024**3 / seconds


def multiply_adds(context_length: int = LENGTH, sample_size: int = SIZE) -> int:
    """Of one step: attention sums and table (both with their gradients), output map and MLP."""
    sums = 2 * sample_size * 2 * context_length * (DIM + HEADS)
    table = 3 * context_length * DIM * (DIM + HEADS)
    read_out = 3 * sample_size * (DIM * DIM + 2 * DIM * 4 * DIM)
    return sums + table + read_out


def torch_seconds() -> dict[str, float]:
    """Seconds per step of the two peers; empty without PyTorch."""
    try:
        import torch  # pyright: ignore[reportMissingImports]  # a peer, in the environment of `make bench`
        from torch import nn  # pyright: ignore[reportMissingImports]  # a peer, as above
    except ImportError:
        return {}
    torch.set_num_threads(CORES)
    torch.manual_seed(0)

    class Plain(nn.Module):
        """Every token of every example is embedded and projected; attention and read-out at CLS only."""

        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(2, DIM), nn.Embedding(LENGTH, DIM)
            self.cls = nn.Parameter(0.02 * torch.randn(DIM))
            self.norm, self.norm_mlp, self.norm_final = nn.LayerNorm(DIM), nn.LayerNorm(DIM), nn.LayerNorm(DIM)
            self.query, self.key_value = nn.Linear(DIM, DIM), nn.Linear(DIM, 2 * DIM)
            self.output, self.logit = nn.Linear(DIM, DIM), nn.Linear(DIM, 1)
            self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

        def forward(self, bits):
            tokens = self.token(bits) + self.position.weight
            tokens = torch.cat([tokens, self.cls.expand(len(bits), 1, DIM)], dim=1)
            normed = self.norm(tokens)
            split = (len(bits), -1, HEADS, DIM // HEADS)
            query = self.query(normed[:, -1:]).reshape(split).transpose(1, 2)
            key, value = (part.reshape(split).transpose(1, 2) for part in self.key_value(normed).chunk(2, dim=-1))
            mixed = nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(-1, DIM)
            residual = self.cls + self.output(mixed)
            residual = residual + self.mlp(self.norm_mlp(residual))
            return self.logit(self.norm_final(residual))[:, 0]

    class Full(nn.Module):
        """The same embedding under a stock encoder layer, which computes every position."""

        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(2, DIM), nn.Embedding(LENGTH, DIM)
            self.cls = nn.Parameter(0.02 * torch.randn(DIM))
            self.layer = nn.TransformerEncoderLayer(
                DIM, HEADS, 4 * DIM, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.logit = nn.Linear(DIM, 1)

        def forward(self, bits):
            tokens = self.token(bits) + self.position.weight
            tokens = torch.cat([tokens, self.cls.expand(len(bits), 1, DIM)], dim=1)
            return self.logit(self.layer(tokens)[:, -1])[:, 0]

    bits = (torch.rand(SIZE, LENGTH) < 2 ** (-1 / 3)).long()
    labels = bits[:, :3].prod(dim=1).float()

    def seconds(module: nn.Module, repeats: int) -> float:
        optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)

        def step() -> None:
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(module(bits), labels).backward()
            optimizer.step()

        return best_seconds(step, repeats=repeats)

    return {"plain": seconds(Plain(), 15), "full": seconds(Full(), 5)}


def main() -> None:
    one = step_seconds(LENGTH, SIZE)
    together = step_seconds(LENGTH, SIZE, threads=CORES)
    limit = multiply_adds() / product_rate()
    rows: dict[str, Any] = {
        "ours, ms per step, one trial at a time": 1e3 * one,
        f"ours, ms per step and trial, {CORES} trials at once": 1e3 * together,
        "arithmetic limit, ms per step and trial": 1e3 * limit,
        "ours over the limit": together / limit,
    }
    peers = torch_seconds()
    if not peers:
        rows["PyTorch"] = "not installed here: its ratios are left out"
    for name, label in (("plain", "plain PyTorch, CLS read-out"), ("full", "nn.TransformerEncoderLayer")):
        if name in peers:
            rows[f"{label}, ms per step, all cores"] = 1e3 * peers[name]
            rows[f"{label}: times slower than ours per trial"] = peers[name] / together
            rows[f"{label}: times slower than one trial of ours alone"] = peers[name] / one
    show("classifier step: T = 300, m = 100, d = 64, 16 heads", rows)


if __name__ == "__main__":
    main()
