"""GPT-NeoX and Pythia: one weight of shape [3d, d] in which every head's query, key and value rows follow each other.

Source: the names of Hugging Face's `GPTNeoXModel`, which views the outputs as [heads, 3 k].
Departures: None.
Guarantee: exact.
"""

from genscope.checkpoints._layout import BIASES, MLP, NORMS, OUTPUT, RESIDUALS, ROTARY, Heads, Layout, Stack, cut_rows

_ATTENTION = "layers.{}.attention.query_key_value.weight"


def _cut(stack: Stack, layer: int) -> Heads:
    weight = stack.matrix(_ATTENTION.format(layer))
    if len(weight) % (3 * stack.heads):
        raise ValueError(
            f"got {stack.heads} heads for {len(weight)} outputs: each head has three equal parts. Give the model's "
            "config.json by --config, or its number of heads by --heads."
        )
    together = cut_rows(weight, stack.heads)  # [heads, d, 3 k]
    width = together.shape[2] // 3
    return Heads(*(together[:, :, part * width : (part + 1) * width] for part in range(3)))


def _input_norms(layer: int) -> tuple[str]:
    return (f"layers.{layer}.input_layernorm",)


LAYOUT = Layout(
    architecture="GPT-NeoX",
    model_types=frozenset({"gpt_neox"}),
    signs=(_ATTENTION, "layers.{}.input_layernorm.weight"),
    cut=_cut,
    input_norms=_input_norms,
    embeddings={"token": "embed_in.weight"},
    left_out=(ROTARY, BIASES, NORMS, RESIDUALS, OUTPUT, MLP),
)
