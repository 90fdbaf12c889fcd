"""One name for a batch through any model: fast forms equal the model on each example, in value and gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.models import BitClassifier, BitRecurrent, BitTransformer, outputs
from genscope.models.scalar_attention import ScalarAttention
from genscope.models.token_attention import ProjectedTokenTransformer, ScaledTokenTransformer, draw_full
from genscope.models.token_feedforward import TokenFeedForward
from genscope.models.token_recurrent import KINDS, TokenRecurrent
from genscope.precision import float64

KEY = jr.key(5)
BITS, TOKENS = 4, (3, 5)


FAST = {
    "classifier": lambda: BitClassifier(BITS, dim=8, heads=2, key=KEY),
    "bit transformer": lambda: BitTransformer(BITS, embedding=3, hidden=5, key=KEY),
    "scalar attention": lambda: ScalarAttention(BITS, hidden=3, key=KEY),
    "scaled attention": lambda: ScaledTokenTransformer.draw(KEY, dim=TOKENS[1], heads=2, hidden=4),
    "projected attention": lambda: ProjectedTokenTransformer.draw(KEY, dim=TOKENS[1], heads=2, hidden=4),
    "feedforward": lambda: TokenFeedForward.draw(KEY, context_length=TOKENS[0], dim=TOKENS[1], first=4, second=3),
    **{kind: lambda kind=kind: TokenRecurrent.draw(KEY, kind=kind, dim=TOKENS[1], units=3) for kind in KINDS},
}
FAST |= {
    f"{kind} of bits": lambda kind=kind: BitRecurrent(BITS, kind=kind, units=3, embedding=2, key=KEY) for kind in KINDS
}
OF_BITS = ("classifier", "bit transformer", "scalar attention", *(f"{kind} of bits" for kind in KINDS))


@eqx.filter_jit
def both(model, x):
    """Outputs and gradient by the fast form, and example by example."""

    def found(predict):
        def objective(model):
            predicted = predict(model, x)
            return jnp.sum(jnp.sin(predicted)), predicted

        gradient, predicted = eqx.filter_grad(objective, has_aux=True)(model)
        return predicted, jax.tree.leaves(gradient)

    return found(outputs), found(lambda model, x: jax.vmap(model)(x))


@pytest.mark.parametrize("name", FAST)
def test_a_fast_form_is_the_model_on_each_example(name):
    with float64():
        model = jax.tree.map(lambda w: w + 0.3 if eqx.is_inexact_array(w) else w, FAST[name]())  # no bias hides at 0
        rng = np.random.default_rng(0)
        x = jnp.asarray(rng.random((6, BITS)) < 0.5 if name in OF_BITS else rng.normal(size=(6, *TOKENS)))
        assert callable(type(model).outputs)
        (fast, fast_gradient), (plain, plain_gradient) = both(model, x)
    np.testing.assert_allclose(fast, plain, rtol=1e-9, atol=1e-11)
    for one, other in zip(fast_gradient, plain_gradient, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_a_model_without_a_fast_form_is_mapped_with_what_examples_share():
    model = draw_full(KEY, dim=TOKENS[1], hidden=4)
    z, real = jr.normal(KEY, (2, *TOKENS)), jnp.array([True, True, False])
    expected = jnp.stack([model(one, real) for one in z])
    np.testing.assert_allclose(outputs(model, z, real=real), expected, atol=1e-6)
    assert np.abs(outputs(model, z) - expected).max() > 1e-3


def test_a_field_of_that_name_is_no_fast_form():
    class Own(eqx.Module):
        outputs: eqx.nn.Linear

        def __call__(self, x):
            return self.outputs(x)

    model = Own(eqx.nn.Linear(3, 2, key=KEY))
    assert outputs(model, jnp.ones((5, 3))).shape == (5, 2)
