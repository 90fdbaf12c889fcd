import jax.numpy as jnp
import jax.random as jr
import numpy as np

from genscope.measure import cls_attention, support_mass
from genscope.models.bit_classifier import BitClassifier


def test_mass_best_head_and_favourite_positions_by_hand():
    attention = jnp.array([[[0.2, 0.3, 0.1, 0.1], [0.0, 0.1, 0.0, 0.6]], [[0.4, 0.1, 0.1, 0.1], [0.0, 0.3, 0.1, 0.5]]])
    mass = support_mass(attention, jnp.array([1, 3]))
    np.testing.assert_allclose(mass.by_head, [0.3, 0.75], rtol=1e-6)
    assert mass.best == 1
    assert mass.top.tolist() == [1, 3]


def test_attention_leaves_out_the_share_of_cls():
    model = BitClassifier(6, dim=8, heads=2, key=jr.key(0))
    bits = jr.bernoulli(jr.key(1), 0.5, (5, 6))
    attention = cls_attention(model, bits)
    assert attention.shape == (5, 2, 6)
    own = [model.activations(row).attention[:, -1] for row in bits]
    np.testing.assert_allclose(attention.sum(axis=-1) + jnp.stack(own), 1, rtol=1e-5)
