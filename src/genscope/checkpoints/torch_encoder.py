"""PyTorch's own encoder layers: one weight `in_proj_weight` of shape [3d, d].

Source: the names of `torch.nn.TransformerEncoder` and its `MultiheadAttention`.
Departures: None.
Guarantee: exact. Weights do not tell whether norms stand before the attention (`norm_first`) or after it, so the
tokens that enter a layer are bounded under both, and those of the first layer not at all.
"""

from genscope.checkpoints._layout import BIASES, MLP, NORMS, OUTPUT, RESIDUALS, Heads, Layout, Stack, cut_thirds

_ATTENTION = "layers.{}.self_attn.in_proj_weight"


def _cut(stack: Stack, layer: int) -> Heads:
    return cut_thirds(stack.matrix(_ATTENTION.format(layer)), stack.heads)


def _input_norms(layer: int) -> tuple[str, ...]:
    return (f"layers.{layer}.norm1", f"layers.{layer - 1}.norm2") if layer else ()


LAYOUT = Layout(
    architecture="PyTorch encoder",
    model_types=frozenset(),
    signs=(_ATTENTION,),
    cut=_cut,
    input_norms=_input_norms,
    embeddings={},
    left_out=(BIASES, NORMS, RESIDUALS, OUTPUT, MLP),
)
