"""The Fourier network in NumPy, written with loops and one weight at a time; it shares no code with genscope."""

import numpy as np


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def fourier_transformer(weights, bits, positions=None, one_token=False):
    """The output for one input; `weights` by the names of the fields, `positions` one row per position."""
    bits = [*map(float, bits), 0.0, *([1.0] if one_token else [])]
    places = np.eye(len(bits)) if positions is None else positions
    tokens = [np.append(place, bit) for place, bit in zip(places, bits, strict=True)]
    states = []
    for i in tokens:
        attention = softmax(np.array([i @ weights["score"] @ weights["key"] @ j for j in tokens]))
        mixture = np.sum([p * (j @ weights["value"]) for p, j in zip(attention, tokens, strict=True)], axis=0)
        state = np.append(i[:-1], 0.0)
        for unit, threshold in enumerate(weights["threshold"]):
            if weights["expand"].ndim == 1:
                state[-1] += weights["contract"][unit] * max(0.0, weights["expand"][unit] * mixture[-1] - threshold)
            else:
                state += weights["contract"][:, unit] * max(0.0, weights["expand"][unit] @ mixture - threshold)
        states.append(state)
    query = states[len(bits) - 1 - one_token]
    output = 0.0 if weights["bias"] is None else float(weights["bias"])
    for select, readout in zip(weights["select"], weights["readout"], strict=True):
        attention = softmax(np.array([query @ select @ state for state in states]))
        output += sum(p * (state @ readout) for p, state in zip(attention, states, strict=True))
    return output
