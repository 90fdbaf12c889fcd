"""Vision Transformers of timm: one weight `qkv` of shape [3d, d].

Source: the names of timm's `VisionTransformer`.
Departures: None.
Guarantee: exact.
"""

from genscope.checkpoints._layout import BIASES, MLP, NORMS, OUTPUT, RESIDUALS, Heads, Layout, Stack, cut_thirds

_ATTENTION = "blocks.{}.attn.qkv.weight"


def _cut(stack: Stack, layer: int) -> Heads:
    return cut_thirds(stack.matrix(_ATTENTION.format(layer)), stack.heads)


def _input_norms(layer: int) -> tuple[str]:
    return (f"blocks.{layer}.norm1",)


LAYOUT = Layout(
    architecture="ViT",
    model_types=frozenset(),
    signs=(_ATTENTION, "blocks.{}.norm1.weight"),
    cut=_cut,
    input_norms=_input_norms,
    embeddings={"position": "pos_embed", "class": "cls_token"},
    left_out=("the map from patches to tokens", BIASES, NORMS, RESIDUALS, OUTPUT, MLP),
)
