"""LLaMA, Mistral and Qwen: separate weights, rotary positions, fewer key and value heads than query heads.

Source: the names of Hugging Face's `LlamaModel`; query head h reads key head h * groups // heads.
Departures: None.
Guarantee: exact.
"""

from genscope.checkpoints._layout import (
    BIASES,
    GROUPED,
    MLP,
    NORMS,
    OUTPUT,
    RESIDUALS,
    ROTARY,
    Heads,
    Layout,
    Stack,
    cut_rows,
)

_SELF = "layers.{}.self_attn."
_PARTS = ("q_proj", "k_proj", "v_proj")


def _cut(stack: Stack, layer: int) -> Heads:
    query, key, value = (stack.matrix(f"{_SELF.format(layer)}{part}.weight") for part in _PARTS)
    heads = cut_rows(query, stack.heads)
    width = heads.shape[2]
    stated = stack.count("head_dim") or width
    groups = stack.count("num_key_value_heads") or max(1, len(key) // width)
    if stated != width or groups * width != len(key) or len(value) % groups or stack.heads % groups:
        raise ValueError(
            f"layer {layer} has {len(query)} query, {len(key)} key and {len(value)} value outputs, which {stack.heads} "
            f"query and {groups} key heads of width {stated} do not give: heads are equally wide and groups equally "
            "large. Give the model's own config.json by --config, or its query heads by --heads."
        )
    return Heads(heads, cut_rows(key, groups), cut_rows(value, groups))


def _input_norms(layer: int) -> tuple[str]:
    return (f"layers.{layer}.input_layernorm",)


LAYOUT = Layout(
    architecture="LLaMA",
    model_types=frozenset({"llama", "mistral", "qwen2", "qwen3"}),
    signs=(*(f"{_SELF}{part}.weight" for part in _PARTS), "layers.{}.input_layernorm.weight"),
    cut=_cut,
    input_norms=_input_norms,
    embeddings={"token": "embed_tokens.weight"},
    left_out=(ROTARY, GROUPED, BIASES, NORMS, RESIDUALS, OUTPUT, MLP),
)
