"""nanoGPT: GPT-2's names, and a weight of shape [3d, d] that holds queries, keys and values as rows.

Source: the names of nanoGPT's `GPT`; torch.compile puts `_orig_mod.` before them.
Guarantee: exact; GPT-2's weight of the same name has the shape [d, 3d] and is told apart by it.
"""

from collections.abc import Sequence
from dataclasses import replace

from genscope.checkpoints import gpt2
from genscope.checkpoints._layout import Kind, thirds


def _accepts(shape: Sequence[int]) -> bool:
    return len(shape) == 2 and shape[0] == 3 * shape[1]


LAYOUT = replace(
    gpt2.LAYOUT,
    architecture="nanoGPT",
    kinds={None: Kind(left_out=("whatever a nanoGPT of your own does otherwise: its file does not tell",))},
    cut=thirds(gpt2.ATTENTION),
    accepts=_accepts,
)
