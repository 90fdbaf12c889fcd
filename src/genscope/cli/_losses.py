"""The losses of commands: by name, or a function of the user's.

Guarantee: exact; a name that is none of ours is refused, with those that are; what the user's loss raises is shown as
its own failure.
"""

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from genscope.cli._user_code import imported, is_reference, users_code
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
        return train.own_loss(_users(imported(text), text), text)
    why = "the error has no slope, so no curvature" if text == "error" else f"losses are {', '.join(names)}"
    raise Refusal(
        f"got --loss {text}: {why}; your own loss is written package.module:function. Choose "
        f"{'cross-entropy or logistic instead' if text == 'error' else 'one of them'}."
    )


def _users(function: Callable[..., Any], reference: str) -> Callable[..., Any]:
    """The user's loss, called deep inside a computation of ours, whose failures are still the user's."""
    if (why := _cannot_take_two(function)) is not None:
        raise Refusal(
            f"got --loss {reference}, which cannot be called with an output and a label ({why}): a loss takes these "
            "two of one example and returns one number. Give it these two arguments."
        )

    @functools.wraps(function)
    def each(output: Any, y: Any) -> Any:
        with users_code(reference):
            return function(output, y)

    return each


def _cannot_take_two(function: Callable[..., Any]) -> str | None:
    """What Python says to two arguments, if it refuses them."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        return str(error)
    except ValueError:  # written in C: it has no signature
        return None
    return None
