"""Slow, obvious twins of the networks of token regression: one loop per sum, nothing shared with genscope."""

import math

import numpy as np


def softmax(scores):
    powers = np.exp(scores - np.max(scores))
    return powers / powers.sum()


def relu(x):
    return np.where(x > 0, x, 0.0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def two_layer(f, weight, bias, outer, offset=0.0):
    return sum(outer[k] * max(0.0, weight[k] @ f + bias[k]) for k in range(len(outer))) + offset


def full_transformer(z, w_qk, readout):
    """Attention with <z_i, W z_j>, unscaled; the head network reads the heads one after the other."""
    outputs = []
    for query in z:
        heads = []
        for w in w_qk:
            weights = softmax(np.array([query @ w @ key for key in z]))
            heads.append(sum(a * key for a, key in zip(weights, z, strict=True)))
        outputs.append(two_layer(np.concatenate(heads), *readout))
    return np.array(outputs)


def scaled_transformer(z, w_in, b_in, w_out, b_out, readout):
    """Each head projects the whole token to query, key and value, and its mixture once more."""
    outputs = []
    for query_token in z:
        heads = []
        for (w_q, w_k, w_v), (b_q, b_k, b_v), w_o, b_o in zip(w_in, b_in, w_out, b_out, strict=True):
            query = w_q @ query_token + b_q
            scores = np.array([query @ (w_k @ token + b_k) / math.sqrt(z.shape[1]) for token in z])
            mixture = sum(a * (w_v @ token + b_v) for a, token in zip(softmax(scores), z, strict=True))
            heads.append(w_o @ mixture + b_o)
        outputs.append(two_layer(np.concatenate(heads), *readout))
    return np.array(outputs)


def projected_transformer(z, w_in, readout):
    """Each head projects the whole token to query, key and value; no root, no bias, no output projection."""
    outputs = []
    for query_token in z:
        heads = []
        for w_q, w_k, w_v in w_in:
            weights = softmax(np.array([(w_q @ query_token) @ (w_k @ token) for token in z]))
            heads.append(sum(a * (w_v @ token) for a, token in zip(weights, z, strict=True)))
        outputs.append(two_layer(np.concatenate(heads), *readout))
    return np.array(outputs)


def rnn(z, w_in, b_in, w_state, b_state):
    h, states = np.zeros(w_state.shape[1]), []
    for token in z:
        h = relu(w_in @ token + b_in + w_state @ h + b_state)
        states.append(h)
    return np.array(states)


def gru(z, w_in, b_in, w_state, b_state):
    s = w_state.shape[1]
    h, states = np.zeros(s), []
    for token in z:
        a, u = w_in @ token + b_in, w_state @ h + b_state
        r = sigmoid(a[:s] + u[:s])
        zeta = sigmoid(a[s : 2 * s] + u[s : 2 * s])
        n = np.tanh(a[2 * s :] + r * u[2 * s :])
        h = (1 - zeta) * n + zeta * h
        states.append(h)
    return np.array(states)


def lstm(z, w_in, b_in, w_state, b_state):
    s = w_state.shape[1]
    h, c, states = np.zeros(s), np.zeros(s), []
    for token in z:
        gates = w_in @ token + b_in + w_state @ h + b_state
        i, f, g, o = (gates[k * s : (k + 1) * s] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.array(states)


RECURRENT = {"rnn": rnn, "gru": gru, "lstm": lstm}


def both_directions(kind, z, forward, backward):
    """States after each token from the left, and from the right."""
    return RECURRENT[kind](z, *forward), RECURRENT[kind](z[::-1], *backward)[::-1]


def relu_net(layers, x):
    for weight, bias in layers[:-1]:
        x = relu(weight @ x + (0 if bias is None else bias))
    return layers[-1][0] @ x


def theory_rnn(z, forward, backward, output, radius):
    """h_1 = 0, h_{i+1} = proj(h_i + f(h_i, z_i)); the prediction at i sees the states before and after i."""

    def states(net, tokens):
        h, before = np.zeros(net[-1][0].shape[0]), []
        for token in tokens:
            before.append(h)
            h = h + relu_net(net, np.concatenate([h, token]))
            h = h * min(1.0, radius / max(np.linalg.norm(h), 1e-300))
        return before

    left, right = states(forward, z), states(backward, z[::-1])[::-1]
    triples = zip(left, right, z, strict=True)
    return np.array([relu_net(output, np.concatenate(parts))[0] for parts in triples])


def adamw(parameters, gradients, *, rate, decay, first=0.9, second=0.999, epsilon=1e-8):
    """Parameters after one step per gradient, decay on every parameter."""
    x = np.array(parameters, float)
    m, v = np.zeros_like(x), np.zeros_like(x)
    for step, gradient in enumerate(gradients, start=1):
        g = gradient(x) if callable(gradient) else gradient
        m = first * m + (1 - first) * g
        v = second * v + (1 - second) * g * g
        direction = (m / (1 - first**step)) / (np.sqrt(v / (1 - second**step)) + epsilon)
        x = x - rate * (direction + decay * x)
    return x
