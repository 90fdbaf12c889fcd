"""The fuzzer finds what is hidden behind branches, repeats itself, and takes no exception for a refusal."""

import json

import pytest

from genscope.fourier.expression import parse
from genscope.refusal import Refusal
from tests.fuzz import guided
from tests.fuzz.guided import Target, fuzz


def hidden(data):
    """A defect behind four branches, each of which a change in some hundreds passes."""
    if data[:1] != b"b":
        return
    if data[1:2] != b"u":
        return
    if data[2:3] != b"g":
        return
    if data[3:4] == b"!":
        raise KeyError("found")


def test_coverage_leads_to_what_chance_would_not_find(monkeypatch):
    monkeypatch.setattr(guided, "HERE", __file__)
    target = Target("hidden", [b"aaaa"], hidden, words=[bytes([letter]) for letter in b"abcdefgu!0123456"])
    with pytest.raises(AssertionError, match=r"hidden broke with KeyError: b'bug!.*keep it in tests/fuzz/corpus"):
        fuzz(target, inputs=20_000, seed=1)
    monkeypatch.setattr(guided, "HERE", "nowhere")  # the control: the same inputs without guidance
    assert fuzz(target, inputs=20_000, seed=1).kept == 1


def test_the_same_seed_tries_the_same_inputs():
    tried = []
    target = Target("expression", [b"x0 & x1"], lambda data: (tried.append(data), parse(data.decode()))[1])
    tallies = [fuzz(target, inputs=200, seed=seed) for seed in (3, 3, 4)]
    assert tallies[0] == tallies[1]
    assert tried[:200] == tried[200:400] != tried[400:]
    assert tallies[0].kept > 5
    assert 0 < tallies[0].refused < 200


def test_a_refusal_says_something_and_not_too_much():
    def refuse(data):
        raise Refusal(int(data) * "x")

    assert not guided.check(Target("fine", [], refuse), b"3000")
    for number in (0, 4000):
        with pytest.raises(AssertionError, match=f"refused with {number} characters"):
            guided.check(Target("poor", [], refuse), str(number).encode())


def test_trees_are_changed_into_trees():
    trees = []
    target = Target("tree", [b'{"a": [1, {"b": null}]}'], lambda data: trees.append(guided._tree(data)), is_json=True)
    fuzz(target, inputs=300, seed=0)
    assert sum(tree is not None for tree in trees) > 150
    assert len({json.dumps(tree) for tree in trees}) > 120
