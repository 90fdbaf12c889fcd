"""The networks that a question may name, each with what builds it, how it is evaluated, and its recipe.

Source: edelman2022 (transformer), lintilhac2026 (bit-transformer), mousavi2025 (the recurrent cells).
Guarantee: exact; a user's builder is called with a key and the context length, and its network on one example.
"""

import difflib
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jaxtyping import Array, Key

from genscope.models import BitClassifier, BitEncoder, BitPerceptron, BitRecurrent, BitTransformer, outputs
from genscope.models.bit_classifier import TUNED
from genscope.models.bit_classifier_fast import indicators, outputs_of_indicators
from genscope.questions.recipes import Recipe
from genscope.refusal import Refusal

Build = Callable[[Key[Array, ""], int], Any]
IDEAL = "ideal"
DEEP = re.compile(r"deep-(\d+)x(\d+)x(\d+)")  # layers, heads, width


@dataclass(frozen=True)
class Network:
    """What learns: `build(key, context_length)`, its training, and outputs of a batch.

    `prepare` makes of bits what training reads, `train` the outputs from that; `predict` takes bits. `cost` is about
    the seconds that a trial with 300 examples of 16 bits takes on one core, and `growth` the power of the context
    length with which they grow: previews go by them until trials are stored.
    """

    words: str
    build: Build
    recipe: Recipe
    predict: Callable[[Any, Array], Array] = outputs
    prepare: Callable[[Array], Array] | None = None
    train: Callable[[Any, Array], Array] = outputs
    cost: float = 1.0
    growth: float = 1.0
    words_for_numbers: str | None = None
    """What it is where labels are numbers and the loss is the squared error, if that is something else."""

    def trial_seconds(self, context_length: int) -> float:
        """About how long a trial takes on one core, compilation aside."""
        return self.cost * (context_length / 16) ** self.growth


@partial(jax.jit, static_argnums=(1, 2))
def _drawn(key: Key[Array, ""], context_length: int, make: Callable[..., Any]) -> Any:
    return make(context_length, key=key)


def _drawing(make: Callable[..., Any]) -> Build:
    """Initial weights by one compiled program."""
    return lambda key, context_length: _drawn(key, context_length, make)


@partial(jax.jit)
def _indicators(x: Array) -> Array:
    return indicators(x)


def _recurrent(kind: str, cost: float, **recipe: Any) -> Network:
    words = f"{kind.upper()} of 64 units that reads bit and position, one by one"
    return Network(words, _drawing(partial(BitRecurrent, kind=kind)), Recipe(rows=128, floor=1e-3, **recipe), cost=cost)


NAMED: dict[str, Network] = {
    "transformer": Network(
        "one-layer Transformer of width 64 with 16 heads, read at CLS, by its exact shortcut",
        _drawing(partial(BitClassifier, initialisation=TUNED)),
        Recipe(rate=1e-3, epsilon=1e-5, floor=1e-3),
        predict=lambda model, x: model.outputs(x),
        prepare=_indicators,
        train=outputs_of_indicators,
        cost=0.4,
        growth=0.5,
    ),
    "bit-transformer": Network(
        "two-layer Transformer without layer norm, one head per layer, one-hot positions",
        _drawing(BitTransformer),
        Recipe(rows=256, floor=1e-4),
        cost=0.5,
        growth=1.5,
    ),
    "mlp": Network(
        "two hidden layers of 128 ReLU units",
        _drawing(BitPerceptron),
        Recipe(rate=3e-3, floor=1e-4),
        cost=0.3,
        growth=0.0,
    ),
    "rnn": _recurrent("rnn", 1.0, rate=3e-3),
    "gru": _recurrent("gru", 2.0, rate=1e-2),
    "lstm": _recurrent("lstm", 2.0, rate=1e-2),
    "linear": Network(
        "logistic regression",
        _drawing(partial(BitPerceptron, hidden=())),
        Recipe(rate=3e-2, steps=2000, floor=1e-3),
        cost=0.1,
        growth=0.0,
        words_for_numbers="linear regression",
    ),
}
OWN = Recipe(floor=1e-3)  # of a user's network


def shown(name: str) -> str:
    """A network's name for people: that of a user's without the digest of its file.

    >>> shown("mine.py:build@0922c442")
    'mine.py:build'
    """
    return name.partition("@")[0]


@functools.cache  # one object for a name, so that runs share programs
def named(name: str) -> Network:
    """The network of a name: one of `NAMED`, or `deep-LxHxD` for L layers of H heads and width D."""
    if name in NAMED:
        return NAMED[name]
    if sizes := DEEP.fullmatch(name):
        layers, heads, dim = map(int, sizes.groups())
        if not (1 <= layers <= 48 and 1 <= heads <= dim <= 1024 and dim % heads == 0):
            raise Refusal(
                f"learn got the network {name!r}: it must have 1 to 48 layers, and a width of at most 1,024 that is "
                "a multiple of the number of heads. Change --layers, --heads or --dim."
            )
        words = f"Transformer of {layers} layers, {heads} heads and width {dim}, read at CLS"
        return Network(
            words,
            _drawing(partial(BitEncoder, layers=layers, heads=heads, dim=dim)),
            Recipe(rate=3e-3, rows=256, floor=1e-3),
            cost=layers * dim / 48,
            growth=1.5,
        )
    near = difflib.get_close_matches(name, [*NAMED, "deep", IDEAL], n=1, cutoff=0.75)
    raise Refusal(
        f"learn got the network {name!r}: networks are {', '.join(NAMED)}, deep (with --layers, --heads and --dim), "
        f"{IDEAL}, and your own function, my_file.py:build. "
        f"{f'Did you mean {near[0]}?' if near else 'Choose one of them.'}"
    )
