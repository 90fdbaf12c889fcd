"""Networks over bits as a person would write them down: one example, one unit, one token at a time."""

import math

import numpy as np

from tests.reference.bit_classifier import gelu, norm


def perceptron(weights, biases, w_read, b_read, bits):
    state = [1.0 - 2.0 * b for b in bits]
    for weight, bias in zip(weights, biases, strict=True):
        state = [
            max(0.0, sum(w * x for w, x in zip(row, state, strict=True)) + b)
            for row, b in zip(weight, bias, strict=True)
        ]
    return sum(w * x for w, x in zip(w_read, state, strict=True)) + b_read


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent(kind, arrays, b_read, bits):
    position, w_in, b_in, w_state, b_state, w_read = arrays
    units = len(w_read)
    h, c = np.zeros(units), np.zeros(units)
    for t, b in enumerate(bits):
        token = np.concatenate([[1.0 - 2.0 * b], position[t]])
        a, u = w_in @ token + b_in, w_state @ h + b_state
        part = [slice(g * units, (g + 1) * units) for g in range(len(a) // units)]
        if kind == "rnn":
            h = np.maximum(a + u, 0)
        elif kind == "gru":
            reset, update = (_sigmoid(a[p] + u[p]) for p in part[:2])
            new = np.tanh(a[part[2]] + reset * u[part[2]])
            h = (1 - update) * new + update * h
        else:
            admit, forget, show = (_sigmoid((a + u)[part[g]]) for g in (0, 1, 3))
            c = forget * c + admit * np.tanh((a + u)[part[2]])
            h = show * np.tanh(c)
    return h @ w_read + b_read


def encoder(model, bits):
    h = [np.asarray(model.token)[int(b)] + np.asarray(model.position)[t] for t, b in enumerate(bits)]
    h = np.array([*h, np.asarray(model.cls)])
    for layer in model.layers:
        w = {name: np.asarray(value) for name, value in vars(layer).items() if name != "heads"}
        normed = [norm(row, w["gain_attention"], w["bias_attention"]) for row in h]
        size = h.shape[1] // layer.heads
        mixed = np.zeros_like(h)
        for n, me in enumerate(normed):
            for head in range(layer.heads):
                part = slice(head * size, (head + 1) * size)
                scores = np.array(
                    [(me @ w["w_query"])[part] @ (x @ w["w_key"])[part] / math.sqrt(size) for x in normed]
                )
                share = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
                mixed[n, part] = sum(p * (x @ w["w_value"])[part] for p, x in zip(share, normed, strict=True))
        h = h + mixed @ w["w_output"]
        hidden = [gelu(norm(row, w["gain_mlp"], w["bias_mlp"]) @ w["w_up"] + w["b_up"]) for row in h]
        h = h + np.array(hidden) @ w["w_down"] + w["b_down"]
    return norm(h[-1], np.asarray(model.gain_final), np.asarray(model.bias_final)) @ np.asarray(model.w_logit) + float(
        model.b_logit
    )
