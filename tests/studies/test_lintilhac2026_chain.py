"""The studies of chains of thought: rows and tests by hand, the ladder, one shrunken search and one with a fault."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.bounds import parity_chain
from genscope.studies import lintilhac2026_chain as training
from genscope.studies import lintilhac2026_chain_bounds as arithmetic
from genscope.tasks.parity_chain import ParityChain

KEY = jr.key(5)


def test_rows_ask_for_the_answer_or_for_one_step():
    x = jnp.asarray([[1, 0, 1], [1, 1, 1]], bool)
    y = jnp.asarray([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    step = jnp.asarray([1, 2], "int32")
    whole = training.rows("one-pass", x, y, step)
    assert whole.read is None
    assert whole.bits.tolist() == x.tolist()
    assert whole.sign.tolist() == [-1, 1]
    asked = training.rows("chain", x, y, step)
    assert asked.bits.astype(int).tolist() == [[1, 0, 1, 0, 1, 1], [1, 1, 1, 0, 1, 0]]
    assert asked.read.tolist() == [4, 5]
    assert asked.sign.tolist() == [1, 1]


class Oracle:
    """Knows the parity of the bits before the position that is read; stands for a network."""

    def __init__(self, wrong_at=None):
        self.wrong_at = wrong_at

    def outputs(self, bits, read=None):
        length = bits.shape[1] if read is None else bits.shape[1] // 2
        last = length - 1 if read is None else read[:, None] - length
        ones = jnp.where(jnp.arange(length)[None] <= last, bits[:, :length], False)
        sign = 2.0 * (jnp.sum(ones, axis=1, dtype="int32") % 2).astype("float32") - 1
        return sign if self.wrong_at is None else jnp.where(read == length + self.wrong_at, -sign, sign)


def test_a_chain_is_right_when_every_step_is():
    task = ParityChain.draw(KEY, context_length=5)
    batch = task.sample(KEY, 40)
    for method in training.START:
        assert training.right(Oracle(), method, batch.x, batch.y).all()
    assert not training.right(Oracle(wrong_at=2), "chain", batch.x, batch.y).any()


def test_models_have_the_published_width():
    one_pass, chain = (eqx.filter_eval_shape(training.new_model, method, 20, key=KEY) for method in training.START)
    assert sum(leaf.size for leaf in jax.tree.leaves(one_pass)) == 47_390
    assert chain.position_ids == (*range(20), *range(20), 0)
    assert len(chain.w_read) == len(one_pass.w_read) - 1  # no output position of its own


def test_the_ladder_and_its_search():
    assert training.SIZES[0] == 16
    assert training.SIZES[-1] == 8192
    assert all(later / earlier < 1.44 for earlier, later in itertools.pairwise(training.SIZES))
    last = len(training.SIZES) - 1
    for threshold, start in itertools.product(range(last + 2), range(last + 1)):
        tried = []

        def works(rung, threshold=threshold, tried=tried):
            tried.append(rung)
            return rung >= threshold

        found = training.least(works, start, last)
        # Strides of two from an odd start end one rung before the last.
        beyond = threshold > last or (threshold == last and (last - start) % 2)
        assert found == (None if beyond else threshold)
        assert len(set(tried)) == len(tried)
        assert set(tried) <= set(range(last + 1))


def test_strings_that_were_seen():
    strings = np.array([[0, 1], [1, 1], [0, 0]], bool)
    assert training._among(strings, strings[:1]).tolist() == [True, False, False]


@pytest.mark.slow
def test_a_parity_is_learned_and_shuffled_labels_are_not(monkeypatch):
    """Of five bits; with labels of other strings nothing is learned, from however many."""
    monkeypatch.setattr(training, "STEPS", 600)
    for method in training.START:
        record = training.trial(KEY, method=method, target="all", context_length=5)
        assert record["reached"]
        assert record["accuracy"] >= 0.99
        assert record["samples"] <= 512
        task = ParityChain.draw(KEY, context_length=5)
        shuffled = training.train(KEY, task, method, 512, shuffle_labels=True)
        assert not shuffled.success


def test_bounds_and_their_local_exponents():
    record = arithmetic.trial(KEY, method="chain", weights="paper", context_length=8)
    value = parity_chain(context_length=8, samples=10**12).value
    assert record["risk"] == value
    assert record["risk"] * 2 ** record["risk_exponent"] == pytest.approx(
        parity_chain(context_length=16, samples=10**12).value
    )
    one_pass = arithmetic.trial(KEY, method="one-pass", weights="paper", context_length=64)
    assert not record["risk_vacuous"]
    assert one_pass["risk_vacuous"] is (one_pass["risk"] >= 1)
    assert one_pass["delta_vacuous"]  # 10^12 samples say nothing at any width
    assert one_pass["log_delta"] < 0  # 10^24 do, at the width of the study
    assert one_pass["delta_exponent"] > 1e18


def test_points_that_no_trial_can_have_are_refused():
    for study, point, message in (
        (training, {"context_length": 1}, "between 2 and 32"),
        (training, {"method": "two-pass"}, "method must be one of one-pass, chain. Choose"),
        (training, {"target": "none"}, "target must be one of all, half. Choose"),
        (arithmetic, {"weights": "heavy"}, "weights must be one of paper, tuned. Choose"),
        (arithmetic, {"method": "none"}, "method must be one of one-pass, chain, coded-chain. Choose"),
    ):
        with pytest.raises(ValueError, match=message):
            study.STUDY.check(point)
