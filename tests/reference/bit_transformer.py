"""The two-layer bit Transformer as a person would write it down: one example, one position at a time."""

import math

import numpy as np


def forward(w, position_ids, bits, read):
    """Output and the two attentions (queries in rows) of one example; tokens after `read` do not exist."""
    ids = np.eye(max(position_ids) + 1)
    bits = [*bits, 0]
    stream = [np.concatenate([ids[position_ids[i]], w["bit"][int(bits[i])]]) for i in range(read + 1)]
    attentions = []
    for layer in ("first", "second"):
        m = {name.removeprefix(f"{layer}."): value for name, value in w.items() if name.startswith(layer)}
        rows, after = [], []
        for h in stream:
            scores = [
                math.log(len(position_ids)) / math.sqrt(len(h)) * (h @ m["w_query"]) @ (g @ m["w_key"]) for g in stream
            ]
            row = np.exp(np.array(scores) - max(scores))
            row = row / row.sum()
            rows.append(row)
            h = h + sum(p * (g @ m["w_value"]) for p, g in zip(row, stream, strict=True)) @ m["w_output"]
            after.append(h + np.maximum(h @ m["w_up"] + m["b_up"], 0) @ m["w_down"] + m["b_down"])
        stream = after
        attentions.append(np.array(rows))
    return stream[read] @ w["w_read"] + w["b_read"], attentions
