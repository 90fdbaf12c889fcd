"""Prompts of bits, and the logits that answer them."""

import json

import numpy as np
import pytest

from genscope.probe import Template, logit_difference, probe
from genscope.refusal import Refusal


def test_a_bit_chooses_at_each_place_where_the_prompts_differ():
    template = Template(zero=(5, 1, 6, 2), one=(5, 3, 6, 70_000))
    assert template.places == [1, 3]
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert np.asarray(template(x)).tolist() == [[5, 1, 6, 2], [5, 1, 6, 70_000], [5, 3, 6, 2], [5, 3, 6, 70_000]]


def test_pieces_of_text_are_joined_whatever_their_lengths():
    template = Template(zero=("a ", "good", " film"), one=("a ", "distressing", " film"))
    assert template(np.array([[1], [0]])) == ["a distressing film", "a good film"]


def test_a_probe_of_prompts():
    """Logits of a vocabulary at three places: the last is asked."""
    template = Template(zero=(1, 2, 3), one=(4, 2, 5))

    def model(ids):
        logits = np.zeros((*ids.shape, 6))
        logits[:, -1, 3] = 2.0 * (ids[:, 0] == 4) * (ids[:, 2] == 5) + 1
        logits[:, 0, 3] = 100 * (ids[:, 0] == 4)
        return logits

    found = probe(lambda x: logit_difference(model(template(x)), 3, 0), 2)
    assert found.function(np.array([[0, 0], [1, 0], [1, 1]]) == 1) == pytest.approx([1, 1, 3])


@pytest.mark.parametrize(
    ("zero", "one"), [((1, 2), (1,)), ((1, 2), (1, 2)), ((1, "a"), (2, "b")), ((), ()), ((1,), (True,))]
)
def test_what_is_no_pair_of_prompts(zero, one):
    with pytest.raises(Refusal, match="two prompts of the same length that differ somewhere"):
        Template(zero, one)


def test_bits_that_do_not_fit():
    with pytest.raises(Refusal, match="Give 1 bits"):
        Template((1, 2), (1, 3))(np.zeros((1, 2), int))


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 2, 3)])
def test_logits_that_are_not_there(shape):
    with pytest.raises(Refusal, match="difference of logits 0 and 7"):
        logit_difference(np.zeros(shape), 0, 7)


@pytest.mark.parametrize(
    "text", ["{", "[1, 2]", json.dumps({"zero": [1]}), json.dumps({"zero": 1, "one": 2}), "[" * 100_000]
)
def test_files_that_hold_no_template(tmp_path, text):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(Refusal, match="it must be JSON with two lists"):
        Template.read(tmp_path / "t.json")
