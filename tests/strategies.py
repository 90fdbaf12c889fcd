"""Hypothesis strategies shared by the tests."""

from hypothesis import strategies as st


def expression_trees(variables: int = 5, leaves: int = 12) -> st.SearchStrategy[tuple]:
    """Nested tuples for tests.reference.expression, over x0 ... x{variables-1}."""
    leaf = st.one_of(
        st.tuples(st.just("x"), st.integers(0, variables - 1)), st.tuples(st.just("constant"), st.integers(0, 1))
    )
    return st.recursive(leaf, _combine, max_leaves=leaves)


def operator_trees(variables: int = 5, leaves: int = 12) -> st.SearchStrategy[tuple]:
    """Trees of operators only: texts that Python reads in the same way."""
    leaf = st.tuples(st.just("x"), st.integers(0, variables - 1))
    return st.recursive(leaf, _operators, max_leaves=leaves)


def _operators(child: st.SearchStrategy[tuple]) -> st.SearchStrategy[tuple]:
    return st.one_of(st.tuples(st.just("~"), child), st.tuples(st.sampled_from("&^|"), child, child))


def _combine(child: st.SearchStrategy[tuple]) -> st.SearchStrategy[tuple]:
    arguments = st.lists(child, min_size=1, max_size=4)
    return st.one_of(
        _operators(child),
        st.tuples(st.sampled_from(["maj", "parity", "and", "or"]), st.none(), arguments),
        arguments.flatmap(lambda args: st.tuples(st.just("thr"), st.integers(0, len(args)), st.just(args))),
        arguments.flatmap(
            lambda args: st.tuples(st.just("table"), st.integers(0, 2**2 ** len(args) - 1), st.just(args))
        ),
    )
