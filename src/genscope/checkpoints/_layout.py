r"""What a naming scheme says about a stack of attention layers, and the cuts that turn its weights into heads.

A head's maps act on tokens as rows, as in the theory: $W_Q, W_K, W_V$ are d x k, and
$\mathrm{Score}(x, z) = z^\top W_Q W_K^\top x$.

Source: edelman2022, Definition 3.2; the public names of the models' weights, and what Hugging Face's transformers
computes with them.
Guarantee: exact; cuts are views of the stored arrays, and a weight of an unexpected shape or type is refused.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from genscope.refusal import Refusal

Weights = Mapping[str, np.ndarray]
Config = Mapping[str, Any]
_READABLE = ("float16", "bfloat16", "float32", "float64")


class HeadWeights(NamedTuple):
    """The maps of one layer's heads; query head h reads key and value head h * groups // heads."""

    query: Float[np.ndarray, "heads d k"]
    key: Float[np.ndarray, "groups d k"]
    value: Float[np.ndarray, "groups d v"]


@dataclass(frozen=True)
class Stack:
    """Layers that share a prefix in a file; names are given without it."""

    weights: Weights
    prefix: str
    heads: int
    config: Config

    def count(self, *names: str) -> int | None:
        """A number of things from the config, under the first of its names that is there."""
        found = next((self.config[name] for name in names if self.config.get(name) is not None), None)
        if found is not None and (type(found) is not int or not 0 < found < 2**31):
            raise Refusal(
                f"the config gives {' or '.join(names)} as {found!r:.80}: it must be a whole number, at least 1. "
                "Pass the model's own config.json with --config."
            )
        return found

    def number(self, name: str, default: float) -> float:
        """A factor from the config, or what the model takes where it is left out."""
        found = self.config.get(name, default)
        if type(found) not in (int, float) or not 0 < found < 1e308:
            raise Refusal(
                f"the config gives {name} as {found!r:.80}: it must be a finite number above 0. Pass the model's "
                "own config.json with --config."
            )
        return float(found)

    def get(self, name: str) -> np.ndarray | None:
        """A weight in a type that holds real numbers, or None if there is no such weight."""
        weight = self.weights.get(self.prefix + name)
        if weight is not None and weight.dtype.name not in _READABLE:
            raise Refusal(
                f"{self.prefix}{name} is stored as {weight.dtype.name}: norms can be computed for "
                f"{', '.join(_READABLE)}; other types need scales that are stored elsewhere. Convert the model to "
                "one of these types first."
            )
        return weight

    def matrix(self, name: str) -> Float[np.ndarray, "rows columns"]:
        """A weight that a layer must have."""
        weight = self.get(name)
        if weight is None:
            raise Refusal(
                f"there is no weight {self.prefix}{name}, which every layer of this kind has. If this is one of "
                "several shards, give the directory that holds them all."
            )
        if weight.ndim != 2 or not weight.size:
            raise Refusal(
                f"{self.prefix}{name} has shape {list(weight.shape)}: a weight matrix must have two axes, neither "
                "of them empty. Write the file again."
            )
        return weight


def over_root(stack: Stack, layer: int, width: int) -> float:
    """The usual factor on scores."""
    return 1 / math.sqrt(width)


@dataclass(frozen=True)
class Kind:
    """What a model computes with the weights of its layout, as far as that enters a bound."""

    gain: float = 0.0  # a norm multiplies by this plus its weight
    score_scale: Callable[[Stack, int, int], float] = over_root  # of a layer whose heads have this width
    heads: int | None = None  # where the config leaves them out
    padding: int | None = None  # the token of padding, if positions are counted from the one after it
    names: str = ""  # pattern of weights that its layers have besides those of the layout
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """A naming scheme. In names, {} stands for the number of the layer."""

    architecture: str
    kinds: Mapping[str | None, Kind]  # by model_type in config.json; None if files of this scheme come without
    signs: tuple[str, ...]  # weights that every layer has, the first being that by which layers are found
    names: str  # pattern of the weights of a layer, less its beginning: with others it computes what we do not know
    cut: Callable[[Stack, int], HeadWeights]
    input_norms: Callable[[int], Sequence[str]]  # layer norms whose output may enter a layer; none if not known
    embeddings: Mapping[str, str]  # tables whose rows are added up to tokens
    left_out: tuple[str, ...]
    accepts: Callable[[Sequence[int]], bool] = lambda shape: True  # by the shape of the first sign
    doubts: Callable[[Config], Iterable[str]] = lambda config: ()  # what a config says that no bound here allows for
    longest: Callable[[Stack, int], float | None] | None = None  # token that enters a layer, if not by a layer norm


def cut_rows(weight: Float[np.ndarray, "rows d"], heads: int) -> Float[np.ndarray, "heads d k"]:
    """The heads of a weight that stacks their outputs as rows, as PyTorch's linear maps do."""
    rows, dimension = weight.shape
    if rows % heads:
        raise Refusal(
            f"got {heads} heads for a weight of {rows} outputs: the outputs must divide evenly among the heads. "
            "Pass the model's config.json with --config, or its number of heads with --heads."
        )
    return weight.reshape(heads, rows // heads, dimension).transpose(0, 2, 1)


def thirds(name: str) -> Callable[[Stack, int], HeadWeights]:
    """The cut of layers with one weight of that name, which stacks queries, keys and values as rows."""
    return lambda stack, layer: cut_thirds(stack.matrix(name.format(layer)), stack.heads)


def norm_before(name: str) -> Callable[[int], Sequence[str]]:
    """Of layers whose attention reads what the norm of that name gives."""
    return lambda layer: (name.format(layer),)


def cut_thirds(weight: Float[np.ndarray, "rows d"], heads: int) -> HeadWeights:
    """Queries, keys and values stacked as rows in this order, each with all heads."""
    if len(weight) % 3:
        raise Refusal(
            f"got a weight of {len(weight)} outputs for queries, keys and values together: the number must be a "
            "multiple of 3. Grouped heads are not stored like this; store queries, keys and values as separate "
            "weights."
        )
    return HeadWeights(*(cut_rows(part, heads) for part in np.split(weight, 3)))


# What the head of the theory lacks, whatever the model.
BIASES = "biases of the query, key and value maps"
RESIDUALS = "residual connections, and with them the composition of layers: each layer stands alone"
OUTPUT = "the output projection: the outputs of the heads are added up as they are"
NORMS = "layer norm, except that it bounds the tokens that enter"
MLP = "the feedforward network after each attention layer"
LEFT_OUT = (NORMS, RESIDUALS, OUTPUT, MLP)
ROTARY = "rotary positions: the query-key map shown is that of a token with itself; its norms change with the distance"
GROUPED = "shared keys and values of grouped heads: every query head counts as if it had its own"
CAPPED = "soft-capping of scores, if the config asks for it: its slope is at most 1, so that the bounds hold with it"
AFTER = "the norm after the attention"

_TURNING = ("default", "linear", "dynamic", "llama3")


def rotary_doubts(config: Config) -> Iterator[str]:
    """Rotary positions turn queries and keys; some kinds (YaRN, LongRoPE) multiply them by a factor as well."""
    for name in ("rope_scaling", "rope_parameters"):
        given = config.get(name)
        nested = [given, *given.values()] if isinstance(given, Mapping) else []  # one for all, or one per kind of layer
        for each in nested:
            kind = each.get("rope_type", each.get("type", "default")) if isinstance(each, Mapping) else "default"
            if kind not in _TURNING:
                yield f"rotary positions of the kind {kind!r:.40} may stretch queries and keys besides turning them"
