"""GPT-2: one weight of shape [d, 3d] holds queries, keys and values as columns.

Source: the names of Hugging Face's `GPT2Model`, whose `Conv1D` stores the transpose of a linear map.
Guarantee: exact; nanoGPT's weight of the same name has the shape [3d, d] and is told apart by it.
"""

from collections.abc import Sequence

from genscope.checkpoints._layout import LEFT_OUT, HeadWeights, Kind, Layout, Stack, cut_thirds, norm_before, over_root

ATTENTION = "h.{}.attn.c_attn.weight"


def _cut(stack: Stack, layer: int) -> HeadWeights:
    return cut_thirds(stack.matrix(ATTENTION.format(layer)).T, stack.heads)


def _accepts(shape: Sequence[int]) -> bool:
    return len(shape) == 2 and shape[1] == 3 * shape[0]


def _score_scale(stack: Stack, layer: int, width: int) -> float:
    scale = over_root(stack, layer, width) if stack.config.get("scale_attn_weights", True) else 1.0
    return scale / (layer + 1) if stack.config.get("scale_attn_by_inverse_layer_idx") else scale


LAYOUT = Layout(
    architecture="GPT-2",
    kinds={"gpt2": Kind(score_scale=_score_scale, heads=12)},
    signs=(ATTENTION,),
    names=r"attn\.c_(attn|proj)\.(weight|bias)|attn\.(masked_)?bias|ln_[12]\.(weight|bias)|mlp\..+",  # with its masks
    cut=_cut,
    input_norms=norm_before("h.{}.ln_1"),
    embeddings={"token": "wte.weight", "position": "wpe.weight"},
    left_out=LEFT_OUT,
    accepts=_accepts,
)
