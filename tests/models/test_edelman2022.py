import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jaxtyping
import numpy as np
import pytest

from genscope.models.edelman2022 import (
    DeepTransformer,
    Head,
    Heads,
    Hidden,
    Layer,
    Readout,
    Transformer,
    project,
)
from genscope.models.encoding import Bag, Positional
from genscope.precision import float64
from genscope.random import stream
from tests.reference import edelman2022 as twin

KEY = jr.key(0)
BITS = np.array([1, 0, 0, 1, 1])
jitted = eqx.filter_jit(lambda method, *args: method(*args))  # one compilation instead of one per operation


@pytest.fixture(autouse=True)
def in_float64():
    with float64():
        yield


def normal(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def weights(head):
    """The arrays of a head, for the twin."""
    return [None if w is None else np.asarray(w) for w in (head.w_q, head.w_k, head.w_v, head.w_c)]


def agree(value, expected):
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("sigma", ["relu", "tanh"])
def test_head_agrees_with_the_twin(n, sigma):
    """All four widths different, with and without W_C; the identity of a sum with one token is n = 1."""
    tokens, z = 2 * normal(n, 4), normal(4, seed=1)
    w_q, w_k, w_v, w_c = normal(4, 3), normal(4, 3, seed=2), normal(4, 5), normal(5, 2)
    for last in (w_c, None):
        head = Head(w_q, w_k, w_v, last, sigma=getattr(jax.nn, sigma))
        computed = jitted(head.activations, tokens, z)
        attention, output = twin.head(
            np.asarray(tokens), np.asarray(z), *weights(head), sigma=np.tanh if sigma == "tanh" else twin.relu
        )
        agree(computed.attention, attention)
        agree(computed.output, output)
        assert head.output_dim == len(output)


def test_scores_are_not_divided_by_the_root_of_the_width():
    """Ones of width 4: the score of x = z = 1 is 4, and 2 if it were scaled; softmax(4, 0) by hand."""
    head = Head(jnp.ones((1, 4)), jnp.ones((1, 4)), jnp.ones((1, 1)))
    computed = head.activations(jnp.array([[1.0], [0.0]]), jnp.ones(1))
    agree(computed.scores, [4, 0])
    agree(computed.attention[0], 1 / (1 + np.exp(-4)))


def test_attention_is_a_distribution_even_for_huge_scores():
    head = Head.draw(KEY, dim=4, head_dim=3)
    tokens, z = normal(6, 4), normal(4, seed=1)
    for scale in (1, 1e3, 1e6):
        attention = np.asarray(jitted(head.activations, tokens * scale, z).attention)
        assert attention.shape == (6,)
        agree(attention.sum(), 1)
        assert np.all(attention >= 0)


def test_head_ignores_the_order_of_tokens():
    head = Head.draw(KEY, dim=4, head_dim=3)
    tokens, z = normal(6, 4), normal(4, seed=1)
    order = np.array([3, 1, 5, 0, 4, 2])
    moved, still = (jitted(head.activations, x, z) for x in (tokens[order], tokens))
    agree(moved.output, still.output)
    agree(moved.attention, np.asarray(still.attention)[order])


def test_heads_are_the_sum_of_heads_and_a_layer_is_the_heads_at_each_position():
    heads = Heads.draw(KEY, count=3, dim=4, head_dim=2)
    tokens, z = normal(6, 4), normal(4, seed=1)
    assert len({float(np.asarray(head.w_q)[0, 0]) for head in heads.heads}) == 3  # drawn independently
    computed = jitted(heads.activations, tokens, z)
    each = [np.asarray(jitted(head, tokens, z)) for head in heads.heads]
    agree(computed.head_outputs, each)
    agree(computed.output, sum(each))
    agree(jitted(heads, tokens, z), sum(each))

    rows = jitted(Layer(heads).activations, tokens)
    agree(rows.output, twin.layer(np.asarray(tokens), [weights(head) for head in heads.heads]))
    contexts = [jitted(heads.activations, tokens, x) for x in tokens]
    agree(rows.output, [one.output for one in contexts])
    agree(rows.attention, np.stack([one.attention for one in contexts], axis=1))
    agree(np.sum(rows.attention, axis=-1), np.ones((3, 6)))


def test_layer_is_equivariant():
    layer = Layer(Heads.draw(KEY, count=2, dim=4, head_dim=2))
    tokens, order = normal(6, 4), np.array([3, 1, 5, 0, 4, 2])
    agree(jitted(layer, tokens[order]), np.asarray(jitted(layer, tokens))[order])


def test_projection_is_idempotent_lipschitz_and_nearest():
    near, far = 0.2 * np.asarray(normal(50, 3)), 5 * np.asarray(normal(50, 3, seed=1))
    x, y = np.concatenate([near, far]), np.concatenate([far, far[::-1]])
    px, py = (np.asarray(jitted(project, jnp.asarray(rows))) for rows in (x, y))
    agree(px, [twin.project(row) for row in x])
    agree(jitted(project, jnp.asarray(px)), px)
    assert np.all(np.linalg.norm(px - py, axis=1) <= np.linalg.norm(x - y, axis=1) + 1e-12)
    # No point of the ball is nearer: <x - Px, q - Px> <= 0 for every q in the ball.
    assert np.all(np.sum((x - px) * (py - px), axis=1) <= 1e-12)
    agree(jitted(jax.jacobian(project), jnp.asarray(np.zeros(3))), np.eye(3))


@pytest.mark.parametrize("widths", [(), (5,), (5, 4)])
@pytest.mark.parametrize("biased", [True, False])
def test_readout_agrees_with_the_twin(widths, biased):
    readout = Readout.draw(KEY, dim=3, widths=widths, biased=biased)
    if biased:
        moved = tuple(Hidden(layer.weight, normal(layer.weight.shape[1])) for layer in readout.hidden)
        readout = dataclasses.replace(readout, hidden=moved)
    y = normal(3)
    hidden = [(np.asarray(layer.weight), layer.bias) for layer in readout.hidden]
    computed = jitted(readout.activations, y)
    agree(computed.output, twin.readout(np.asarray(y), np.asarray(readout.w), hidden))
    assert [len(layer) for layer in computed.hidden] == list(widths)
    assert readout.dim == 3


def encoded(encoding, bits=BITS):
    tokens = np.asarray(encoding.tokens(jnp.asarray(bits)))
    return tokens[:-1], tokens[-1]


ENCODINGS = {
    "positional": lambda: Positional.draw(KEY, context_length=5, dim=6),
    "positional, orthonormal": lambda: Positional.orthonormal(context_length=5),
    "bag": lambda: Bag.draw(KEY, context_length=5, dim=6),
}


@pytest.mark.parametrize(
    ("encoding", "cls_is_key", "heads", "widths"),
    [
        ("positional", True, 1, ()),
        ("positional", False, 2, (4, 3)),
        ("positional, orthonormal", True, 2, (4,)),
        ("bag", True, 2, (4, 3)),
        ("bag", False, 1, ()),
    ],
)
def test_transformer_agrees_with_the_twin(encoding, cls_is_key, heads, widths):
    """The twin stores the tokens; ours never does."""
    encoding = ENCODINGS[encoding]()
    model = Transformer.draw(
        KEY, encoding=encoding, head_dim=3, heads=heads, widths=widths, biased=True, cls_is_key=cls_is_key
    )
    computed = jitted(model.activations, jnp.asarray(BITS))

    tokens, cls = encoded(encoding)
    hidden = [(np.asarray(layer.weight), layer.bias) for layer in model.readout.hidden]
    every = [weights(head) for head in model.heads.heads]
    expected = twin.transformer(tokens, cls, every, np.asarray(model.readout.w), hidden, cls_is_key=cls_is_key)
    agree(computed.output, expected)
    agree(computed.summary, np.sum(computed.head_outputs, axis=0))
    assert [len(layer) for layer in computed.hidden] == list(widths)
    assert computed.attention.shape == (heads, 5 + cls_is_key)
    keys = np.concatenate([tokens, cls[None]]) if cls_is_key else tokens
    agree(np.asarray(computed.attention)[0], twin.head(keys, cls, *every[0])[0])


def test_bag_of_vectors_is_blind_to_the_order_of_its_vectors():
    """A permutation of the positions, of vectors and bits alike, changes nothing (edelman2022, Section 5)."""
    model = Transformer.draw(KEY, encoding=ENCODINGS["bag"](), head_dim=3)
    order = np.array([3, 1, 0, 4, 2])
    vectors = np.asarray(model.encoding.vectors)[np.concatenate([[0], 1 + order])]
    moved = dataclasses.replace(model, encoding=Bag(jnp.asarray(vectors)))
    agree(jitted(moved, jnp.asarray(BITS[order])), jitted(model, jnp.asarray(BITS)))


def test_one_bit_without_cls_is_attended_fully():
    encoding = Positional.draw(KEY, context_length=1, dim=6)
    model = Transformer.draw(KEY, encoding=encoding, head_dim=2, cls_is_key=False)
    agree(jitted(model.activations, jnp.array([1])).attention, [[1.0]])


def test_deep_transformer_agrees_with_the_twin():
    encoding = ENCODINGS["positional"]()
    model = DeepTransformer.draw(KEY, encoding=encoding, head_dim=3, layers=2, heads=2)
    # Weights large enough that both projections act, and small enough that not all rows are on the sphere.
    model = eqx.tree_at(lambda m: m.layers[0].heads.heads[0].w_v, model, replace_fn=lambda w: 5 * w)
    tokens = np.concatenate([t if t.ndim == 2 else t[None] for t in encoded(encoding)])
    every = [[weights(head) for head in layer.heads.heads] for layer in model.layers]
    computed = jitted(model.activations, jnp.asarray(BITS))
    agree(computed.output, twin.deep(tokens, every, np.asarray(model.readout.w)))
    assert computed.tokens.shape == (3, 6, 6)
    lengths = np.linalg.norm(np.asarray(computed.tokens)[1:], axis=-1)
    assert np.all(lengths <= 1 + 1e-12)
    assert np.any(lengths < 0.99)
    assert np.any(lengths > 0.99)
    assert [a.shape for a in computed.attention] == [(2, 6, 6)] * 2


def models():
    encoding = Positional.draw(KEY, context_length=5, dim=6, trained=True)
    yield Transformer.draw(stream(KEY, "one"), encoding=encoding, head_dim=3, heads=2, widths=(4, 3), biased=True)
    yield DeepTransformer.draw(stream(KEY, "deep"), encoding=encoding, head_dim=3, layers=2)


def test_models_train():
    """Stacked = one by one; pytrees round-trip; every weight gets a finite gradient; draws vary with keys."""
    batch = jnp.asarray(np.random.default_rng(0).integers(0, 2, size=(32, 5)))

    @eqx.filter_jit
    def both(model, batch):
        def loss(model):
            outputs = jax.vmap(model)(batch)
            return jnp.mean((outputs - 1) ** 2), outputs

        return eqx.filter_grad(loss, has_aux=True)(model)

    for model in models():
        leaves, structure = jax.tree.flatten(model)
        copy = jax.tree.unflatten(structure, leaves)
        gradient, outputs = both(copy, batch)
        agree(np.asarray(outputs)[0], jitted(model, batch[0]))
        for leaf in jax.tree.leaves(gradient):
            assert np.all(np.isfinite(leaf))
            assert np.any(leaf)

    one, other = (Transformer.draw(key, encoding=model.encoding, head_dim=3) for key in jr.split(KEY))
    assert all(np.any(np.asarray(a) != b) for a, b in zip(*map(jax.tree.leaves, (one.heads, other.heads)), strict=True))


def head(d=4, k=3, v=3, e=4, **fields):
    return Head(np.ones((d, k)), np.ones((d, k)), np.ones((d, v)), np.ones((v, e)), **fields)


def assembled(heads, readout, kind=Transformer):
    return kind(Bag.draw(KEY, context_length=2, dim=4), heads, readout)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (lambda: Head(np.ones((4, 3)), np.ones((4, 2)), np.ones((4, 3))), r"w_q \(4, 3\), w_k \(4, 2\).* Make the"),
        (lambda: Head(np.ones((4, 3)), np.ones((4, 3)), np.ones((5, 3))), r"w_v \(5, 3\).* w_v \[d, v\].* Make the"),
        (lambda: Head(*3 * [np.ones((4, 3))], w_c=np.ones((4, 4))), r"w_c \(4, 4\): .* w_c \[v, e\] or None"),
        (lambda: Head(*3 * [np.ones(4)]), r"w_q \(4,\).* Make the dimensions"),
        (lambda: Head.draw(KEY, dim=4, head_dim=0), "weights of 4 x 0: every dimension must be at least 1. Increase"),
        (lambda: head()(np.ones((5, 3)), np.ones(4)), r"\(5, 3\): .* dimension 4, as \[n, 4\]. Give"),
        (lambda: head()(np.ones((0, 4)), np.ones(4)), r"\(0, 4\): it must read at least one token"),
        (
            lambda: head()(np.ones((5, 4)), np.ones(3)),
            r"a context of shape \(3,\): .* need shape \[4\]. Give one vector",
        ),
        (lambda: Readout(np.ones(3))(np.ones(2)), r"a vector of shape \(2,\): .* need shape \[3\]. Give one vector"),
        (lambda: Layer(Heads((head(),)))(np.ones((2, 5, 4))), r"\(2, 5, 4\): .* \(use jax.vmap for several\)"),
        (lambda: Heads(()), r"dimensions \[\]: .* at least one head.* Give heads of the same shape"),
        (lambda: Heads((head(), head(e=5))), r"\[\(4, 4\), \(4, 5\)\]: .* Give heads of the same shape"),
        (lambda: Readout(np.ones((3, 1))), r"w \(3, 1\): .* Make the sizes of neighboring"),
        (
            lambda: Readout(np.ones(3), (Hidden(np.ones((4, 2))),)),
            r"\[\(4, 2\)\].* w \(3,\): .* Make the sizes of neighboring",
        ),
        (lambda: Readout(np.ones(2), (Hidden(np.ones((4, 2)), np.ones(3)),)), r"biases \[\(3,\)\]"),
        (lambda: Readout.draw(KEY, dim=3, widths=(0,)), "weights of 3 x 0: every dimension must be at least 1"),
        (
            lambda: assembled(Heads((head(d=5),)), Readout(np.ones(4))),
            r"input dimensions .*\[5, 4\] .* \[4, 4\].* lists equal",
        ),
        (
            lambda: assembled(Heads((head(),)), Readout(np.ones(3))),
            r"Transformer .*\[4, 3\] .* \[4, 4\].* lists equal",
        ),
        (
            lambda: assembled((Layer(Heads((head(),))),), Readout(np.ones(4)), DeepTransformer),
            r"projected=\[False\]: .* Create each head with projected=True",
        ),
        (
            lambda: assembled((Layer(Heads((head(e=5, projected=True),))),), Readout(np.ones(4)), DeepTransformer),
            r"DeepTransformer .*\[4, 4\] .* \[4, 5\]",
        ),
    ],
)
def test_refusals_say_what_to_change(request_, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # or the suite's shape checker speaks first
    with pytest.raises(ValueError, match=message):
        request_()
