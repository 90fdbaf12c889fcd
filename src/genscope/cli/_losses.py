"""The losses of commands: by name, or a function of the user's.

Guarantee: exact; a name that is none of ours is refused, with those that are.
"""

from typing import TYPE_CHECKING

from genscope.cli._user_code import imported, is_reference
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from genscope.train import Loss

HELP = (
    "squared; logistic (one logit, labels 0 and 1); cross-entropy (a logit per class, labels 0, 1, ...); {}or "
    "package.module:function of output and label of one example."
)


def find_loss(text: str, *, slope: bool) -> "Loss":
    """The loss of that name, or the user's; `slope` asks for one that can be differentiated."""
    from genscope import train
    from genscope.train.loss import ALL

    names = [name for name in ALL if name != "error" or not slope]
    if text in names:
        return ALL[text]
    if is_reference(text):
        return train.own_loss(imported(text), text)
    why = "the error has no slope, so no curvature" if text == "error" else f"losses are {', '.join(names)}"
    raise Refusal(
        f"got --loss {text}: {why}; your own loss is written package.module:function. Choose "
        f"{'cross-entropy or logistic instead' if text == 'error' else 'one of them'}."
    )
