"""PyTorch's own encoder layers: one weight `in_proj_weight` of shape [3d, d].

Source: the names of `torch.nn.TransformerEncoder` and its `MultiheadAttention`.
Guarantee: exact. Weights do not tell whether norms stand before the attention (`norm_first`) or after it, so the
tokens that enter a layer are bounded under both, and those of the first layer not at all. A decoder layer has weights
that an encoder layer lacks, and no bounds.
"""

from genscope.checkpoints._layout import LEFT_OUT, Kind, Layout, thirds

_ATTENTION = "layers.{}.self_attn.in_proj_weight"


def _input_norms(layer: int) -> tuple[str, ...]:
    return (f"layers.{layer}.norm1", f"layers.{layer - 1}.norm2") if layer else ()


LAYOUT = Layout(
    architecture="PyTorch encoder",
    kinds={None: Kind()},
    signs=(_ATTENTION,),
    names=r"self_attn\.(in_proj_weight|in_proj_bias|out_proj\.(weight|bias))|(linear|norm)[12]\.(weight|bias)",
    cut=thirds(_ATTENTION),
    input_norms=_input_norms,
    embeddings={},
    left_out=LEFT_OUT,
)
