import numpy as np
import pytest

from genscope.fourier import signs
from genscope.probe import Oracle
from genscope.probe.oracle import BATCH

X = np.random.default_rng(0).integers(0, 2, (50, 6)).astype(bool)


def ask(function, x=X, **options):
    return Oracle(function, x.shape[1], **options)(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, 0] + x[:, 1],
        lambda x: x[..., 0] + x[..., 1],
        lambda x: x[0] + x[1],
        lambda x: int(x[0]) + int(x[1]),
        lambda x: float(x[:2].sum()),
        lambda x: sum(x[:2]),
        lambda x: x @ np.array([1, 1, 0, 0, 0, 0]),
    ],
)
def test_a_function_takes_a_batch_or_one_input(function):
    np.testing.assert_array_equal(ask(function), X[:, 0].astype(float) + X[:, 1])


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
@pytest.mark.parametrize("function", [lambda x: x[0], lambda x: x[..., 0], lambda x: x.sum(axis=-1) > 0])
def test_the_form_is_told_apart_in_every_dimension(dim, function):
    x = np.random.default_rng(1).integers(0, 2, (20, dim)).astype(bool)
    np.testing.assert_array_equal(ask(function, x), [float(function(row)) for row in x])


def test_inputs_are_integers_unless_asked_for_otherwise():
    kinds = {}
    for inputs in ("integers", "booleans", "signs"):
        ask(lambda x, i=inputs: kinds.update({i: x.copy()}) or x[:, 0] * 1.0, inputs=inputs)
    assert kinds["integers"].dtype == np.int64
    assert kinds["booleans"].dtype == bool
    np.testing.assert_array_equal(kinds["signs"], signs(kinds["booleans"], np.int64))


def test_truth_values_are_numbers():
    np.testing.assert_array_equal(ask(lambda x: x[:, 0] == 1), X[:, 0].astype(float))


def test_every_input_is_counted_and_the_limit_is_kept():
    seen = []

    def function(x):
        seen.append(len(x) if x.ndim == 2 else 1)
        return x[..., 0] * 1.0

    oracle = Oracle(function, 6, limit=100)
    oracle(X)
    assert oracle.queries == sum(seen) == 53
    oracle.ask_again()
    assert oracle.queries == sum(seen) <= 100
    with pytest.raises(ValueError, match="Ask fewer, or increase the limit"):
        oracle(X)
    assert oracle.queries == sum(seen)
    assert oracle.left == 100 - oracle.queries


def test_batches_are_bounded():
    sizes = []
    Oracle(lambda x: sizes.append(len(x)) or x[:, 0], 3)(np.zeros((3 * BATCH, 3), bool))
    assert max(sizes) == BATCH
    sizes.clear()
    Oracle(lambda x: sizes.append(len(x)) or x[:, 0], 2000)(np.zeros((5000, 2000), bool))
    assert max(sizes) * 2000 <= 2**22


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda x: x[:, :2], "Drop extra axes"),
        (lambda x: x, "Drop extra axes"),
        (lambda x: None, "Map classes or texts to numbers"),
        (lambda x: "cat", "Map classes or texts to numbers"),
        (lambda x: np.full(len(x), "cat"), "Map classes or texts to numbers"),
        (lambda x: x[..., 0] + 1j, "take one part of a complex number"),
        (lambda x: np.where(x[:, 0] == 1, np.nan, 1.0), "Look for a division by zero"),
        (lambda x: float("inf") if x[2] else 0, "with ones at 2"),
        (lambda x: x[:3, 0], "Correct its shape"),
    ],
)
def test_answers_that_are_no_numbers_are_refused(function, advice):
    x = np.eye(6, dtype=bool) if advice == "with ones at 2" else X
    with pytest.raises(ValueError, match=advice):
        ask(function, x)


def test_an_unreadable_answer_is_refused():
    class Tensor:
        shape = (3,)

        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("requires grad")

    with pytest.raises(ValueError, match="detach"):
        ask(lambda x: Tensor() if len(x) == 3 else x.tolist() and Tensor())


def test_what_the_function_raises_comes_out_with_a_note():
    with pytest.raises(KeyError) as raised:
        ask(lambda x: {}[3])
    assert any(
        "one input of shape (6,)" in note and "a batch of shape (3, 6)" in note for note in raised.value.__notes__
    )


def test_a_function_that_fails_on_bits_and_not_on_signs_expects_signs():
    def function(x):
        if not set(np.unique(x).tolist()) <= {-1, 1}:
            raise RuntimeError("no signs")
        return x.prod()

    with pytest.raises(ValueError, match="Use inputs='signs'"):
        ask(function)
    np.testing.assert_array_equal(ask(function, inputs="signs"), signs(X, np.int64).prod(axis=1))


def test_a_product_of_signs_is_suspected():
    oracle = Oracle(lambda x: x.prod(axis=-1), 40)
    x = np.random.default_rng(2).integers(0, 2, (64, 40)).astype(bool)
    assert (oracle(x) == 0).all()
    assert oracle.expects_signs(x)
    constant = Oracle(lambda x: 1.0, 40)
    constant(x)
    assert not constant.expects_signs(x)


def test_a_random_function_is_refused():
    rng = np.random.default_rng(3)
    oracle = Oracle(lambda x: rng.normal(size=len(x)), 6)
    oracle(X)
    with pytest.raises(ValueError, match="fix its seed, switch off dropout"):
        oracle.ask_again()


def test_a_function_that_sees_its_batch_is_refused():
    oracle = Oracle(lambda x: x[:, 0] - x[:, 0].mean(), 6)
    oracle(X)
    with pytest.raises(ValueError, match="does not depend on the rest of the batch"):
        oracle.ask_again()


def test_rounding_of_single_precision_is_not_randomness():
    rng = np.random.default_rng(4)
    oracle = Oracle(lambda x: (x[:, 0] * (1 + 1e-7 * rng.normal(size=len(x)))).astype(np.float32), 6)
    oracle(X)
    oracle.ask_again()
    assert 1e-6 < oracle.resolution < 1e-4


@pytest.mark.parametrize(("dim", "limit"), [(0, 10), (3, 0)])
def test_sizes_that_make_no_sense(dim, limit):
    with pytest.raises(ValueError, match="Give 1 or more"):
        Oracle(lambda x: x, dim, limit=limit)
