r"""What a naming scheme says about a stack of attention layers, and the cuts that turn its weights into heads.

A head's maps act on tokens as rows, as in the theory: $W_Q, W_K, W_V$ are d x k, and
$\mathrm{Score}(x, z) = z^\top W_Q W_K^\top x$.

Source: edelman2022, Definition 3.1; the public names of the models' weights.
Departures: None.
Guarantee: exact; cuts are views of the stored arrays, and a weight of an unexpected shape or type is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

Weights = Mapping[str, np.ndarray]
_READABLE = ("float16", "bfloat16", "float32", "float64")


class Heads(NamedTuple):
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
    config: Mapping[str, Any]

    def count(self, *names: str) -> int | None:
        """A number of things from the config, under the first of its names that is there."""
        found = next((self.config[name] for name in names if self.config.get(name) is not None), None)
        if found is not None and (type(found) is not int or not 0 < found < 2**31):
            raise ValueError(
                f"the config gives {' or '.join(names)} as {found!r:.80}: it is a whole number, 1 or more. "
                "Give the model's own config.json by --config."
            )
        return found

    def get(self, name: str) -> np.ndarray | None:
        """A weight in a type that holds real numbers, or None if there is no such weight."""
        weight = self.weights.get(self.prefix + name)
        if weight is not None and weight.dtype.name not in _READABLE:
            raise ValueError(
                f"{self.prefix}{name} is stored as {weight.dtype.name}: norms are taken of {', '.join(_READABLE)}, "
                "since others need scales that are kept elsewhere. Convert the model to one of these first."
            )
        return weight

    def matrix(self, name: str) -> Float[np.ndarray, "rows columns"]:
        """A weight that a layer must have."""
        weight = self.get(name)
        if weight is None:
            raise ValueError(
                f"there is no weight {self.prefix}{name}, which every layer of this kind has. If this is one of "
                "several shards, give the model.safetensors.index.json that lists them all."
            )
        if weight.ndim != 2 or not weight.size:
            raise ValueError(
                f"{self.prefix}{name} has shape {list(weight.shape)}: a map has two axes, neither of them empty. "
                "Write the file anew."
            )
        return weight


@dataclass(frozen=True)
class Layout:
    """A naming scheme. In names, {} stands for the number of the layer."""

    architecture: str
    model_types: frozenset[str]  # in config.json; others share the names but perhaps not the arithmetic
    signs: tuple[str, ...]  # weights that every layer has, the first being that by which layers are found
    cut: Callable[[Stack, int], Heads]
    input_norms: Callable[[int], Sequence[str]]  # layer norms whose output may enter a layer; none if not known
    embeddings: Mapping[str, str]  # tables whose rows are added up to tokens
    left_out: tuple[str, ...]
    accepts: Callable[[Sequence[int]], bool] = lambda shape: True  # by the shape of the first sign
    score_scale: Callable[[Mapping[str, Any], int, int], float] | None = None  # config, layer, k; None: 1/sqrt(k)


def cut_rows(weight: Float[np.ndarray, "rows d"], heads: int) -> Float[np.ndarray, "heads d k"]:
    """The heads of a weight that stacks their outputs as rows, as PyTorch's linear maps do."""
    rows, dimension = weight.shape
    if rows % heads:
        raise ValueError(
            f"got {heads} heads for a weight of {rows} outputs: every head has equally many. Give the model's "
            "config.json by --config, or its number of heads by --heads."
        )
    return weight.reshape(heads, rows // heads, dimension).transpose(0, 2, 1)


def cut_thirds(weight: Float[np.ndarray, "rows d"], heads: int) -> Heads:
    """Queries, keys and values stacked as rows in this order, each with all heads."""
    if len(weight) % 3:
        raise ValueError(
            f"got a weight of {len(weight)} outputs for queries, keys and values: their sum is a multiple of 3. "
            "Grouped heads are not stored like this; give each of the three a weight of its own."
        )
    return Heads(*(cut_rows(part, heads) for part in np.split(weight, 3)))


# What the head of the theory lacks, whatever the model.
BIASES = "biases of the query, key and value maps"
RESIDUALS = "residual connections, and with them the composition of layers: each layer stands alone"
OUTPUT = "the output projection: the outputs of the heads are added up as they are"
NORMS = "layer norm, except that it bounds the tokens that enter"
MLP = "the feedforward network after each attention layer"
ROTARY = "rotary positions: the query-key map shown is that of a token with itself; its norms change with the distance"
GROUPED = "shared keys and values of grouped heads: every query head counts as if it had its own"
