"""The Hessian's trace of the two-layer bit Transformer (47,390 parameters, 512 strings): ours against curvlinops.

Both take 32 random sign vectors, so both have the same standard error: that of Hutchinson's estimator on the same
matrix. Same weights, data, number type and one thread; CPU time is counted. Ours differentiates the exact fast form
and linearizes the gradient once for all vectors, 64 strings at a time; curvlinops differentiates the plain form in
PyTorch, four vectors at once (all at once would take gigabytes). XTrace beside it: the error that ours reaches with
the same number of products.
"""

import time
from typing import Any

import jax.random as jr
import numpy as np

from benchmarks._timing import show
from benchmarks.bit_transformer import LENGTH, example, torch_network
from genscope.measure import gradient_trace, hessian_trace
from genscope.random import stream
from genscope.tasks import Batch, WalshSum

SIZE, PROBES, TOGETHER = 512, 32, 4
CHUNK = 64  # strings whose activations stay in the cache
KEY = jr.key(1)


def peer(model: Any, batch: Batch) -> tuple[float, float, float]:
    """CPU seconds, mean and standard error of curvlinops."""
    import torch  # pyright: ignore[reportMissingImports]  # a peer, in the environment of `make bench`
    from curvlinops import (  # pyright: ignore[reportMissingImports]  # a peer
        HessianLinearOperator,
        hutchinson_trace,
    )

    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = torch_network(model)
    data = [(torch.tensor(np.asarray(batch.x)).long(), torch.tensor(np.asarray(batch.y))[:, None])]
    column = torch.nn.Sequential(network, torch.nn.Unflatten(0, (-1, 1)))
    hessian = HessianLinearOperator(
        column, torch.nn.MSELoss(), list(column.parameters()), data, check_deterministic=False
    )
    hutchinson_trace(hessian, TOGETHER)  # builds its graph
    start = time.process_time()
    values = [float(hutchinson_trace(hessian, TOGETHER)) for _ in range(PROBES // TOGETHER)]
    seconds = time.process_time() - start
    return seconds, float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def ours(model: Any, batch: Batch, method: str, probes: int) -> tuple[float, float, float]:
    """CPU seconds, mean and standard error; the first call compiles."""
    hessian_trace(model, batch, method=method, probes=probes, key=KEY, chunk=CHUNK)
    start = time.process_time()
    found = hessian_trace(model, batch, method=method, probes=probes, key=KEY, chunk=CHUNK)
    return time.process_time() - start, found.mean, found.sem


def main() -> None:
    model, _ = example()
    task = WalshSum.draw(stream(KEY, "task"), context_length=LENGTH, degree=2, sparsity=5)
    batch = task.sample(stream(KEY, "data"), SIZE)
    start = time.process_time()
    hessian_trace(model, batch, method="hutchinson", probes=PROBES, key=KEY, chunk=CHUNK)
    compilation = time.process_time() - start
    rows: dict[str, Any] = {"ours, first call with compilation, CPU s": compilation}
    seconds, mean, sem = ours(model, batch, "hutchinson", PROBES)
    rows |= {"ours, 32 probes, CPU s": seconds, "ours, trace": f"{mean:.4g} ± {sem:.2g}"}
    again, mean, sem = ours(model, batch, "xtrace", PROBES // 2)
    rows |= {"ours, XTrace with 32 products, CPU s": again, "ours, XTrace": f"{mean:.4g} ± {sem:.2g}"}
    rows["ours, Gauss-Newton part"] = gradient_trace(model, batch).mean
    try:
        theirs, mean, sem = peer(model, batch)
        rows |= {"curvlinops, 32 probes, CPU s": theirs, "curvlinops, trace": f"{mean:.4g} ± {sem:.2g}"}
        rows["curvlinops: times slower"] = theirs / seconds
    except ImportError:
        rows["curvlinops"] = "not installed here: its ratio is left out"
    show("sharpness: trace of the bit Transformer, 512 strings", rows)


if __name__ == "__main__":
    main()
