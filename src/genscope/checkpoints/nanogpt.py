"""nanoGPT: GPT-2's names, and a weight of shape [3d, d] that holds queries, keys and values as rows.

Source: the names of nanoGPT's `GPT`; torch.compile puts `_orig_mod.` before them.
Departures: None.
Guarantee: exact; GPT-2's weight of the same name has the shape [d, 3d] and is told apart by it.
"""

from collections.abc import Sequence

from genscope.checkpoints import gpt2
from genscope.checkpoints._layout import BIASES, MLP, NORMS, OUTPUT, RESIDUALS, Heads, Layout, Stack, cut_thirds


def _cut(stack: Stack, layer: int) -> Heads:
    return cut_thirds(stack.matrix(gpt2.ATTENTION.format(layer)), stack.heads)


def _accepts(shape: Sequence[int]) -> bool:
    return len(shape) == 2 and shape[0] == 3 * shape[1]


LAYOUT = Layout(
    architecture="nanoGPT",
    model_types=frozenset(),
    signs=(gpt2.ATTENTION,),
    cut=_cut,
    input_norms=gpt2.input_norms,
    embeddings=gpt2.EMBEDDINGS,
    left_out=(BIASES, NORMS, RESIDUALS, OUTPUT, MLP),
    accepts=_accepts,
)
