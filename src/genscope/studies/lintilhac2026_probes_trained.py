"""Degree, sparsity and components of trained Transformers from queries, within a tolerance.

Source: lintilhac2026, Figure 8 and Appendix H (property tests of trained models).
Departures: those of `_walsh_training`. Two tolerances, 0.1 and 0.02 of the network's energy (training ends at 0.02
of the target's); the text we have does not give the paper's. Runs that do not converge are probed too, and say so.
Guarantee: that of `genscope.probe`, and that of `find_degree_within` if no output exceeds twice the largest label that
the target can have; each with confidence 0.99.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.lab import Line, Mean, Plan, Study, grid, within
from genscope.models.bit_transformer import BitTransformer
from genscope.probe import Oracle, find_degree_within, probe
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.studies._walsh_training import BATCH, train

TOLERANCES = {"coarse": 0.1, "fine": 0.02}
QUERIES = 2**18  # of each question to the network
_BLOCK = 256  # inputs at once: one program, and what it computes stays in the cache


def trial(
    key: Key[Array, ""], *, context_length: int, sample_size: int, degree: int, sparsity: int, steps: int
) -> dict[str, Any]:
    """Train a network, and ask it which function it has become.

    An answer is right if all its components are the target's, and those with more of the target's energy, which is 1,
    than the tolerance are in it.
    """
    run = train(
        key, context_length=context_length, degree=degree, sparsity=sparsity, sample_size=sample_size, steps=steps
    )
    network = _Network(run.model)
    target = {
        tuple(np.flatnonzero(row).tolist()): float(coefficient)
        for row, coefficient in zip(np.asarray(run.task.members), np.asarray(run.task.coefficients), strict=True)
    }
    seed = np.random.default_rng(np.asarray(jr.key_data(stream(key, "probe"))))
    facts: dict[str, Any] = {"converged": run.descent.converged, "training_error": run.descent.error}
    for name, tolerance in TOLERANCES.items():
        found = probe(network, context_length, tolerance=tolerance, queries=QUERIES, seed=int(seed.integers(2**32)))
        large = {support for support, coefficient in target.items() if coefficient**2 > tolerance}
        facts |= {
            f"{name}_degree": found.degree,
            f"{name}_sparsity": found.sparsity,
            f"{name}_right": found.sparsity is not None and large <= set(found.function.supports) <= set(target),
            f"{name}_queries": found.queries,
        }
    oracle = Oracle(network, context_length, limit=QUERIES, inputs="booleans")
    bound = 2 * sum(map(abs, target.values()))
    level = find_degree_within(oracle, tolerance=TOLERANCES["coarse"], bound=bound, rng=seed)
    return facts | {"tested_degree": level.value, "tested_queries": level.queries}


class _Network:
    """The network as a function of batches of bits, taken block by block."""

    def __init__(self, model: BitTransformer) -> None:
        self.model = model

    def __call__(self, x: np.ndarray) -> np.ndarray:
        if x.ndim != 2:
            raise Refusal(f"the network got an input of shape {x.shape}: it takes batches. Give [n, T].")
        padded = np.pad(x == 1, ((0, -len(x) % _BLOCK), (0, 0))).reshape(-1, _BLOCK, x.shape[1])
        blocks = [np.asarray(_outputs(self.model, jnp.asarray(block))) for block in padded]
        return np.concatenate(blocks)[: len(x)]


@eqx.filter_jit
def _outputs(model: BitTransformer, x: Array) -> Array:
    return model.outputs(x)


STUDY = Study(
    name="lintilhac2026-probes-trained",
    title="Which function has a Transformer learned? Degree and sparsity from queries",
    source="lintilhac2026, Figure 8",
    trial=trial,
    revision=2,
    trial_cost=10.0,
    points=grid(context_length=[20], sample_size=[4096], degree=[1, 2], sparsity=[2, 5], steps=[8_000]),
    seeds=4,
    budgets={
        "quick": Plan(grid(context_length=[20], sample_size=[4096], degree=[1], sparsity=[2], steps=[2_000])),
        "paper": Plan(
            grid(
                context_length=[20], sample_size=[8192], degree=[1, 2, 3, 4, 5], sparsity=[2, 5, 10, 20], steps=[50_000]
            ),
            seeds=8,
        ),
    },
    figures=(
        Line(
            title="Sparsity of trained networks, a tenth of the energy left out",
            caption=(
                "Components of the sum that is found by queries, means over networks with 95 % intervals. A component "
                "with less of the energy than the tolerance is left out, so the line may lie below the target's."
            ),
            labels={"sparsity": "components s of the target", "coarse_sparsity": "components found"},
            where={"converged": True},
            x="sparsity",
            y=Mean("coarse_sparsity"),
            by="degree",
        ),
        Line(
            title="Networks whose components are found, a fiftieth of the energy left out",
            caption=(
                "Share of networks of which the queries find every component of more energy than the tolerance, and "
                "none that the target does not have; 95 % intervals. Training ends at an error of 0.02, so a network "
                "may be further from every such sum than the tolerance allows, and the answer is then that none was "
                "found."
            ),
            labels={"sparsity": "components s of the target", "fine_right": "share found correctly"},
            where={"converged": True},
            x="sparsity",
            y=Mean("fine_right"),
            by="degree",
        ),
    ),
    batch=1,
    check=within(context_length=(2, 64), sample_size=(BATCH, 2**20), degree=(1, 64), sparsity=(1, 64), steps=(1, None)),
)
