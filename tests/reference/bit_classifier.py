"""The one-layer classifier as a person would write it down: one example, one head, one token at a time."""

import math

import numpy as np


def norm(x, gain, bias):
    return (x - x.mean()) / math.sqrt(x.var() + 1e-5) * gain + bias


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def forward(w, heads, bits):
    """Logit and attention (heads × tokens, CLS last) of one example."""
    tokens = [w["token"][int(b)] + w["position"][t] for t, b in enumerate(bits)] + [w["cls"]]
    normed = [norm(token, w["gain_attention"], w["bias_attention"]) for token in tokens]
    query = normed[-1] @ w["w_query"] + w["b_query"]
    size = len(query) // heads
    attention, outputs = [], []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores = np.array([query[part] @ (x @ w["w_key"])[part] / math.sqrt(size) for x in normed])
        weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        attention.append(weights)
        outputs.append(sum(p * (x @ w["w_value"] + w["b_value"])[part] for p, x in zip(weights, normed, strict=True)))
    residual = w["cls"] + np.concatenate(outputs) @ w["w_output"] + w["b_output"]
    hidden = gelu(norm(residual, w["gain_mlp"], w["bias_mlp"]) @ w["w_up"] + w["b_up"])
    final = norm(residual + hidden @ w["w_down"] + w["b_down"], w["gain_final"], w["bias_final"])
    return final @ w["w_logit"] + w["b_logit"], np.array(attention)
