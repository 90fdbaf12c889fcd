"""nanoGPT: GPT-2's names, and a weight of shape [3d, d] that holds queries, keys and values as rows.

Source: the names of nanoGPT's `GPT`; torch.compile puts `_orig_mod.` before them.
Guarantee: exact; GPT-2's weight of the same name has the shape [d, 3d] and is told apart by it.
"""

from collections.abc import Sequence

from genscope.checkpoints import gpt2
from genscope.checkpoints._layout import LEFT_OUT, HeadWeights, Kind, Layout, Stack, cut_thirds


def _cut(stack: Stack, layer: int) -> HeadWeights:
    return cut_thirds(stack.matrix(gpt2.ATTENTION.format(layer)), stack.heads)


def _accepts(shape: Sequence[int]) -> bool:
    return len(shape) == 2 and shape[0] == 3 * shape[1]


LAYOUT = Layout(
    architecture="nanoGPT",
    kinds={None: Kind(left_out=("whatever a nanoGPT of your own does otherwise: its file does not tell",))},
    signs=(gpt2.ATTENTION,),
    names=gpt2.NAMES,
    cut=_cut,
    input_norms=gpt2.input_norms,
    embeddings=gpt2.EMBEDDINGS,
    left_out=LEFT_OUT,
    accepts=_accepts,
)
