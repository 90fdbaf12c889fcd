import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.tasks import SparseOr
from genscope.train import cross_entropy, online
from tests.train.test_fit import Affine

TASK = SparseOr.at([0, 1], context_length=4)
START = Affine(jnp.zeros(4), jnp.zeros(()))


def linear(model, x):
    return x.astype(jnp.float32) @ model.weight + model.bias


def run(**options):
    settings = dict(loss=cross_entropy, predict=linear, key=jr.key(1), batch_size=64, steps=60, rate=0.1, every=20)
    return online(START, TASK, **(settings | options))


def test_a_linear_rule_learns_an_or_and_losses_are_on_unseen_data():
    result = run(steps=300, stop=lambda model, loss, accuracy: accuracy == 1)
    assert result.losses[0] == pytest.approx(np.log(2), abs=1e-6)
    assert result.accuracies[-1] == 1
    assert result.reached
    assert result.steps % 20 == 0


def test_batches_depend_on_the_step_alone():
    np.testing.assert_allclose(run(every=20).losses, run(every=12).losses, rtol=1e-5)


def test_an_unreached_budget_is_censored_not_lost():
    result = run(stop=lambda *_: False)
    assert (result.steps, result.reached, len(result.losses)) == (60, False, 60)


def test_divergence_is_recorded():
    result = run(rate=1e38)
    assert result.diverged
    assert not result.reached


def test_empty_batches_are_refused():
    with pytest.raises(ValueError, match="Give at least 1"):
        run(batch_size=0)
