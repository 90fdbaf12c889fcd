"""How sharp is the head's Lipschitz inequality? The worst ratio of its two sides, by random and gradient search.

Source: edelman2022, Lemma 4.3, and the inequality behind Theorem 4.7.
Departures: the paper proves the lemma and does not search. The constant of softmax is 1, where the paper has 2.
Guarantee: a ratio above 1 would refute the inequality; the same search with a weakened inequality shows its power.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, Key

from genscope.lab import Line, Median, Plan, Study, grid, within
from genscope.measure.lipschitz import EVERY_TERM, DeepCase, HeadCase, deep_ratio, head_ratio, search_ratio
from genscope.random import stream
from genscope.refusal import Refusal

DIM, HEAD_DIM, LAYERS = 4, 3, 2
SIGMAS = {"identity": lambda x: x, "relu": jax.nn.relu, "tanh": jax.numpy.tanh}


def trial(
    key: Key[Array, ""], *, inequality: str, sigma: str, context_length: int, starts: int, steps: int
) -> dict[str, Any]:
    """Search the inequality as proved, and once more weakened: the constant halved, or the query-key term dropped."""
    sizes = {"context_length": context_length, "dim": DIM, "head_dim": HEAD_DIM, "sigma": SIGMAS[sigma]}
    ratio: Callable[..., Array]
    proved: dict[str, Any]
    weakened: dict[str, Any]
    if inequality == "head":
        ratio, draw = head_ratio, functools.partial(HeadCase.draw, **sizes)
        proved, weakened = {"softmax_constant": 1.0}, {"softmax_constant": 0.5}
    else:
        ratio, draw = deep_ratio, functools.partial(DeepCase.draw, **sizes, layers=LAYERS)
        proved, weakened = {"kept": EVERY_TERM}, {"kept": {**EVERY_TERM, "query_key": 0.0}}
    search = functools.partial(search_ratio, ratio, draw, key=stream(key, "cases"), starts=starts, steps=steps)
    worst = search(**proved)
    return {
        "worst_random": worst.drawn,
        "worst_gradient": worst.climbed,
        "worst_weakened": search(**weakened).climbed,
    }


def _check(point) -> None:
    within(context_length=(2, 1000), starts=(1, None), steps=(1, None))(point)
    for axis, known in (("inequality", ("head", "deep")), ("sigma", tuple(SIGMAS))):
        if axis in point and point[axis] not in known:
            raise Refusal(f"{axis} must be one of {', '.join(known)}. Choose one of them.")


def _points(lengths, sigmas, **search):
    return [
        *grid(inequality=["head"], sigma=sigmas, context_length=lengths, **search),
        *grid(inequality=["deep"], sigma=["relu"], context_length=[lengths[-1]], **search),
    ]


LABELS = {
    "context_length": "tokens n",
    "worst_gradient": "worst ratio, gradient search",
    "worst_weakened": "worst ratio, constant halved",
    "sigma": "σ",
}

STUDY = Study(
    name="edelman2022-lipschitz",
    title="How sharp is the head's Lipschitz inequality?",
    source="edelman2022, Lemma 4.3",
    trial=trial,
    trial_cost=3.0,
    points=_points([2, 4, 16], list(SIGMAS), starts=[256], steps=[1000]),
    seeds=2,
    budgets={
        "quick": Plan(_points([4], ["identity", "relu"], starts=[64], steps=[300]), seeds=1),
        "paper": Plan(_points([2, 4, 16, 64], list(SIGMAS), starts=[1024], steps=[3000]), seeds=8),
    },
    figures=(
        Line(
            title="Worst ratio of the two sides of Lemma 4.3",
            answer="Lemma 4.3: the largest ratio of its two sides that a search finds is {most}",
            caption=(
                "Left-hand side over right-hand side, the largest that gradient ascent finds from random starts; 1 "
                "would be equality."
            ),
            labels=LABELS,
            where={"inequality": "head"},
            x="context_length",
            y=Median("worst_gradient"),
            by="sigma",
        ),
    ),
    batch=1,
    check=_check,
)
