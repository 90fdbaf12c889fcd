"""The Hessian's trace of a PyTorch encoder (about 100,000 weights, 10 classes, 256 images): ours against curvlinops.

The module is PyTorch's own `nn.TransformerEncoder`; both see the same weights, images and labels, in single precision
on one thread, and take 32 random sign vectors, so that both have the standard error of Hutchinson's estimator on one
matrix. CPU time is counted, with and without compilation. XTrace, our default, has a smaller error from as many
products: the time to the same error falls with its square. For curvlinops, attention is PyTorch's plain one, because
the fast ones have no second derivative; ours needs no such change.
"""

import time
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from benchmarks._timing import show
from genscope.measure import hessian_trace
from genscope.tasks import Batch
from genscope.train import cross_entropy

SIZE, PROBES, TOGETHER = 256, 32, 4
WIDTH, TOKENS, CLASSES = 64, 16, 10
CHUNK = 64  # images whose activations stay in the cache
KEY = jr.key(1)


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


def peer(module: Any, x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """CPU seconds, mean and standard error of curvlinops."""
    import torch  # pyright: ignore[reportMissingImports]  # a peer
    from curvlinops import HessianLinearOperator, hutchinson_trace  # pyright: ignore[reportMissingImports]  # a peer

    torch.backends.mha.set_fastpath_enabled(False)
    data = [(torch.tensor(x), torch.tensor(y))]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        hessian = HessianLinearOperator(
            module.eval(), torch.nn.CrossEntropyLoss(), list(module.parameters()), data, check_deterministic=False
        )
        hutchinson_trace(hessian, TOGETHER)  # builds its graph
        start = time.process_time()
        values = [float(hutchinson_trace(hessian, TOGETHER)) for _ in range(PROBES // TOGETHER)]
        seconds = time.process_time() - start
    return seconds, float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def ours(model: Any, batch: Batch, method: str = "hutchinson", probes: int = PROBES) -> tuple[float, float, float]:
    """CPU seconds, mean and standard error."""
    start = time.process_time()
    found = hessian_trace(model, batch, cross_entropy, method=method, probes=probes, key=KEY, chunk=CHUNK)
    return time.process_time() - start, found.mean, found.sem


def main() -> None:
    title = f"torch_sharpness: trace of a PyTorch encoder, {SIZE} images, {PROBES} probes"
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
    first, *_ = ours(model, batch)
    seconds, mean, sem = ours(model, batch)
    rows: dict[str, Any] = {
        "parameters": sum(each.numel() for each in module.parameters()),
        "ours, CPU s": seconds,
        "ours, first call with compilation, CPU s": first,
        "ours, trace": f"{mean:.4g} ± {sem:.2g}",
    }
    ours(model, batch, "xtrace", PROBES // 2)  # compiles for as many vectors
    again, mean, sharper = ours(model, batch, "xtrace", PROBES // 2)
    rows |= {"ours, XTrace with 32 products, CPU s": again, "ours, XTrace": f"{mean:.4g} ± {sharper:.2g}"}
    try:
        theirs, mean, spread = peer(module, x, y)
        rows |= {"curvlinops, CPU s": theirs, "curvlinops, trace": f"{mean:.4g} ± {spread:.2g}"}
        rows |= {"curvlinops, same probes: times slower": theirs / seconds, "with our compilation": theirs / first}
        # Both Hutchinson estimates have one standard error, of which ours is the better known.
        rows["curvlinops, times slower than XTrace at equal error"] = theirs / again * (sem / sharper) ** 2
    except ImportError:
        rows["curvlinops"] = "not installed here: its ratio is left out"
    show(title, rows)


if __name__ == "__main__":
    main()
