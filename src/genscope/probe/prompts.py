r"""Prompts as functions of bits: two prompts, and a bit for every place where they differ.

With prompts $a$ and $b$ of one length that differ in the places $j_1<\dots<j_T$, the input $x\in\{0,1\}^T$ stands for
the prompt that has $b_{j_i}$ where $x_i=1$ and is $a$ elsewhere. A model answers with the difference of two logits.

Guarantee: exact. A probe asks uniformly among these $2^T$ prompts: what it finds holds under that law, and says nothing
of prompts as people write them.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer

from genscope.refusal import Refusal

_HOW = 'Write for example {"zero": [101, 7, 8, 102], "one": [101, 9, 10, 102]}, or pieces of text in place of ids.'


@dataclass(frozen=True)
class Template:
    """Two prompts as lists of token ids, or of pieces of text that are joined.

    >>> Template(zero=(101, 7, 8, 102), one=(101, 9, 10, 102))(np.array([[0, 0], [1, 0]]))
    array([[101,   7,   8, 102],
           [101,   9,   8, 102]])
    >>> Template(zero=("a ", "good", " film"), one=("a ", "bad", " film"))(np.array([[1]]))
    ['a bad film']
    """

    zero: tuple[int, ...] | tuple[str, ...]
    one: tuple[int, ...] | tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no pair of prompts."""
        kinds = {type(each) for each in (*self.zero, *self.one)}
        if kinds not in ({int}, {str}) or len(self.zero) != len(self.one) or self.zero == self.one:
            raise Refusal(
                f"got a template of {len(self.zero)} and {len(self.one)} entries of type "
                f"{' and '.join(sorted(kind.__name__ for kind in kinds)) or 'none'}: it must be two prompts of the "
                f"same length that differ somewhere, both lists of token ids or of pieces of text. {_HOW}"
            )

    @classmethod
    def read(cls, path: Path) -> "Template":
        """Of a JSON file with the lists `zero` and `one`."""
        text = path.read_text()  # that there is none is the system's message
        try:
            found = json.loads(text)
            return cls(tuple(found["zero"]), tuple(found["one"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, Refusal):
                raise
            raise Refusal(
                f"{path} holds no template ({type(error).__name__}: {error}): it must be JSON with two lists. {_HOW}"
            ) from error

    @property
    def places(self) -> list[int]:
        """Where the prompts differ: one place for every bit."""
        return [place for place, pair in enumerate(zip(self.zero, self.one, strict=True)) if pair[0] != pair[1]]

    def __call__(self, x: Integer[np.ndarray, "n bits"]) -> np.ndarray | list[str]:
        """Prompts of a batch: token ids [n, length], or texts."""
        if x.shape[1] != len(self.places):
            raise Refusal(
                f"the two prompts of the template differ in {len(self.places)} places, but there are {x.shape[1]} "
                f"bits: each bit sets one place. Give {len(self.places)} bits."
            )
        chosen = np.tile(np.asarray(self.zero), (len(x), 1)).astype(np.asarray([*self.zero, *self.one]).dtype)
        chosen[:, self.places] = np.where(x == 1, np.asarray(self.one)[self.places], chosen[:, self.places])
        return ["".join(row) for row in chosen.tolist()] if isinstance(self.zero[0], str) else chosen


def logit_difference(outputs: Any, first: int, second: int) -> Any:
    """The first logit minus the second, of a model with a logit per class; of one with tokens, at the last token.

    >>> logit_difference(np.array([[3.0, 1.0, 0.5]]), 0, 2)
    array([2.5])
    """
    shape = np.shape(outputs)
    if len(shape) not in (2, 3) or not all(-shape[-1] <= each < shape[-1] for each in (first, second)):
        raise Refusal(
            f"got outputs of shape {shape} for the difference of logits {first} and {second}: there must be one "
            "logit per class, or one per vocabulary token at each position. Correct the two indices, or pick one "
            "output in a function of your own."
        )
    last = outputs if len(shape) == 2 else outputs[:, -1]
    return last[:, first] - last[:, second]
