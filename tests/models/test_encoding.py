import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jaxtyping
import numpy as np
import pytest

from genscope.models.encoding import Bag, Coordinates, Positional, coherence, sign_vectors
from genscope.precision import float64
from tests.reference import edelman2022 as twin

BITS = np.array([1, 0, 0, 1, 1])
jitted = eqx.filter_jit(lambda method, *args: method(*args))  # one compilation instead of one per operation


@pytest.fixture(autouse=True)
def in_float64():
    with float64():
        yield


def make(kind, vectors):
    if vectors == "coordinates":
        return kind.orthonormal(context_length=5)
    return kind.draw(jr.key(0), context_length=5, dim=4, trained=vectors == "trained signs")


def reference_tokens(encoding):
    coordinates = isinstance(encoding.vectors, Coordinates)
    rows = np.eye(*encoding.vectors.shape) if coordinates else np.asarray(encoding.vectors)
    if isinstance(encoding, Positional):
        tokens, cls = twin.positional(BITS, rows[0], rows[1:3], rows[3:])
    else:
        tokens, cls = twin.bag(BITS, rows[0], rows[1:])
    return np.concatenate([tokens, cls[None]])


@pytest.mark.parametrize("kind", [Positional, Bag])
@pytest.mark.parametrize("vectors", ["coordinates", "signs", "trained signs"])
def test_tokens_and_what_is_read_of_them_agree_with_the_twin(kind, vectors):
    encoding = make(kind, vectors)
    expected = reference_tokens(encoding)
    weights = np.random.default_rng(0).normal(size=(encoding.dim, 3))
    bits = jnp.asarray(BITS)
    np.testing.assert_array_equal(jitted(encoding.tokens, bits), expected)
    np.testing.assert_allclose(jitted(encoding.read, bits, jnp.asarray(weights)), expected @ weights, atol=1e-12)
    np.testing.assert_array_equal(encoding.cls, expected[-1])
    assert (encoding.context_length, encoding.dim) == (5, expected.shape[1])


@pytest.mark.parametrize("dtype", [bool, "uint8", "float32"])
def test_bits_may_be_of_any_type(dtype):
    encoding = make(Positional, "signs")
    np.testing.assert_array_equal(jitted(encoding.tokens, jnp.asarray(BITS, dtype)), reference_tokens(encoding))


def test_the_order_of_the_vectors_by_hand():
    """v_CLS = e_0, E = (e_1, e_2), P_t = e_{3+t}, and for the bag v_t = e_{1+t}; bits (0, 1)."""
    tokens = Positional.orthonormal(context_length=2).tokens(jnp.array([0, 1]))
    np.testing.assert_array_equal(tokens, [[0, 1, 0, 1, 0], [0, 0, 1, 0, 1], [1, 0, 0, 0, 0]])
    tokens = Bag.orthonormal(context_length=2).tokens(jnp.array([0, 1]))
    np.testing.assert_array_equal(tokens, [[0, 0, 0], [0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize("kind", [Positional, Bag])
def test_what_is_no_bit_becomes_nan(kind):
    tokens = np.asarray(jitted(make(kind, "signs").tokens, jnp.array([1, 0, -1, 0, 1])))
    assert np.isnan(tokens[2]).all()
    assert np.isfinite(np.delete(tokens, 2, axis=0)).all()


@pytest.mark.parametrize("kind", [Positional, Bag])
def test_gradients_reach_trained_vectors_alone(kind):
    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(encoding):
        return jnp.sum(encoding.tokens(jnp.asarray(BITS))) + jnp.sum(encoding.cls)

    assert not np.any(gradient(make(kind, "signs")).vectors)
    rows = np.asarray(gradient(make(kind, "trained signs")).vectors)
    assert np.all(rows[0] == 2)  # CLS: as the last token and as `cls`
    assert np.all(rows[-1] == 1)  # the last position, whose bit is 1


def test_coordinates_are_the_identity_but_hold_no_array():
    encoding = Positional.orthonormal(context_length=100_000)
    assert jax.tree.leaves(encoding) == []
    direction = jnp.asarray(np.arange(encoding.dim, dtype=float)[:, None])
    read = jitted(encoding.read, jnp.asarray(np.ones(100_000, bool)), direction)
    np.testing.assert_array_equal(read[:, 0], [*(2 + 3 + np.arange(100_000)), 0])
    np.testing.assert_array_equal(Coordinates(2, 3) @ jnp.eye(3), np.eye(2, 3))
    np.testing.assert_array_equal(Coordinates(2, 3)[1], [0, 1, 0])


def test_coherence_agrees_with_the_twin():
    vectors = sign_vectors(jr.key(1), count=7, dim=5)
    np.testing.assert_allclose(coherence(vectors), twin.coherence(np.asarray(vectors)), atol=1e-12)
    assert coherence(jnp.array([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]])) == 0.8  # negative inner products count
    assert coherence(jnp.array([[1.0, 2.0]])) == 0
    assert coherence(Coordinates(7, 7)) == 0


def test_sign_vectors_are_unit_signs_and_vary_with_the_key():
    vectors = sign_vectors(jr.key(1), count=7, dim=5)
    np.testing.assert_allclose(np.abs(vectors), 1 / math.sqrt(5), rtol=1e-15)
    assert np.any(vectors != sign_vectors(jr.key(2), count=7, dim=5))


def test_sign_vectors_keep_the_hoeffding_bound():
    """False-alarm rate 1e-9 by the bound itself; vectors of biased signs are caught."""
    count, dim = 40, 4096
    limit = math.sqrt(2 * math.log(count**2 / 1e-9) / dim)
    assert coherence(sign_vectors(jr.key(3), count=count, dim=dim)) <= limit
    biased = np.where(np.random.default_rng(3).uniform(size=(count, dim)) < 0.7, 1.0, -1.0) / math.sqrt(dim)
    assert coherence(jnp.asarray(biased)) > limit


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (lambda: Coordinates(4, 3), "Increase dim, or draw random signs"),
        (lambda: Coordinates(0, 3), "count=0, dim=3.*1 <= count <= dim"),
        (lambda: sign_vectors(jr.key(0), count=3, dim=0), "dim=0: both must be at least 1. Increase"),
        (lambda: Positional(np.ones((3, 4))), r"\(3, 4\): .* 3 rows before .* Give at least 4 rows"),
        (lambda: Bag(np.ones(4)), r"\(4,\): they must be \[rows, d\].* Give at least 2 rows"),
        (lambda: Bag(Coordinates(3, 3), trained=True), "trained=True .* only arrays .* Give an array"),
        (lambda: make(Bag, "signs").tokens(np.ones(4)), r"\(4,\): it encodes 5 bits.* Give one example"),
        (lambda: make(Bag, "signs").tokens(np.ones((2, 5))), r"\(2, 5\): .* \(use jax.vmap for several\)"),
    ],
)
def test_refusals_say_what_to_change(request_, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # or the suite's shape checker speaks first
    with pytest.raises(ValueError, match=message):
        request_()
