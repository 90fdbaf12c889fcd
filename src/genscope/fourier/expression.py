"""Boolean expressions: `parse` gives a function of bits with its support and its truth table.

Guarantee: exact. Truth tables and supports are computed from all inputs, for at most 24 variables (fewer for very
long texts, refused beyond); values at given inputs have no such limit.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool

from genscope.fourier import cube
from genscope.fourier._grammar import ExpressionError as ExpressionError
from genscope.fourier._grammar import Step, compile_text
from genscope.refusal import Refusal

LARGEST_WORK = 2**33  # steps times inputs of one truth table: some seconds
_BLOCK = 2**16  # inputs evaluated at once: bounds memory, and stays in the cache


@dataclass(frozen=True)
class Expression:
    """A Boolean function of named bits; made by `parse`."""

    text: str
    _program: tuple[Step, ...] = field(repr=False)

    @functools.cached_property
    def variables(self) -> tuple[int, ...]:
        """Indices of the variables that the text mentions, in increasing order."""
        return tuple(sorted({step.value for step in self._program if step.operation == "variable"}))

    @functools.cached_property
    def reduced(self) -> tuple[tuple[int, ...], Bool[np.ndarray, " entries"]]:
        """The support, and the truth table on it: the whole function without its irrelevant variables."""
        return reduce_table(self.variables, self._tabulate(self.variables))

    @property
    def support(self) -> tuple[int, ...]:
        """Indices of the variables that the function really depends on, in increasing order."""
        return self.reduced[0]

    def truth_table(self, variables: Sequence[int]) -> Bool[np.ndarray, " entries"]:
        """Values at all inputs of the listed variables, the first listed varying fastest.

        Every variable of the support must be listed; others may be.

        >>> parse("x5 & ~x2").truth_table([5, 2]).astype(int).tolist()
        [0, 1, 0, 0]
        """
        unlisted = set(self.variables) - set(variables)
        missing = sorted(unlisted & set(self.support)) if unlisted else []
        if missing or len(set(variables)) < len(variables):
            raise Refusal(
                f"truth_table got variables={list(variables)} for an expression that depends on "
                f"{', '.join(f'x{j}' for j in self.support) or 'nothing'}: each of these must be listed exactly once. "
                "List `expression.support`, in any order."
            )
        return self._tabulate(tuple(variables))

    def __call__(self, x: Any) -> Any:
        """Value at inputs of shape [..., T], entry j being variable xj; NumPy and JAX arrays, inside jit too.

        The bits are booleans, or integers 0 and 1; values of integers are checked in NumPy arrays only.
        """
        needed = self.variables[-1] + 1 if self.variables else 0
        if np.ndim(x) == 0 or x.shape[-1] < needed:
            raise Refusal(
                f"the expression got an array of shape {np.shape(x)}: its last axis must hold the bits x0, x1, ..., "
                f"here at least {needed} of them. Lengthen the inputs."
            )
        cube.check_bits(x, "the expression")
        return _run(self._program, lambda j: x[..., j].astype(bool), x.shape[:-1], x.__array_namespace__())

    def _tabulate(self, variables: tuple[int, ...]) -> Bool[np.ndarray, " entries"]:
        dim = len(variables)
        largest = min(cube.LARGEST, (LARGEST_WORK // len(self._program)).bit_length() - 1)
        if dim > largest:
            raise Refusal(
                f"the truth table of {dim} variables has 2^{dim} entries: an expression of {len(self._program)} steps "
                f"can be tabulated over at most {largest} variables. Use fewer variables, or evaluate the expression "
                "at the inputs you need."
            )
        place = {variable: j for j, variable in enumerate(variables)}
        blocks = []
        for start in range(0, 2**dim, _BLOCK):
            inputs = np.arange(start, min(start + _BLOCK, 2**dim), dtype=np.int32)
            zero = np.zeros(inputs.shape, bool)
            columns = {v: (inputs >> j) & 1 == 1 for v, j in place.items()}
            blocks.append(_run(self._program, lambda v, c=columns, z=zero: c.get(v, z), inputs.shape, np))
        table = np.concatenate(blocks)
        table.flags.writeable = False
        return table


def parse(text: str, context_length: int | None = None) -> Expression:
    """The expression written in `text`; with `context_length` T, variables go up to x{T-1}.

    A text outside the grammar raises `ExpressionError`, a ValueError whose message shows the place.

    >>> expression = parse("maj(x0, x1, x2) ^ x3 & ~x3")
    >>> expression.variables, expression.support
    ((0, 1, 2, 3), (0, 1, 2))
    """
    if not isinstance(text, str):
        raise Refusal(
            f"parse got {text!r} of type {type(text).__name__}: an expression must be a string such as 'x0 & ~x1'. "
            "Quote it."
        )
    if context_length is not None and context_length < 1:
        raise Refusal(
            f"parse got {context_length=}: the context must hold at least the bit x0. Give 1 or more, or None for no "
            "limit."
        )
    return Expression(text, compile_text(text, context_length))


def reduce_table(
    variables: Sequence[int], table: Bool[np.ndarray, " entries"]
) -> tuple[tuple[int, ...], Bool[np.ndarray, " fewer"]]:
    """Drop the variables that a truth table does not depend on; the others keep their order."""
    kept: list[int] = []
    for j in reversed(range(len(variables))):  # from the slowest bit, so that the strides of the others stay
        low, high = np.moveaxis(table.reshape(-1, 2, 2**j), 1, 0)
        if (low != high).any():
            kept.append(variables[j])
        else:
            table = low.reshape(-1)
    table = table.copy()
    table.flags.writeable = False
    return tuple(reversed(kept)), table


def _run(program: Sequence[Step], column: Callable[[int], Any], shape: tuple[int, ...], xp: Any) -> Any:
    """Run a program on whole arrays of bits; `xp` is the array library."""
    stack: list[Any] = []
    for operation, value, arity in program:
        if operation == "variable":
            stack.append(column(value))
        elif operation == "constant":
            stack.append(xp.full(shape, value == 1, dtype=bool))
        elif operation == "counter":
            stack.append(xp.zeros(shape, dtype=np.int32))
        elif operation == "not":
            stack.append(~stack.pop())
        elif operation == "at least":
            stack.append(stack.pop() >= value)
        elif operation == "lookup":
            stack.append(xp.take(xp.asarray(cube.table_of_number(value, arity)), stack.pop()))
        else:
            last = stack.pop()
            if operation == "and":
                stack.append(stack.pop() & last)
            elif operation == "or":
                stack.append(stack.pop() | last)
            elif operation == "xor":
                stack.append(stack.pop() ^ last)
            else:
                stack.append(stack.pop() + value * last.astype(np.int32))
    return stack.pop()
