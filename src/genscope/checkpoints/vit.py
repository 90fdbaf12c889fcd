"""Vision Transformers of timm: one weight `qkv` of shape [3d, d].

Source: the names of timm's `VisionTransformer`, whose norms stand before the attention. Those of its `ResPostBlock`
(`rpn` in the name of an architecture) have the same names and stand after it.
Guarantee: exact.
"""

import re
from collections.abc import Iterator

from genscope.checkpoints._layout import LEFT_OUT, Config, Kind, Layout, norm_before, thirds

_ATTENTION = "blocks.{}.attn.qkv.weight"


def _doubts(config: Config) -> Iterator[str]:
    named = config.get("architecture", "vit_")
    if not isinstance(named, str) or not re.match("(vit|deit3?)_", named) or re.search("rpn|relpos", named):
        yield f"its config calls it {named!r:.40}: known are the vit_ and deit_ of timm with norms before the attention"


LAYOUT = Layout(
    architecture="ViT",
    kinds={None: Kind()},
    signs=(_ATTENTION, "blocks.{}.norm1.weight"),
    names=r"attn\.(qkv|proj)\.(weight|bias)|norm[12]\.(weight|bias)|ls[12]\.gamma|mlp\..+",
    cut=thirds(_ATTENTION),
    input_norms=norm_before("blocks.{}.norm1"),
    embeddings={"position": "pos_embed", "class": "cls_token"},
    left_out=("the map from patches to tokens", *LEFT_OUT),
    doubts=_doubts,
)
