"""Slow, obvious twins of genscope.models.edelman2022 and genscope.models.encoding: one loop per sum."""

import math

import numpy as np


def relu(x):
    return np.array([value if value > 0 else 0.0 for value in x])


def project(x):
    length = math.sqrt(sum(value**2 for value in x))
    return np.array([value / length if length > 1 else value for value in x])


def score(x, z, w_q, w_k):
    """z^T W_Q W_K^T x, entry by entry."""
    d, k = w_q.shape
    return sum(z[i] * w_q[i, a] * w_k[j, a] * x[j] for i in range(d) for j in range(d) for a in range(k))


def softmax(scores):
    powers = [math.exp(value) for value in scores]
    return np.array([power / sum(powers) for power in powers])


def head(tokens, z, w_q, w_k, w_v, w_c=None, sigma=relu, inner=lambda u: u):
    """(attention, output) of Definition 3.1; `inner` comes before sigma."""
    p = softmax([score(x, z, w_q, w_k) for x in tokens])
    mixture = np.zeros(w_v.shape[1])
    for weight, x in zip(p, tokens, strict=True):
        for column in range(w_v.shape[1]):
            mixture[column] += weight * sum(w_v[i, column] * x[i] for i in range(len(x)))
    active = sigma(inner(mixture))
    if w_c is None:
        return p, active
    return p, np.array([sum(w_c[i, j] * active[i] for i in range(len(active))) for j in range(w_c.shape[1])])


def layer(tokens, weights, sigma=relu, inner=lambda u: u):
    """Sum over the heads, each position being the context in turn."""
    rows = []
    for context in tokens:
        rows.append(sum(head(tokens, context, *w, sigma=sigma, inner=inner)[1] for w in weights))
    return np.array(rows)


def readout(y, w, hidden=()):
    """w^T relu(... relu(W_1^T y + b_1)); hidden is a sequence of (weight, bias or None)."""
    for weight, bias in hidden:
        before = [sum(weight[i, j] * y[i] for i in range(len(y))) for j in range(weight.shape[1])]
        y = relu([value + (0.0 if bias is None else bias[j]) for j, value in enumerate(before)])
    return sum(w[i] * y[i] for i in range(len(w)))


def positional(bits, cls, letters, positions):
    """(tokens, CLS token) of the additive encoding."""
    return np.array([letters[int(bit)] + positions[t] for t, bit in enumerate(bits)]), cls


def bag(bits, cls, vectors):
    """(tokens, CLS token) of the bag of vectors."""
    return np.array([int(bit) * vectors[t] for t, bit in enumerate(bits)]), cls


def transformer(tokens, cls, weights, w, hidden=(), cls_is_key=True, sigma=relu):
    """tf-scalar and tf+mlp."""
    keys = np.concatenate([tokens, cls[None]]) if cls_is_key else tokens
    y = sum(head(keys, cls, *one, sigma=sigma)[1] for one in weights)
    return readout(y, w, hidden)


def deep(tokens, layers, w, sigma=relu):
    """The network of Theorem 4.7; the last token is CLS."""
    for weights in layers:
        tokens = np.array([project(row) for row in layer(tokens, weights, sigma, inner=project)])
    return readout(tokens[-1], w)


def coherence(vectors):
    n = len(vectors)
    pairs = [abs(sum(vectors[i] * vectors[j])) for i in range(n) for j in range(n) if i != j]
    return max(pairs, default=0.0)
