"""Meaning of expressions: values, truth tables and supports, against evaluation bit by bit."""

import dataclasses
import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genscope.fourier import parse, points
from tests.reference import expression as reference
from tests.strategies import expression_trees, operator_trees

spaces = st.sampled_from(["", " ", "\n\t "])


def brute_table(function, dim):
    """Values at all inputs, the first bit fastest, from a function of a list of bits."""
    return [function(list(reversed(bits))) for bits in itertools.product([0, 1], repeat=dim)]


@given(expression_trees(), spaces)
@settings(deadline=None)
def test_equals_the_tree_it_was_written_from(tree, space):
    expression = parse(reference.text(tree, space), 5)
    table = brute_table(lambda bits: reference.value(tree, bits), 5)
    assert expression.truth_table(range(5)).tolist() == table
    assert expression(points(5)).tolist() == table
    assert expression(points(5).astype(np.uint8)).tolist() == table
    cube = np.array(table).reshape((2,) * 5)
    support = tuple(j for j in range(5) if (cube.take(0, axis=4 - j) != cube.take(1, axis=4 - j)).any())
    assert expression.support == support
    assert set(support) <= set(expression.variables)
    kept = [i for i in range(32) if all(j in support or not i >> j & 1 for j in range(5))]
    assert expression.reduced[1].tolist() == [table[i] for i in kept]


@given(operator_trees(), spaces)
@settings(deadline=None)
def test_operators_bind_as_in_python(tree, space):
    text = reference.text(tree, space)
    columns = {f"x{j}": sum(1 << i for i in range(32) if i >> j & 1) for j in range(5)}
    number = eval(text.replace("\n", " ").strip(), {"__builtins__": {}}, columns) & (2**32 - 1)
    assert parse(text).truth_table(range(5)).tolist() == [bool(number >> i & 1) for i in range(32)]


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("0", [0] * 8),
        ("1", [1] * 8),
        ("x1", [0, 0, 1, 1, 0, 0, 1, 1]),
        ("~x0 & x1 ^ x2 | 0", [0, 0, 1, 0, 1, 1, 0, 1]),
        ("maj(x0, x1, x2)", [0, 0, 0, 1, 0, 1, 1, 1]),
        ("maj(x0, x1)", [0, 0, 0, 1] * 2),  # half is not more than half
        ("thr(0; x0)", [1] * 8),
        ("thr(2; x0, x1, x2)", [0, 0, 0, 1, 0, 1, 1, 1]),
        ("thr(0x3; x0, x1, x2)", [0] * 7 + [1]),
        ("parity(x0, x1, x2)", [0, 1, 1, 0, 1, 0, 0, 1]),
        ("table(0x96; x0, x1, x2)", [0, 1, 1, 0, 1, 0, 0, 1]),
        ("table(0x2; x1, x0)", [0, 0, 1, 0] * 2),  # 1 only where x1 = 1 and x0 = 0
        ("table(2; x0 & x1)", [0, 0, 0, 1] * 2),
        ("and(x0, x1 | x2)", [0, 0, 0, 1, 0, 1, 0, 1]),
        ("or(x0)", [0, 1] * 4),
        ("~~~x0", [1, 0] * 4),
        ("maj(x0, x0, x1)", [0, 1] * 4),
    ],
)
def test_values_worked_out_by_hand(text, table):
    assert parse(text, 3).truth_table(range(3)).tolist() == table


