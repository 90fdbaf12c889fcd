r"""What the covering bound of an attention head asks for, measured on a construction.

Source: edelman2022, Corollary 4.5: norms of $W_V$ and of $W_{QK}^\top$, where a token x scores $z^\top W_{QK}x$.
Departures: the output matrix counts with the Lipschitz constant, as `bounds.head` has it.
Guarantee: exact up to rounding; the longest token is that of all tokens which exist.
"""

import math
import shlex

import numpy as np

from genscope.constructions._base import Construction, only_head
from genscope.models.edelman2022 import Transformer
from genscope.models.encoding import Coordinates, Positional

MARGIN = 0.5  # outputs are 0 and 1, and the label is read at 1/2
NEARLY = 0.999  # covers of the margin bound are strict: the accuracy stays below half the margin


def head_norms(model: Transformer) -> dict[str, float]:
    """Arguments of `bounds.head` but for accuracy and points: norms, Lipschitz constant, dimensions."""
    head = only_head(model)
    w_q, w_k, w_v = (np.asarray(weight, float) for weight in (head.w_q, head.w_k, head.w_v))
    rows = np.linalg.norm(
        w_q @ np.asarray(np.linalg.qr(w_k, mode="r")).T, axis=1
    )  # of W_QK, which is d x d and never formed
    output = 1.0 if head.w_c is None else float(np.linalg.norm(np.asarray(head.w_c, float), 2))
    token, context = _longest(model)
    return {
        "value_21": float(np.linalg.norm(w_v, axis=0).sum()),
        "value_spectral": float(np.linalg.norm(w_v, 2)),
        "query_key_21": float(rows.sum()),
        "input_norm": token,
        "context_norm": context,
        "lipschitz": output,
        "width": w_v.shape[1],
        "dimension": w_v.shape[0],
    }


def readout_lipschitz(model: Transformer) -> float:
    """How much longer a change of the head's output may become in the output of the network."""
    layers = [np.asarray(layer.weight, float) for layer in model.readout.hidden]
    last = float(np.linalg.norm(np.asarray(model.readout.w, float)))
    return float(np.prod([np.linalg.norm(layer, 2) for layer in layers])) * last


def cover_arguments(built: Construction, context_length: int) -> dict[str, float]:
    """All arguments of `bounds.head` for the error of the construction's class.

    The accuracy is half the margin, through the read-out; points are the 2T + 1 tokens that exist.
    """
    steepness = readout_lipschitz(built.model) or 1.0  # a constant reads nothing of the head: any accuracy will do
    epsilon = NEARLY * MARGIN / 2 / steepness
    return {**head_norms(built.model), "epsilon": epsilon, "points": 2 * context_length + 1}


def command(arguments: dict[str, float]) -> str:
    """The line that computes the covering number."""
    options = [part for name, value in arguments.items() for part in (f"--{name.replace('_', '-')}", f"{value:.12g}")]
    return shlex.join(["genscope", "bound", "head", *options])


def _longest(model: Transformer) -> tuple[float, float]:
    """The longest token, CLS among them, and CLS, which is the context."""
    vectors, additive = model.encoding.vectors, isinstance(model.encoding, Positional)
    if isinstance(vectors, Coordinates):
        return (math.sqrt(2) if additive else 1.0), 1.0
    rows = np.asarray(vectors, float)
    context, (special, places) = float(np.linalg.norm(rows[0])), np.split(rows[1:], [model.encoding.specials - 1])
    tokens = [places + bit for bit in special] if additive else [places]
    return max(context, *(float(np.linalg.norm(token, axis=1).max()) for token in tokens)), context
