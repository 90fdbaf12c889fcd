"""One AdamW step of the two-layer bit Transformer at T = 20, batch 256: fast form, plain form, and plain PyTorch.

All three train the same 47,390 parameters on one thread. CPU time is counted, so that a busy machine hardly matters.
PyTorch computes every position of both layers, as the plain form does; its outputs at our weights are compared first.
"""

from typing import Any

import jax.random as jr
import numpy as np

from benchmarks._timing import cpu_seconds, show
from genscope.models.bit_transformer import BitTransformer
from genscope.random import stream
from genscope.tasks import Batch, WalshSum
from genscope.train import Risk, Whole, adamw, fit, squared
from genscope.train.objective import Predict, by_example

LENGTH, SIZE, STEPS = 20, 256, 10
KEY = jr.key(0)


def example() -> tuple[BitTransformer, Batch]:
    task = WalshSum.draw(stream(KEY, "task"), context_length=LENGTH, degree=2, sparsity=5)
    return BitTransformer(LENGTH, key=stream(KEY, "init")), task.sample(stream(KEY, "data"), SIZE)


def step_seconds(model: BitTransformer, data: Batch, predict: Predict) -> float:
    """CPU seconds per step, of a compiled loop of several."""
    source, objective, optimizer = Whole(data), Risk(squared, predict), adamw(1e-3, weight_decay=1e-4)
    return cpu_seconds(lambda: fit(model, source, objective, STEPS, optimizer=optimizer, every=STEPS))[0] / STEPS


def torch_network(model: BitTransformer) -> Any:
    """The same network with the same weights in PyTorch, where that is installed."""
    import torch  # pyright: ignore[reportMissingImports]  # a peer, in the environment of `make bench`
    from torch import nn  # pyright: ignore[reportMissingImports]  # a peer, as above

    class Layer(nn.Module):
        def __init__(self, weights: Any):
            super().__init__()
            for name, value in vars(weights).items():
                setattr(self, name, nn.Parameter(torch.tensor(np.asarray(value))))

        def forward(self, h, scale):
            query, key, value = h @ self.w_query, h @ self.w_key, h @ self.w_value
            attention = torch.softmax(scale * query @ key.transpose(1, 2), dim=-1)
            h = h + attention @ value @ self.w_output
            return h + torch.relu(h @ self.w_up + self.b_up) @ self.w_down + self.b_down

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.bit = nn.Parameter(torch.tensor(np.asarray(model.bit)))
            self.first, self.second = Layer(model.first), Layer(model.second)
            self.w_read = nn.Parameter(torch.tensor(np.asarray(model.w_read)))
            self.b_read = nn.Parameter(torch.zeros(()))
            self.register_buffer("positions", torch.eye(LENGTH + 1))

        def forward(self, bits):
            bits = nn.functional.pad(bits, (0, 1))
            h = torch.cat([self.positions.expand(len(bits), -1, -1), self.bit[bits]], dim=-1)
            scale = float(np.log(LENGTH + 1) / np.sqrt(h.shape[-1]))
            return self.second(self.first(h, scale), scale)[:, -1] @ self.w_read + self.b_read

    return Network()


def torch_seconds(model: BitTransformer, data: Batch) -> float | None:
    """CPU seconds per step of the same network in PyTorch; None where it is not installed."""
    try:
        import torch  # pyright: ignore[reportMissingImports]  # a peer
    except ImportError:
        return None
    torch.set_num_threads(1)
    network = torch_network(model)
    bits, labels = torch.tensor(np.asarray(data.x)).long(), torch.tensor(np.asarray(data.y))
    with torch.no_grad():
        np.testing.assert_allclose(network(bits).numpy(), model.outputs(data.x), atol=1e-5)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-4)

    def steps() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            ((network(bits) - labels) ** 2).mean().backward()
            optimizer.step()

    return cpu_seconds(steps)[0] / STEPS


def main() -> None:
    model, data = example()
    fast = step_seconds(model, data, BitTransformer.outputs)
    plain = step_seconds(model, data, by_example)
    torch = torch_seconds(model, data)
    rows: dict[str, Any] = {
        "fast form, CPU ms per step": 1e3 * fast,
        "plain form, CPU ms per step": 1e3 * plain,
        "plain form: times slower": plain / fast,
    }
    if torch is None:
        rows["PyTorch"] = "not installed here: its ratio is left out"
    else:
        rows["PyTorch, CPU ms per step, one thread"] = 1e3 * torch
        rows["PyTorch: times slower"] = torch / fast
    show("bit transformer step: T = 20, batch 256, 47,390 parameters", rows)


if __name__ == "__main__":
    main()
