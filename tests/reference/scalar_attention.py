"""The network of scalar attention, position by position, in Python floats."""

import math

import numpy as np


def forward(model, x) -> tuple[np.ndarray, float]:
    """Attention and output for one example."""
    score, value = np.asarray(model.score, float), np.asarray(model.value, float)
    if model.key is not None:
        score = score @ np.asarray(model.key, float)
    length = len(x)
    attention, output = np.zeros((length, length)), float(model.b_read)
    for i in range(length):
        logits = []
        for j in range(length):
            logit = score[i, j]
            if not model.positional:
                logit += x[i] * score[-1, j] + x[j] * score[i, -1] + x[i] * x[j] * score[-1, -1]
            logits.append(logit)
        weights = [math.exp(logit - max(logits)) for logit in logits]
        attention[i] = np.array(weights) / sum(weights)
        a = sum(attention[i, j] * (value[j] + x[j] * value[-1]) for j in range(length))
        units = zip(np.asarray(model.w_up), np.asarray(model.b_up), np.asarray(model.w_down), strict=True)
        curve = float(model.b_down) + sum(
            float(down) * max(0.0, a * float(up) + float(kink)) for up, kink, down in units
        )
        output += float(model.w_read[i]) * curve
    return attention, output
