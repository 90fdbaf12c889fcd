"""The room Construction: the same numbers as the command, attention by hand, limits, and the file."""

import json
import shlex

import numpy as np
import pytest

from genscope.explorer.construction_room import attend, build, download
from genscope.models.file import load
from tests.cli.program import invoke

MAJORITY = {"expression": "maj(x1, x4, x6)", "context_length": 8, "network": "positional"}


@pytest.mark.parametrize("network", ["positional", "random", "tuned"])
def test_the_command_line_says_the_same(network):
    found = build(MAJORITY | {"network": network})
    assert found["verified"]
    said = json.loads(invoke(*shlex.split(found["command"])[1:], "--json").stdout)
    assert said["max_error"] == found["max_error"]
    assert said["inputs_checked"] == found["inputs_checked"] == 256
    assert said["source"] == found["source"]
    for norm in found["norms"]:
        if "promised_norms" in said:
            assert norm["measured"] == said["norms"][norm["name"]]
            assert norm["promised"] == said["promised_norms"][norm["name"]]
        else:
            assert norm["measured"] ** 2 == pytest.approx(said["norm_squared"][norm["name"]], rel=1e-9)


@pytest.mark.parametrize("network", ["bag", "full"])
def test_the_output_is_the_value_at_every_flip(network):
    for bits, value in (("01001000", 1), ("01000000", 0), ("10110101", 0), ("11111111", 1)):
        found = attend(MAJORITY | {"network": network, "bits": bits})
        assert found["target"] == value
        assert found["output"] == pytest.approx(value, abs=1e-5)
        for drawn in found["maps"]:
            assert np.shape(drawn["values"]) == (len(drawn["rows"]), len(drawn["columns"]))
            np.testing.assert_allclose(np.sum(drawn["values"], axis=1), 1, atol=1e-9)


def test_attention_lies_on_the_relevant_positions():
    drawn = attend(MAJORITY | {"bits": "0" * 8})["maps"][0]
    row = dict(zip(drawn["columns"], drawn["values"][0], strict=True))
    others = ("x0", "x2", "x3", "x5", "x7", "CLS")
    assert min(row[name] for name in ("x1", "x4", "x6")) > max(row[name] for name in others)


def test_a_constant_and_a_single_bit():
    for network in ("bag", "full"):
        assert build({"expression": "1", "context_length": 1, "network": network})["verified"]
    found = attend({"expression": "~x0", "context_length": 1, "network": "positional", "bits": "0"})
    assert found["output"] == pytest.approx(1, abs=1e-9)


def test_the_file_is_a_model_of_genscope(tmp_path):
    found = download(MAJORITY)
    path = tmp_path / found.name
    path.write_bytes(found.body)
    model = load(path)
    assert model.encoding.context_length == 8


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"context_length": 65}, "whole number from 1 to 64"),
        ({"context_length": 33, "network": "full"}, "whole number from 1 to 32"),
        ({"context_length": True}, "whole number"),
        ({"context_length": None}, "whole number"),
        ({"context_length": 4}, "Use a smaller index or"),
        ({"network": "other"}, "positional, bag"),
        ({"expression": "parity(x0,x1,x2,x3,x4,x5,x6,x7,x8)", "context_length": 9}, "at most 8"),
        ({"expression": "parity(x0,x1,x2,x3,x4,x5)", "network": "random"}, "at most 5"),
        ({"expression": "x0&x1&x2&x3", "network": "full"}, "drop the smallest components"),
        ({"expression": "|".join(f"x{j}&0" for j in range(20)), "context_length": 20}, "at most 16"),
    ],
)
def test_what_is_too_large_or_no_construction_is_refused(change, advice):
    with pytest.raises(ValueError, match=advice):
        build(MAJORITY | change)


@pytest.mark.parametrize("bits", ["", "0101", "0101010x", "٠" * 8])
def test_an_input_is_as_many_bits_as_the_context(bits):
    with pytest.raises(ValueError, match="must be 8 characters"):
        attend(MAJORITY | {"bits": bits})
