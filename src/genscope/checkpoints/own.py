r"""genscope's own model files: the Transformers of the constructions, the trained classifier and the two-layer network.

Source: `models.file`, whose header names the class; edelman2022, Definition 3.2.
Guarantee: exact; weights are read as those of any other file, and the header tells what they are. Other classes of
genscope have no attention heads that the theorem speaks of, and are refused.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from genscope.checkpoints._layout import MLP, NORMS, OUTPUT, RESIDUALS, HeadWeights, Kind, Layout, Stack, Weights
from genscope.refusal import Refusal

_ENTRY = "genscope"  # of the header
READ_OUT = "the read-out, and the output matrix with sigma: they multiply the accuracy that a head is asked for"


def description(path: Path) -> Mapping[str, Any] | None:
    """What the header of a file says of the model; None of a file that genscope did not write."""
    try:
        with safetensors.safe_open(path, "numpy") as opened:
            text = (opened.metadata() or {}).get(_ENTRY)
        found = None if text is None else json.loads(text)
    except Exception:  # whatever the library makes of another file: the reader says what is wrong with it
        return None
    return found if isinstance(found, dict) else None


def arranged(path: Path, weights: Weights, told: Mapping[str, Any]) -> tuple[Layout, Stack, int]:
    """Layout, weights and number of layers of a model of genscope's."""
    name = str(told.get("class"))
    if name not in _CLASSES:
        raise Refusal(
            f"{path} holds genscope's {name}, whose attention is not the kind the theorem covers: norms are "
            f"computed for {', '.join(_CLASSES)}. Look at it with genscope probe or genscope sharpness instead."
        )
    layout, heads, length, layers = _CLASSES[name]
    config = {"max_position_embeddings": length(weights, told)}
    return layout(told), Stack(weights, "model.", heads(told), config), layers


def _columns(weight: np.ndarray, heads: int) -> np.ndarray:
    """The heads of a weight that stacks their outputs as columns."""
    return weight.reshape(weight.shape[0], heads, -1).transpose(1, 0, 2)


def _no_norm(layer: int) -> tuple[str, ...]:
    return ()


# --- The theory's Transformer ----------------------------------------------------------------------------------------


def _theory_cut(stack: Stack, layer: int) -> HeadWeights:
    maps = [
        [stack.matrix(f"heads.heads.{head}.{name}") for head in range(stack.heads)] for name in ("w_q", "w_k", "w_v")
    ]
    return HeadWeights(*(np.stack(each) for each in maps))


def _theory_length(weights: Weights, told: Mapping[str, Any]) -> int:
    vectors, specials = told["encoding"]["vectors"], 3 if told["encoding"]["class"] == "Positional" else 1
    return (vectors["count"] if vectors.get("class") == "Coordinates" else vectors["shape"][0]) - specials


def _theory_longest(told: Mapping[str, Any]) -> Callable[[Stack, int], float]:
    additive = told["encoding"]["class"] == "Positional"

    def longest(stack: Stack, layer: int) -> float:
        vectors = stack.get("encoding.vectors")
        if vectors is None:  # coordinate vectors
            return math.sqrt(2) if additive else 1.0
        rows = vectors.astype(float)
        tokens = [rows[3:] + bit for bit in rows[1:3]] if additive else [rows[1:]]
        return float(max(np.linalg.norm(part, axis=1).max() for part in [rows[:1], *tokens]))

    return longest


def _theory(told: Mapping[str, Any]) -> Layout:
    return Layout(
        architecture="genscope's Transformer",
        kinds={None: Kind(score_scale=lambda stack, layer, width: 1.0)},
        signs=("heads.heads.0.w_q",),
        names="",
        cut=_theory_cut,
        input_norms=_no_norm,
        embeddings={},
        left_out=(READ_OUT,),
        longest=_theory_longest(told),
    )


# --- The trained classifier ------------------------------------------------------------------------------------------


def _classifier_cut(stack: Stack, layer: int) -> HeadWeights:
    return HeadWeights(*(_columns(stack.matrix(name), stack.heads) for name in ("w_query", "w_key", "w_value")))


def _classifier_longest(stack: Stack, layer: int) -> float:
    r"""Layer norm makes of any token $g\odot u+b$ with $\|u\|\le\sqrt d$."""
    gain, bias = (np.asarray(stack.get(name), float) for name in ("gain_attention", "bias_attention"))
    return math.sqrt(gain.size) * float(np.abs(gain).max()) + float(np.linalg.norm(bias))


def _classifier(told: Mapping[str, Any]) -> Layout:
    return Layout(
        architecture="genscope's BitClassifier",
        kinds={None: Kind()},
        signs=("w_query",),
        names="",
        cut=_classifier_cut,
        input_norms=_no_norm,
        embeddings={"token": "token", "position": "position"},
        left_out=("biases of the query and value maps", NORMS, OUTPUT, MLP),
        longest=_classifier_longest,
    )


# --- The two-layer Transformer ---------------------------------------------------------------------------------------


def _two_layer_cut(stack: Stack, layer: int) -> HeadWeights:
    place = ("first", "second")[layer]
    return HeadWeights(*(stack.matrix(f"{place}.{name}")[None] for name in ("w_query", "w_key", "w_value")))


def _two_layer(told: Mapping[str, Any]) -> Layout:
    positions = len(told["position_ids"])

    def longest(stack: Stack, layer: int) -> float | None:
        if layer:  # what the first layer makes of its tokens is not bounded by a norm
            return None
        bit = np.asarray(stack.get("bit"), float)
        return math.sqrt(1 + float((bit**2).sum(axis=1).max()))

    def score_scale(stack: Stack, layer: int, width: int) -> float:
        return math.log(positions) / math.sqrt(width)

    return Layout(
        architecture="genscope's BitTransformer",
        kinds={None: Kind(score_scale=score_scale)},
        signs=("first.w_query",),
        names="",
        cut=_two_layer_cut,
        input_norms=_no_norm,
        embeddings={"bit": "bit"},
        left_out=(RESIDUALS, OUTPUT, MLP),
        longest=longest,
    )


_CLASSES: Mapping[str, Any] = {  # layout, number of heads, context length, number of layers
    "Transformer": (_theory, lambda told: len(told["heads"]["heads"]), _theory_length, 1),
    "BitClassifier": (
        _classifier,
        lambda told: told["heads"],
        lambda weights, told: told["position"]["shape"][0],
        1,
    ),
    "BitTransformer": (_two_layer, lambda told: 1, lambda weights, told: len(told["position_ids"]) - 1, 2),
}
