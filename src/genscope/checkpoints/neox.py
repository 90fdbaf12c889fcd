"""GPT-NeoX and Pythia: one weight of shape [3d, d] in which every head's query, key and value rows follow each other.

Source: the names of Hugging Face's `GPTNeoXModel`, which views the outputs as [heads, 3 k]. Attention and feedforward
network may stand side by side, and positions turn a part of each head only; neither enters a bound.
Guarantee: exact.
"""

from genscope.checkpoints._layout import (
    LEFT_OUT,
    ROTARY,
    HeadWeights,
    Kind,
    Layout,
    Stack,
    cut_rows,
    norm_before,
    rotary_doubts,
)
from genscope.refusal import Refusal

_ATTENTION = "layers.{}.attention.query_key_value.weight"


def _cut(stack: Stack, layer: int) -> HeadWeights:
    weight = stack.matrix(_ATTENTION.format(layer))
    if len(weight) % (3 * stack.heads):
        raise Refusal(
            f"got {stack.heads} heads for {len(weight)} outputs: each head must have three equal parts. Pass the "
            "model's config.json with --config, or its number of heads with --heads."
        )
    together = cut_rows(weight, stack.heads)  # [heads, d, 3 k]
    width = together.shape[2] // 3
    return HeadWeights(*(together[:, :, part * width : (part + 1) * width] for part in range(3)))


LAYOUT = Layout(
    architecture="GPT-NeoX",
    kinds={"gpt_neox": Kind(heads=64)},
    signs=(_ATTENTION, "layers.{}.input_layernorm.weight"),
    names=r"attention\.(query_key_value|dense)\.(weight|bias)|attention\.((masked_)?bias|rotary_emb\.inv_freq)"
    r"|(input|post_attention)_layernorm\.(weight|bias)|mlp\..+",
    cut=_cut,
    input_norms=norm_before("layers.{}.input_layernorm"),
    embeddings={"token": "embed_in.weight"},
    left_out=(ROTARY, *LEFT_OUT),
    doubts=rotary_doubts,
)
