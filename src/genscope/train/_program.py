"""Trees split into arrays, which programs take, and the rest, which they are compiled for.

By jax.jit: eqx.filter_jit takes the host a third of a millisecond more with every call.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from genscope.compilation import FASTER, jit


class Static:
    """What a tree has beside its arrays; the hash is computed once."""

    def __init__(self, structure: Any, leaves: tuple[Any, ...]):
        """Of a structure and its leaves, arrays replaced by `Static`."""
        self._parts = structure, leaves
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Static) and self._parts == other._parts)

    def join(self, arrays: list[Any]) -> Any:
        """The tree with these arrays."""
        structure, leaves = self._parts
        given = iter(arrays)
        return jax.tree.unflatten(structure, [next(given) if leaf is Static else leaf for leaf in leaves])


def split(tree: Any) -> tuple[list[Any], Static]:
    """The arrays of a tree, and the rest."""
    leaves, structure = jax.tree.flatten(tree)
    arrays = [leaf for leaf in leaves if eqx.is_array(leaf)]
    return arrays, Static(structure, tuple(Static if eqx.is_array(leaf) else leaf for leaf in leaves))


@functools.cache
def program(function: Callable[..., Any], static: tuple[str, ...], donated: tuple[str, ...], *, brief: bool) -> Any:
    """A compiled function; `brief` compiles in half the time, and runs as fast as comes of it."""
    options = FASTER if brief else {}
    return jit(function, static_argnames=static, donate_argnames=donated, compiler_options=options)
