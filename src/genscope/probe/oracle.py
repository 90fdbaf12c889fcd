"""Counted access to a function of bits: every question is checked, counted, and asked in batches of bounded size.

Guarantee: exact; no more than `limit` inputs are ever asked, repetitions and the trial of the form included. What the
function returns is checked (numbers, finite, one per input) and that it answers alike twice is tested, not proved.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float64

from genscope.fourier import signs
from genscope.refusal import Refusal

LIMIT = 2**21  # queries, unless the caller says otherwise
BATCH = 2**14  # inputs of one call
_CELLS = 2**22  # bits of one call: 32 MB as integers
_TRIAL = 5  # queries that finding the form of the function may take
_REPEATED = 32  # inputs that are remembered from the first call and from the last, to be asked again
_ZERO = 1e-9  # of the largest value: numbers below count as zero, unless the function's own precision is less

Inputs = Literal["integers", "booleans", "signs"]
Bits = Bool[np.ndarray, "n dim"]
Values = Float64[np.ndarray, " n"]


class Oracle:
    """A function of `dim` bits that counts its queries.

    The function takes a batch [n, dim] and returns n numbers, or takes one input [dim] and returns one. Which of the
    two is found by a trial: it is given a batch of three inputs (two if dim is 3), and if it raises, or returns
    anything but as many numbers, it is given one input. `inputs` says what it gets: the integers 0 and 1 (booleans
    would make `x[0] + x[1]` an OR), booleans, or the signs (-1)^b.
    """

    def __init__(
        self, function: Callable[..., Any], dim: int, *, limit: int = LIMIT, inputs: Inputs = "integers"
    ) -> None:
        if dim < 1 or limit < 1:
            raise Refusal(
                f"Oracle got {dim=} and {limit=}: a function needs at least one bit, and must answer at least one "
                "query. Give 1 or more."
            )
        self.dim = dim
        self.limit = limit
        self.queries = 0
        self.scale = 0.0  # the largest absolute value seen
        self._function = function
        self._inputs: Inputs = inputs
        self._batched: bool | None = None  # not tried yet
        self._precision = 0.0
        self._remembered: list[tuple[Bits, Values]] = []

    @property
    def left(self) -> int:
        """Queries that may still be asked; the trial, if it is still to come, has been taken off."""
        return self.limit - self.queries - (_TRIAL if self._batched is None else 0)

    @property
    def resolution(self) -> float:
        """What counts as zero: rounding of the values seen so far."""
        return max(_ZERO, 64 * self._precision) * self.scale

    def __call__(self, x: Bits) -> Values:
        """Values at inputs, in order."""
        if len(x) > max(self.left, 0):
            raise Refusal(
                f"the oracle got {len(x)} inputs with {self.queries} of {self.limit} queries spent: it never exceeds "
                "its limit. Ask fewer, or increase the limit."
            )
        if self._batched is None and len(x):
            self._batched = self._try(x[0])
        rows = max(1, min(BATCH, _CELLS // self.dim))
        parts = [self._ask(x[start : start + rows]) for start in range(0, len(x), rows)]
        values = np.concatenate(parts) if parts else np.zeros(0)
        if len(x):
            self._remembered[1:] = [(x[:_REPEATED].copy(), values[:_REPEATED])]
        return values

    def ask_again(self) -> None:
        """Ask some inputs a second time, in another order and another batch; refuse a function that differs."""
        if not self._remembered:
            return
        x = np.concatenate([part for part, _ in self._remembered])
        before = np.concatenate([values for _, values in self._remembered])
        order = np.arange(len(x))[::-1][: max(self.left, 0)]
        after = self._ask(x[order]) if len(order) else before[order]
        apart = np.abs(after - before[order])
        if (apart > self.resolution).any():
            worst = int(apart.argmax())
            raise Refusal(
                f"the function is not deterministic: at {_show(x[order][worst])} it returned "
                f"{before[order][worst]:.9g}, and {after[worst]:.9g} when asked again in another batch. It must return "
                "one value for each input: fix its seed, switch off dropout, and make sure that an output does not "
                "depend on the rest of the batch."
            )

    def expects_signs(self, x: Bits) -> bool:
        """Whether the function, which is constant on these bits, varies on their signs."""
        if self._inputs == "signs" or len(x) > self.left:
            return False
        self.queries += len(x)
        given = signs(x, np.int64)
        try:
            values = np.asarray(self._function(given) if self._batched else [self._function(row) for row in given])
        except Exception:
            return False
        return values.shape == (len(x),) and values.dtype.kind in "biuf" and bool((values != values[0]).any())

    def _try(self, first: Bool[np.ndarray, " dim"]) -> bool:
        """Whether the function takes batches."""
        rows = np.stack([first, ~first, first][: 2 if self.dim == 3 else 3])
        self.queries += len(rows)
        shape: tuple[int, ...] | None = None
        try:
            shape = np.shape(self._function(self._given(rows)))
            said = f"it returned an array of shape {shape}"
        except Exception as error:
            said = f"it raised {type(error).__name__}: {error}"
        if shape == (len(rows),):
            return True
        self.queries += 1
        try:
            single = np.shape(self._function(self._given(first[None])[0]))
            also = f"given one input, it returned an array of shape {single}"
        except Exception as error:
            self._refuse_signs(first, error)
            single, also = None, f"given one input, it raised {type(error).__name__}: {error}"
            if not (shape and shape[0] == len(rows)):  # it takes batches, and returns too much
                error.add_note(
                    f"This was for one input of shape ({self.dim},) holding {self._inputs}; given a batch of shape "
                    f"{rows.shape}, {said}."
                )
                raise
        if single == ():
            return False
        raise Refusal(
            f"the function did not return numbers: given a batch of shape {rows.shape}, {said}; {also}. It must return "
            f"one number for an input of shape ({self.dim},), or {len(rows)} for a batch of {len(rows)}. Drop extra "
            "axes; of several outputs choose one, such as the difference of two logits."
        )

    def _refuse_signs(self, first: Bool[np.ndarray, " dim"], error: Exception) -> None:
        """Refuse bits for a function that fails on them and answers on signs."""
        if self._inputs == "signs":
            return
        self.queries += 1
        try:
            answer = self._function(signs(first, np.int64))
        except Exception:
            return
        if np.shape(answer) == ():
            raise Refusal(
                f"the function raised {type(error).__name__}: {error} on bits, but works on signs: it seems to expect "
                "1 and -1 for the bits 0 and 1. Use inputs='signs' (on the command line, --inputs signs)."
            ) from error

    def _given(self, x: Bits) -> np.ndarray:
        if self._inputs == "signs":
            return signs(x, np.int64)
        return x.copy() if self._inputs == "booleans" else x.astype(np.int64)

    def _ask(self, x: Bits) -> Values:
        self.queries += len(x)
        given = self._given(x)
        answer: Any = self._function(given) if self._batched else [self._function(row) for row in given]
        try:
            values = np.asarray(answer)
        except Exception as error:
            raise Refusal(
                f"the function returned {type(answer).__name__}, which NumPy cannot read ({error}): values must be "
                "numbers. Return an array; convert a PyTorch tensor with tensor.detach().cpu().numpy()."
            ) from error
        if values.shape != (len(x),):
            raise Refusal(
                f"the function returned an array of shape {values.shape} for {len(x)} inputs: with one number per "
                f"input it must have shape ({len(x)},), for a batch of any size. Correct its shape."
            )
        if values.dtype.kind not in "biuf":
            raise Refusal(
                f"the function returned {values.flat[0]!r} of type {type(values.flat[0]).__name__}: values must be "
                "real numbers or truth values. Map classes or texts to numbers, and take one part of a complex number."
            )
        if values.dtype.kind == "f":
            self._precision = max(self._precision, float(np.finfo(values.dtype).eps))
        values = values.astype(np.float64)
        if not np.isfinite(values).all():
            place = int(np.argmin(np.isfinite(values)))
            raise Refusal(
                f"the function returned {values[place]} at {_show(x[place])}: values must be finite at every input. "
                "Look for a division by zero or an overflow there."
            )
        self.scale = max(self.scale, float(np.abs(values).max(initial=0.0)))
        return values


def _show(x: Bool[np.ndarray, " dim"]) -> str:
    ones = np.flatnonzero(x).tolist()
    listed = ", ".join(map(str, ones[:8])) + (f" and {len(ones) - 8} more" if len(ones) > 8 else "")
    return f"the input with ones at {listed}" if ones else "the input of zeros"
