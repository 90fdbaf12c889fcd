import numpy as np
import pytest

from genscope.probe import Oracle, influences
from tests.chance import Seldom
from tests.probe.functions import census, random_sum
from tests.seeds import seed


def test_census():
    """Relevant bits and influences of all functions of three bits: a bit is missed, or by Hoeffding's inequality an
    influence off by more than its limit, once in 10^9 runs of the census; one that is off by a fifth is found.
    """
    rng = np.random.default_rng(seed(1))
    for f, coefficients in census():
        found = influences(Oracle(f, 3), rng=rng, confidence=1 - 1e-9 / 256, sparsity_bound=24)
        assert found.relevant == tuple(sorted(set().union(*coefficients)))
        expected = [sum(c**2 for s, c in coefficients.items() if i in s) for i in range(3)]
        limit = 0.25 * np.sqrt(np.log(2 * 3 * 256 / 1e-9) / (2 * found.queries / 4))  # squares over 4 are 0 or 1/4
        assert limit < 0.1
        np.testing.assert_allclose(found.mean, expected, atol=limit)


def test_a_bit_that_seldom_matters_is_missed_as_often_as_stated():
    """AND of five bits: each matters on 1/16 of the inputs, and has 32 components; planted: few inputs, 73 % miss."""
    rng, law = np.random.default_rng(seed(2)), Seldom(100, 0.1, planted=0.6)

    def missed(bound):
        oracles = [Oracle(lambda x: x[:, :5].all(axis=1), 8) for _ in range(law.trials)]
        found = [influences(o, rng=rng, confidence=0.9, sparsity_bound=bound).relevant for o in oracles]
        assert all(set(relevant) <= set(range(5)) for relevant in found)
        return sum(relevant != (0, 1, 2, 3, 4) for relevant in found)

    assert law.explains(missed(32))
    assert not law.explains(missed(2))


def test_long_inputs_and_their_limit():
    f = random_sum(np.random.default_rng(3), 64, 5, 20)
    oracle = Oracle(f, 64)
    found = influences(oracle, rng=np.random.default_rng(0))
    assert found.relevant == f.relevant
    assert found.queries == oracle.queries
    small = Oracle(f, 64, limit=1000)
    assert influences(small, rng=np.random.default_rng(0)) is None
    assert small.queries == 0


def test_a_bound_that_makes_no_sense():
    with pytest.raises(ValueError, match="Give 1 or more"):
        influences(Oracle(lambda x: x[:, 0], 4), rng=np.random.default_rng(0), sparsity_bound=0)
