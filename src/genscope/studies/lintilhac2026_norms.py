r"""Squared norm and Hessian trace of trained Transformers against those of the construction for the same function.

Source: lintilhac2026, Figure 2, Section 2.2 and Appendix A: T = 20, 8,192 strings.
Departures: those of `_walsh_training`; the construction has the value scale of the training labels ($\chi$, loss four
times that of $\varphi$) in the paper's weights (`full`), in the paper's weights with parameters for the bit's
coordinate alone (`minimal`), and tuned. Further arms change the initialization, the weight decay, or add weight noise:
the norm of a trained network is mostly that of its initialization.
Guarantee: norms are exact. Traces are unbiased estimates at the training sample: 64 probes, four on each of 16 parts of
32 strings, so that the spread over parts covers the choice of probes and of strings; the Gauss–Newton part is exact on
these 512 strings. The construction's norms and gradients are closed forms.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from genscope.constructions.fourier_components import fourier_components
from genscope.estimate import Estimate
from genscope.fourier import WalshFunction
from genscope.lab import Group, Plan, Scatter, Study, grid
from genscope.measure.sharpness import hessian_trace
from genscope.models.bit_transformer import BitTransformer
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.studies._walsh_training import DECAY, WalshRun, check, held_out_error, train
from genscope.tasks import Batch

PARTS, STRINGS, PROBES = 16, 32, 4
VARIANTS = ("full", "minimal", "tuned")


class Arm(NamedTuple):
    """How a run departs from the paper's."""

    scale: float = 1.0  # of the initial weights
    weight_decay: float = DECAY
    noise: float = 0.0  # standard deviation


ARMS = {
    "paper": Arm(),
    "half": Arm(scale=0.5),
    "quarter": Arm(scale=0.25),
    "decay": Arm(weight_decay=1e-2),
    "noise": Arm(noise=0.01),
}


def trial(
    key: Key[Array, ""],
    *,
    context_length: int,
    sample_size: int,
    degree: int,
    sparsity: int,
    arm: str,
    steps: int,
) -> dict[str, Any]:
    """Train, and measure the trained network and the construction of its target."""
    if arm not in ARMS or sample_size < PARTS * STRINGS:
        raise Refusal(
            f"got {arm=} and {sample_size=}: arms are {', '.join(ARMS)}, and traces are taken on {PARTS * STRINGS} "
            "strings of the sample. Choose one of them, and a sample that is large enough."
        )
    shape = {"context_length": context_length, "degree": degree, "sparsity": sparsity}
    run = train(key, **shape, sample_size=sample_size, steps=steps, **ARMS[arm]._asdict())
    tested = held_out_error(run, stream(key, "test"))
    trace = _trace(run, "hutchinson", stream(key, "probes"))
    gauss_newton = _trace(run, "gauss_newton", stream(key, "probes"))
    return {
        "converged": run.descent.converged,
        "epochs": run.descent.epochs,
        "training_error": run.descent.error,
        "test_error": tested.mean,
        "norm_squared": float(_squared(run.model)),
        "distance_squared": float(_squared(jax.tree.map(lambda a, b: a - b, run.model, run.start))),
        "trace": trace.mean,
        "trace_sem": trace.sem,
        "gauss_newton": gauss_newton.mean,
        "gauss_newton_sem": gauss_newton.sem,
        **constructed(run.task.function(), stream(key, "inputs")),
    }


def _trace(run: WalshRun, method: str, key: Key[Array, ""]) -> Estimate:
    """The mean over parts of the sample, with probes of their own."""
    found = []
    for part in range(PARTS):
        rows = slice(part * STRINGS, (part + 1) * STRINGS)
        strings = Batch(run.sample.x[rows], run.sample.y[rows])
        options: dict[str, Any] = {"probes": PROBES, "key": stream(key, str(part)), "predict": BitTransformer.outputs}
        found.append(hessian_trace(run.model, strings, method=method, **options).mean)
    return Estimate.of(np.asarray(found))


def constructed(function: WalshFunction, key: Key[Array, ""]) -> dict[str, float]:
    """Squared norm, trace and the trace's standard error of each variant of the construction."""
    found = {}
    for variant in VARIANTS:
        built = fourier_components(function, variant=variant, key=key)
        found |= {
            f"{variant}_norm_squared": built.norm_squared["total"],
            f"{variant}_trace": built.trace,
            f"{variant}_trace_sem": built.trace_sem,
        }
    return found


@eqx.filter_jit
def _squared(model: Any) -> Array:
    return sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(model)), start=jnp.zeros(()))


def points(classes: list[tuple[int, int]], arms: list[str], steps: int) -> tuple[dict[str, Any], ...]:
    """One point per arm and class, a degree with a number of components."""
    return tuple(
        point
        for degree, sparsity in classes
        for point in grid(
            context_length=[20], sample_size=[8192], degree=[degree], sparsity=[sparsity], arm=arms, steps=[steps]
        )
    )


_EASY = [(1, 2), (1, 5), (2, 2), (2, 5)]
_OTHER = [arm for arm in ARMS if arm != "paper"]


def _panel(value: str, words: str) -> Scatter:
    return Scatter(
        title=words,
        answer=f"{words}: the construction's is at least {{fold paper}} times that of any network trained as published",
        labels={value: f"{words}, trained", f"full_{value}": f"{words}, construction", "arm": "training"},
        where={"converged": True},
        x=f"full_{value}",
        y=value,
        by="arm",
        sem="trace_sem" if value == "trace" else None,
        diagonal=True,
        log_x=True,
        log_y=True,
    )


STUDY = Study(
    name="lintilhac2026-norms",
    title="Trained networks are smaller and flatter than the construction",
    source="lintilhac2026, Figure 2",
    trial=trial,
    trial_cost=15.0,
    points=(*points([*_EASY, (3, 2)], ["paper"], 20_000), *points([(1, 2), (2, 2)], _OTHER, 20_000)),
    seeds=2,
    budgets={
        "quick": Plan(points(_EASY, ["paper"], 8_000), seeds=1),
        "paper": Plan(
            points([(k, s) for k in (1, 2, 3, 4, 5) for s in (2, 5, 10, 20)], [*ARMS], 50_000),
            seeds=5,
        ),
    },
    figures=(
        Group(
            title="Trained networks against the construction of the same function",
            caption=(
                "Squared norm and trace of the Hessian of each trained network that converged, against those of the "
                "construction with the paper's weights. Below the diagonal the network is smaller, or flatter. Traces "
                "of trained networks are estimates; their bars are 95 % intervals, from the spread over 16 parts of "
                "the training sample."
            ),
            panels=(_panel("norm_squared", "Squared norm"), _panel("trace", "Hessian trace")),
        ),
    ),
    # The same function, sample and random numbers in every arm.
    paired=frozenset({"arm", "steps"}),
    batch=1,
    check=functools.partial(check, strings=PARTS * STRINGS),
)
