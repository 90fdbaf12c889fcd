"""What models compute up to the softmax, in NumPy and from the tensors of their files: tokens after the norm, scores.

Written after the public code of each model (Hugging Face's transformers, timm, nanoGPT), not after the package. Rotary
positions are applied: pairs at the same position are those whose scores a bilinear map gives.
"""

import numpy as np

# Root mean square instead of mean and deviation; 1 + weight instead of weight.
MEANLESS = {"llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "gemma", "gemma2", "granite"}
OFFSET = {"gemma", "gemma2", "nemotron"}
ROTATED = {"gpt_neox": 0.25, "phi": 0.5, "stablelm": 0.25, "nemotron": 0.5}  # share of a head, else all of it
POSITION = 7
EPSILON = 1e-6


def normalise(kind, tensors, name, stream):
    """The layer norm of a model; epsilon included."""
    weight = tensors[f"{name}.weight"].astype(float) + (kind in OFFSET)
    bias = tensors.get(f"{name}.bias", np.zeros(1)).astype(float)
    centred = stream if kind in MEANLESS else stream - stream.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON) * weight + bias


def turn(vectors, share):
    """Rotary positions: the first half of what is turned goes with the second."""
    width = 2 * (int(vectors.shape[1] * share) // 2)
    angles = POSITION / 10_000 ** (np.arange(0, width, 2) / max(width, 1))
    turned, rest = vectors[:, :width], vectors[:, width:]
    first, second = np.split(turned, 2, axis=1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin, rest], axis=1)


def query_and_key(kind, tensors, layer, head, heads, tokens):
    if kind in ("bert", "roberta"):
        base = f"{'roberta.' if kind == 'roberta' else ''}encoder.layer.{layer}.attention.self."
        found = [tokens @ tensors[f"{base}{part}.weight"].T for part in ("query", "key")]
    elif kind == "gpt2":
        found = np.split(tokens @ tensors[f"transformer.h.{layer}.attn.c_attn.weight"], 3, axis=1)[:2]
    elif kind == "nanogpt":
        found = np.split(tokens @ tensors[f"_orig_mod.transformer.h.{layer}.attn.c_attn.weight"].T, 3, axis=1)[:2]
    elif kind == "vit":
        found = np.split(tokens @ tensors[f"blocks.{layer}.attn.qkv.weight"].T, 3, axis=1)[:2]
    elif kind == "torch":
        found = np.split(tokens @ tensors[f"encoder.layers.{layer}.self_attn.in_proj_weight"].T, 3, axis=1)[:2]
    elif kind == "gpt_neox":
        outputs = tokens @ tensors[f"gpt_neox.layers.{layer}.attention.query_key_value.weight"].T
        return np.split(outputs.reshape(len(tokens), heads, -1)[:, head], 3, axis=1)[:2]
    else:
        found = [tokens @ tensors[f"model.layers.{layer}.self_attn.{part}_proj.weight"].T for part in "qk"]
    query = found[0].reshape(len(tokens), heads, -1)
    key = found[1].reshape(len(tokens), -1, query.shape[2])
    return query[:, head], key[:, head * key.shape[1] // heads]


NORMS = {
    "bert": "encoder.layer.{before}.output.LayerNorm",
    "roberta": "roberta.encoder.layer.{before}.output.LayerNorm",
    "gpt2": "transformer.h.{layer}.ln_1",
    "nanogpt": "_orig_mod.transformer.h.{layer}.ln_1",
    "vit": "blocks.{layer}.norm1",
    "torch": "encoder.layers.{layer}.norm1",
    "gpt_neox": "gpt_neox.layers.{layer}.input_layernorm",
}


def tokens_and_scores(kind, tensors, config, layer, head, stream):
    """Tokens as a layer reads them, and the scores of a head for each pair, all at one position; before any cap."""
    name = NORMS.get(kind, "model.layers.{layer}.input_layernorm").format(layer=layer, before=layer - 1)
    tokens = normalise(kind, tensors, name, stream)
    query, key = query_and_key(kind, tensors, layer, head, config["num_attention_heads"], tokens)
    if kind not in NORMS or kind == "gpt_neox":
        query, key = (turn(vectors, ROTATED.get(kind, 1.0)) for vectors in (query, key))
    scores = query @ key.T
    if kind == "gemma2":
        return tokens, scores * config["query_pre_attn_scalar"] ** -0.5
    if kind == "granite":
        return tokens, scores * config["attention_multiplier"]
    return tokens, scores / np.sqrt(query.shape[1])
