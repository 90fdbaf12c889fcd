"""The Hessian's trace of a PyTorch encoder (about 100,000 weights, 10 classes, 256 images): ours against curvlinops.

The module is PyTorch's own `nn.TransformerEncoder`; both see the same weights, images and labels, in single precision
on one thread. CPU time to one standard error is compared, with and without compilation. For curvlinops, attention is
PyTorch's plain one, because the fast ones have no second derivative; ours needs no such change.
"""

from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from benchmarks import _peer_traces
from benchmarks._timing import show
from genscope.measure import Trace, hessian_trace
from genscope.tasks import Batch
from genscope.train import cross_entropy

SIZE = 256
WIDTH, TOKENS, CLASSES = 64, 16, 10
CHUNK = 64  # images whose activations stay in the cache


def encoder() -> Any:
    """Two layers over 16 tokens of 4 numbers."""
    import torch  # pyright: ignore[reportMissingImports]  # an extra
    from torch import nn  # pyright: ignore[reportMissingImports]

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Linear(4, WIDTH)
            layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(WIDTH, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(self.patches(x)).mean(dim=1))

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return Encoder()


def peer(module: Any, x: np.ndarray, y: np.ndarray, *facts: float) -> dict[str, Any]:
    """Rows of curvlinops."""
    import torch  # pyright: ignore[reportMissingImports]  # a peer
    from curvlinops import HessianLinearOperator  # pyright: ignore[reportMissingImports]  # a peer

    torch.backends.mha.set_fastpath_enabled(False)
    data = [(torch.tensor(x), torch.tensor(y))]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        hessian = HessianLinearOperator(
            module.eval(), torch.nn.CrossEntropyLoss(), list(module.parameters()), data, check_deterministic=False
        )
        return _peer_traces.theirs(hessian, *facts)


def main() -> None:
    title = f"torch_sharpness: trace of a PyTorch encoder, {SIZE} images"
    try:
        module = encoder()
        from genscope.models import from_torch

        model = from_torch(module)
    except (ImportError, ValueError):  # PyTorch or torchax
        show(title, {"genscope[torch]": "not installed here: the benchmark is left out"})
        return
    random = np.random.default_rng(0)
    x, y = random.normal(size=(SIZE, TOKENS, 4)).astype(np.float32), random.integers(0, CLASSES, SIZE)
    batch = Batch(jnp.asarray(x), jnp.asarray(y))

    def measure(method: str, probes: int, seed: int) -> Trace:
        return hessian_trace(model, batch, cross_entropy, method=method, probes=probes, key=jr.key(seed), chunk=CHUNK)

    rows: dict[str, Any] = {"parameters": sum(each.numel() for each in module.parameters())}
    found, cost, law = _peer_traces.ours(measure)
    rows |= found
    try:
        first, seconds = found["ours, first call with compilation, CPU s"], found["ours, CPU s"]
        rows |= peer(module, x, y, cost, law, first, seconds)
    except ImportError:
        rows["curvlinops"] = "not installed here: its ratio is left out"
    show(title, rows)


if __name__ == "__main__":
    main()
