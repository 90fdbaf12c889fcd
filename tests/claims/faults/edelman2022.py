"""What is broken for each claim of edelman2022, and the least size at which its rule sees it."""

import dataclasses
import math
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from genscope.claims import edelman2022_restarts
from genscope.lab import Plan, grid
from genscope.lab.statistics.threshold import Search
from genscope.precision import float64
from genscope.studies import (
    _bit_training,
    edelman2022_and,
    edelman2022_and_restarts,
    edelman2022_attention,
    edelman2022_capacity,
    edelman2022_constructions,
    edelman2022_curves,
    edelman2022_lipschitz,
    edelman2022_parity,
)
from tests.claims.faults._base import Fault, Patch, points, wrap


def _halved_constant(patch: Patch) -> None:
    def weaker(true, case, *, softmax_constant):
        return true(case, softmax_constant=softmax_constant / 2)

    wrap(patch, edelman2022_lipschitz, "head_ratio", weaker)


def _squared_logarithm(patch: Patch) -> None:
    true, norms = edelman2022_capacity.BOUNDS["head"]

    def faster(*, points, **options):
        bound = true(points=points, **options)
        return dataclasses.replace(bound, terms={name: math.log(points) * term for name, term in bound.terms.items()})

    patch.setitem(edelman2022_capacity.BOUNDS, "head", (faster, norms))


def _blunt_head(patch: Patch) -> None:
    true = edelman2022_constructions.BUILDERS["any"]

    def blunt(*arguments, **options):
        built = true(*arguments, **options)
        with float64():
            model = eqx.tree_at(lambda m: m.heads.heads[0].w_q, built.model, replace_fn=lambda w: w / 8)
        return dataclasses.replace(built, model=model)

    patch.setitem(edelman2022_constructions.BUILDERS, "any", blunt)


def _learner(right: Callable[..., np.ndarray]) -> Callable[[Patch], None]:
    """A learner without training; `right(x, y, fresh)` predicts the labels of fresh strings from a sample."""

    def learn(*, data_key, context_length, sample_size, **_):
        generator = np.random.default_rng(np.asarray(jr.key_data(data_key)))
        x = generator.random((sample_size + 1_000, context_length)) < 0.5 ** (1 / 3)  # balanced labels, as in the task
        y = x[:, :3].all(axis=1)
        predicted = right(x[:sample_size], y[:sample_size], x[sample_size:])
        return {"success": bool((predicted == y[sample_size:]).mean() > 0.95)}

    def learn_often(**options):
        found = learn(**options)
        return {**found, "share": float(found["success"])}

    def plant(patch: Patch) -> None:
        patch.setattr(edelman2022_and, "learn_and", learn)
        patch.setattr(edelman2022_and_restarts, "learn_with_restarts", learn_often)

    return plant


def _eliminate(x, y, fresh):
    """The AND of all bits that are 1 in every positive example."""
    return fresh[:, x[y].all(axis=0)].all(axis=1)


def _correlated(x, y, fresh):
    """The AND of the three bits that agree best with the label."""
    return fresh[:, np.argsort(-(x == y[:, None]).mean(axis=0), kind="stable")[:3]].all(axis=1)


def _short_contexts(patch: Patch) -> None:
    """The learner that holds, and contexts that are long enough for A9 at 90 bits."""
    _learner(_correlated)(patch)
    patch.setattr(edelman2022_restarts, "LONGEST", 90)


def _least_squares(x, y, fresh):
    padded, asked = (np.hstack([part, np.ones((len(part), 1))]) for part in (x, fresh))
    return asked @ np.linalg.lstsq(padded, y.astype(float))[0] > 0.5


def _shuffled_sample(patch: Patch) -> None:
    wrap(patch, edelman2022_curves, "train", lambda true, *args, **kw: true(*args, **kw, shuffle_labels=True))


def _untrained_head(patch: Patch) -> None:
    def before(true, model, x):
        start = _bit_training.initial_model(jr.key(0), x.shape[1], _bit_training.PRESETS["tuned"].initialisation)
        return true(start, x)

    wrap(patch, edelman2022_attention, "cls_attention", before)


def _shuffled_batches(patch: Patch) -> None:
    true = edelman2022_parity.logistic
    wrong = dataclasses.replace(true, each=lambda outputs, y: true.each(outputs, jnp.roll(y, 1, axis=0)))
    patch.setattr(edelman2022_parity, "logistic", wrong)


# Both claims about restarts are decided by the same trials.
_RESTARTS = Fault(
    "least squares in place of restarts",
    _learner(_least_squares),
    [
        Plan(
            grid(context_length=lengths, preset=["tuned"]),
            search=Search(lowest=10, highest=5_000, start=60, width=0.1, trials=240, batch=16, round=48),
        )
        for lengths in ([10, 30], [90])
    ],
    prepare=_short_contexts,
)

FAULTS = {
    "A1": Fault(
        "the constant of the softmax halved",
        _halved_constant,
        [Plan(grid(inequality=["head"], sigma=["identity"], context_length=[4], starts=[16], steps=[150]))],
        slow=True,
    ),
    "A2": Fault(
        "a bound for one head that grows like log² T",
        _squared_logarithm,
        [Plan(points(edelman2022_capacity.STUDY, bound="head"))],
    ),
    "A3": Fault(
        "heads an eighth as sharp as the proof asks for",
        _blunt_head,
        [Plan(points(edelman2022_constructions.STUDY, construction="any", context_length=12))],
    ),
    "A4": Fault(
        "least squares in place of a learner that looks for three bits",
        _learner(_least_squares),
        [
            Plan(
                grid(context_length=[10, 30, 90], preset=["tuned"]),
                search=Search(lowest=10, highest=5_000, start=100, width=0.1, trials=64, batch=16, round=32),
            )
        ],
        prepare=_learner(_eliminate),
    ),
    "A5": Fault(
        "shuffled labels",
        _shuffled_sample,
        [Plan(grid(context_length=[20], sample_size=[200], preset=["minGPT"]), seeds=8)],
        slow=True,
    ),
    "A6": Fault(
        "the attention of an untrained network",
        _untrained_head,
        [Plan(grid(context_length=[31], sample_size=[300], preset=["tuned"]), seeds=12)],
        slow=True,
    ),
    "A7": Fault(
        "shuffled labels in every batch",
        _shuffled_batches,
        [Plan(grid(context_length=[4], rate=[3e-4], budget=[1_000]), seeds=10)],
        slow=True,
    ),
    "A8": _RESTARTS,
    "A9": dataclasses.replace(_RESTARTS, words=f"{_RESTARTS.words}, and of single runs"),
}