def test_census_of_all_functions_of_three_bits():
    tables = [[number >> i & 1 for i in range(8)] for number in range(256)]
    expressions = [parse(f"table({number:#x}; x0, x1, x2)") for number in range(256)]
    assert [e.truth_table(range(3)).tolist() for e in expressions] == tables
    for order in itertools.permutations(range(3)):
        for number in (0x96, 0x1B, 0xE8, 0x02):
            expression = parse(f"table({number}; {', '.join(f'x{j}' for j in order)})")
            want = brute_table(lambda b, n=number, o=order: n >> sum(b[j] << place for place, j in enumerate(o)) & 1, 3)
            assert expression.truth_table(range(3)).tolist() == want
    # The number of functions of n bits that depend on all of them is 2, 2, 10, 218 (OEIS A000371).
    sizes = [len(e.support) for e in expressions]
    assert [sizes.count(size) for size in range(4)] == [2, 3 * 2, 3 * 10, 218]
    for expression in expressions:
        support, table = expression.reduced
        number = sum(int(value) << i for i, value in enumerate(table))
        text = f"table({number}; {', '.join(f'x{j}' for j in support)})" if support else str(number)
        assert parse(text).truth_table(range(3)).tolist() == expression.truth_table(range(3)).tolist()


def test_jax_inside_jit_equals_numpy():
    expression = parse("table(0x1b; x0, x3 ^ x1, 1) | thr(2; x0, ~x2, x3, 0) & maj(x1, x2, x3)")
    x = points(4).reshape(4, 4, 4)
    for dtype in (bool, np.uint8, np.int32):
        inputs = jnp.asarray(x.astype(dtype))
        assert (jax.jit(expression)(inputs) == expression(x)).all()
    one_by_one = jax.vmap(jax.vmap(parse("1")))(jnp.asarray(x))
    assert one_by_one.shape == (4, 4)
    assert one_by_one.all()


def test_constants_and_short_contexts():
    assert parse("0").support == ()
    assert parse("x0 ^ x0 ^ 1").reduced[1].tolist() == [True]
    assert parse("x0", 1)(np.array([True]))
    assert parse("1")(np.zeros((2, 0), bool)).tolist() == [True, True]
    assert parse("1").truth_table([]).tolist() == [True]
    assert parse("1").truth_table([7]).tolist() == [True, True]


def test_truth_table_takes_any_order_and_leaves_irrelevant_variables_out():
    expression = parse("x9 & ~x4 | x2 & ~x2")
    assert expression.variables == (2, 4, 9)
    assert expression.support == (4, 9)
    assert expression.truth_table([9, 4]).tolist() == [False, True, False, False]
    assert expression.truth_table([4, 9]).tolist() == [False, False, True, False]
    with pytest.raises(ValueError, match=r"depends on x4, x9: .* List `expression.support`"):
        expression.truth_table([2, 4])
    with pytest.raises(ValueError, match="once"):
        expression.truth_table([4, 9, 9])


def test_the_largest_table_and_the_refusal_beyond():
    names = [f"x{j}" for j in range(25)]
    parity = parse(f"parity({', '.join(names[:20])})")
    assert parity.support == tuple(range(20))
    assert parity.reduced[1].sum() == 2**19
    wide = parse(f"parity({', '.join(names)})")
    assert wide(np.ones(25, bool))
    with pytest.raises(ValueError, match=r"at most 24 variables\. Use fewer"):
        _ = wide.support
    long = parse("^".join(names[:22] * 400))
    with pytest.raises(ValueError, match="17599 steps can be tabulated over at most 18 variables"):
        _ = long.support


def test_inputs_that_are_no_bits_are_refused():
    expression = parse("x0 & x3")
    with pytest.raises(ValueError, match=r"at least 4 of them\. Lengthen the inputs"):
        expression(np.zeros((5, 3), bool))
    with pytest.raises(ValueError, match=r"shape \(\)"):
        parse("1")(np.array(True))
    with pytest.raises(ValueError, match=r"Convert signs with genscope\.fourier\.bits"):
        expression(np.array([1, -1, 1, -1]))
    with pytest.raises(ValueError, match="of type float32"):
        expression(jnp.ones(4))


def test_expressions_are_values():
    assert parse("x0 & x1") == parse("x0 & x1")
    assert len({parse("x0"), parse("x0"), parse("x1")}) == 2
    assert "x0" in repr(parse("x0"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        parse("x0").text = "x1"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="read-only"):
        parse("x0").reduced[1][0] = True


def test_importing_the_grammar_does_not_import_jax():
    code = "import sys, genscope.fourier.expression as e; e.parse('x0').support; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
