"""LLaMA, Mistral, Qwen, Gemma and others: separate weights, rotary positions, fewer key and value than query heads.

Source: the names of Hugging Face's `LlamaModel`; query head h reads key head h * groups // heads. What differs: the
norms of Gemma and Nemotron multiply by 1 + weight; Gemma 2 and 3 divide scores by the root of `query_pre_attn_scalar`,
Granite multiplies them by `attention_multiplier`.
Guarantee: exact.
"""

import math

from genscope.checkpoints._layout import (
    AFTER,
    CAPPED,
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

_SELF = "layers.{}.self_attn."
_PARTS = ("q_proj", "k_proj", "v_proj")


def _cut(stack: Stack, layer: int) -> HeadWeights:
    query, key, value = (stack.matrix(f"{_SELF.format(layer)}{part}.weight") for part in _PARTS)
    heads = cut_rows(query, stack.heads)
    width = heads.shape[2]
    stated = stack.count("head_dim") or width
    groups = stack.count("num_key_value_heads") or max(1, len(key) // width)
    if stated != width or groups * width != len(key) or len(value) % groups or stack.heads % groups:
        raise Refusal(
            f"layer {layer} has {len(query)} query, {len(key)} key and {len(value)} value outputs, which "
            f"{stack.heads} query and {groups} key heads of width {stated}do not add up to: all heads must have the "
            "same width and all groups the same size. Pass the model's own config.json with --config, or its "
            "number of query heads with --heads."
        )
    return HeadWeights(heads, cut_rows(key, groups), cut_rows(value, groups))


def _gemma_scale(stack: Stack, layer: int, width: int) -> float:
    return 1 / math.sqrt(stack.number("query_pre_attn_scalar", 256))


def _granite_scale(stack: Stack, layer: int, width: int) -> float:
    return stack.number("attention_multiplier", 1.0)


_GEMMA_2 = Kind(
    gain=1.0,
    score_scale=_gemma_scale,
    heads=8,
    names=r"(pre|post)_feedforward_layernorm\.weight",
    left_out=(CAPPED, AFTER),
)
LAYOUT = Layout(
    architecture="LLaMA",
    kinds={
        **dict.fromkeys(("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "stablelm"), Kind(heads=32)),
        "qwen2_moe": Kind(heads=16),
        "gemma": Kind(gain=1.0, heads=16),
        "gemma2": _GEMMA_2,
        "gemma3_text": _GEMMA_2,
        "phi": Kind(heads=32, names=r"self_attn\.dense\.(weight|bias)"),
        "starcoder2": Kind(heads=24),
        "cohere": Kind(heads=64),
        "granite": Kind(score_scale=_granite_scale, heads=32),
        "nemotron": Kind(gain=1.0, heads=48),
    },
    signs=(*(f"{_SELF}{part}.weight" for part in _PARTS), "layers.{}.input_layernorm.weight"),
    names=r"self_attn\.[qkvo]_proj\.(weight|bias)|self_attn\.rotary_emb\.inv_freq"
    r"|(input|post_attention)_layernorm\.(weight|bias)|(mlp|block_sparse_moe)\..+",
    cut=_cut,
    input_norms=norm_before("layers.{}.input_layernorm"),
    embeddings={"token": "embed_tokens.weight"},
    left_out=(ROTARY, *LEFT_OUT),
    doubts=rotary_doubts,
)
