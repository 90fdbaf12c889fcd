"""The Hessian's trace of the two-layer bit Transformer (47,390 parameters, 512 strings): ours against curvlinops.

Same weights, data, number type and one thread; CPU time to one standard error is compared. Ours differentiates the
exact fast form; curvlinops differentiates the plain form in PyTorch. The last rows compare Hutchinson's estimator of
both, probe by probe.
"""

from typing import Any

import jax.random as jr
import numpy as np

from benchmarks import _peer_traces
from benchmarks._timing import cpu_seconds, show
from benchmarks.bit_transformer import LENGTH, example, torch_network
from genscope.measure import Trace, gradient_trace, hessian_trace
from genscope.random import stream
from genscope.tasks import Batch, WalshSum

SIZE = 512
CHUNK = 64  # strings whose activations stay in the cache
KEY = jr.key(1)


def peer(model: Any, batch: Batch, *facts: float) -> dict[str, Any]:
    """Rows of curvlinops."""
    import torch  # pyright: ignore[reportMissingImports]  # a peer, in the environment of `make bench`
    from curvlinops import HessianLinearOperator  # pyright: ignore[reportMissingImports]  # a peer

    torch.set_num_threads(1)
    network = torch_network(model)
    data = [(torch.tensor(np.asarray(batch.x)).long(), torch.tensor(np.asarray(batch.y))[:, None])]
    column = torch.nn.Sequential(network, torch.nn.Unflatten(0, (-1, 1)))
    hessian = HessianLinearOperator(
        column, torch.nn.MSELoss(), list(column.parameters()), data, check_deterministic=False
    )
    return _peer_traces.theirs(hessian, *facts)


def main() -> None:
    model, _ = example()
    task = WalshSum.draw(stream(KEY, "task"), context_length=LENGTH, degree=2, sparsity=5)
    batch = task.sample(stream(KEY, "data"), SIZE)

    def measure(method: str, probes: int, seed: int) -> Trace:
        return hessian_trace(model, batch, method=method, probes=probes, key=jr.key(seed), chunk=CHUNK)

    found, cost, law = _peer_traces.ours(measure)
    rows: dict[str, Any] = found | {"ours, Gauss-Newton part": gradient_trace(model, batch).mean}
    (plain,) = cpu_seconds(lambda: measure("hutchinson", _peer_traces.PROBES, 0), repeats=3)
    rows["ours, Hutchinson with 32 probes, CPU s"] = plain
    try:
        first, seconds = found["ours, first call with compilation, CPU s"], found["ours, CPU s"]
        rows |= peer(model, batch, cost, law, first, seconds)
        rows["curvlinops, times slower for a probe"] = rows["curvlinops, hutchinson, CPU s"] / plain
    except ImportError:
        rows["curvlinops"] = "not installed here: its ratio is left out"
    show("sharpness: trace of the bit Transformer, 512 strings", rows)


if __name__ == "__main__":
    main()
