"""GPT-2: one weight of shape [d, 3d] holds queries, keys and values as columns.

Source: the names of Hugging Face's `GPT2Model`, whose `Conv1D` stores the transpose of a linear map.
Departures: None.
Guarantee: exact; nanoGPT's weight of the same name has the shape [3d, d] and is told apart by it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from genscope.checkpoints._layout import BIASES, MLP, NORMS, OUTPUT, RESIDUALS, Heads, Layout, Stack, cut_thirds

ATTENTION = "h.{}.attn.c_attn.weight"
EMBEDDINGS = {"token": "wte.weight", "position": "wpe.weight"}


def _cut(stack: Stack, layer: int) -> Heads:
    return cut_thirds(stack.matrix(ATTENTION.format(layer)).T, stack.heads)


def _accepts(shape: Sequence[int]) -> bool:
    return len(shape) == 2 and shape[1] == 3 * shape[0]


def input_norms(layer: int) -> tuple[str]:
    """The norm that stands before the attention."""
    return (f"h.{layer}.ln_1",)


def _score_scale(config: Mapping[str, Any], layer: int, width: int) -> float:
    scale = 1 / math.sqrt(width) if config.get("scale_attn_weights", True) else 1.0
    return scale / (layer + 1) if config.get("scale_attn_by_inverse_layer_idx") else scale


LAYOUT = Layout(
    architecture="GPT-2",
    model_types=frozenset({"gpt2"}),
    signs=(ATTENTION,),
    cut=_cut,
    input_norms=input_norms,
    embeddings=EMBEDDINGS,
    left_out=(BIASES, NORMS, RESIDUALS, OUTPUT, MLP),
    accepts=_accepts,
    score_scale=_score_scale,
)
