import functools
import json
import math

import numpy as np
import pytest

from genscope import bounds
from genscope.checkpoints import CapacityQuestion, bound_capacity, layer_norms, open_model, theorem_layer
from genscope.checkpoints.capacity import TARGET
from tests.checkpoints import dense, files
from tests.checkpoints.files import LAYERS, D, K, save


@pytest.fixture
def quick(monkeypatch):
    """The order form in place of the explicit one, whose thousands of small calls are slow when types are checked."""
    monkeypatch.setattr(bounds, "heads", functools.partial(bounds.heads, form="order"))


@pytest.fixture
def read(tmp_path):
    """A model in GPT-2's layout, or what another config makes of it."""

    def read(tensors, **config):
        (tmp_path / "config.json").write_text(json.dumps(files.config("GPT-2", **config)))
        return open_model(save(tmp_path / "x.safetensors", tensors))

    return read


@pytest.fixture
def model(read):
    return read(files.gpt2(files.draw()))


@pytest.fixture
def norms(model):
    return [layer_norms(model.heads(layer)) for layer in range(model.layers)]


def test_the_theorem_gets_the_scaled_maps(model, norms):
    """From dense norms, with the scale of the scores and the better of both orientations."""
    layer = theorem_layer(model, 1, norms[1], input_norm=3.0)
    value, query_key = dense.layer_norms(files.draw()[1])
    np.testing.assert_allclose(layer.value_spectral, value[0])
    np.testing.assert_allclose(layer.value_21, value[2])
    np.testing.assert_allclose(layer.query_key_21, np.minimum(query_key[2], query_key[3]) / math.sqrt(K))
    assert (layer.input_norm, layer.context_norm, layer.width, layer.dimension) == (3.0, 3.0, K, D)


def test_the_bound_is_that_of_the_library(model, norms):
    layer = theorem_layer(model, 0, norms[0], input_norm=model.input_norm(0))
    cover = bounds.heads(**layer._asdict(), epsilon=2.0, points=400)
    found = layer.capacity(CapacityQuestion(50, 4, 2.0))
    assert found["log_cover"] == cover.value
    assert found["excess_error"] == pytest.approx(math.sqrt(8 / 50 * (cover.value + math.log(2 / 0.05))))
    assert found["vacuous"] is cover.explicit is True


def test_every_layer_is_bounded_by_its_own_tokens(quick, model, norms):
    setting = CapacityQuestion(50, 4, 2.0)
    facts = bound_capacity(model, norms, setting)
    for number, row in enumerate(facts["layers"]):
        layer = theorem_layer(model, number, norms[number], input_norm=model.input_norm(number))
        own = {"layer": number, "input_norm": layer.input_norm, "score_scale": 1 / math.sqrt(K)}
        assert row == own | layer.capacity(setting)


def test_either_orientation_covers_the_scores(model, norms):
    """A transposed map has the same class of scores, with tokens and contexts exchanged."""
    layer, turned = norms[0], norms[0].query_key
    turned = turned._replace(two_one=turned.two_one_transposed, two_one_transposed=turned.two_one)
    assert theorem_layer(model, 0, layer, input_norm=1.0) == theorem_layer(
        model, 0, layer._replace(query_key=turned), input_norm=1.0
    )


@pytest.mark.parametrize("epsilon", [0.5, 50.0, 1e4])
@pytest.mark.parametrize("context_length", [1, 300])
def test_the_sample_size_is_enough_and_hardly_less_is(quick, model, norms, epsilon, context_length):
    layer = theorem_layer(model, 0, norms[0], input_norm=model.input_norm(0))
    found = layer.sample_size(CapacityQuestion(1, context_length, epsilon))
    assert layer.capacity(CapacityQuestion(found, context_length, epsilon))["excess_error"] <= TARGET
    assert layer.capacity(CapacityQuestion(math.floor(found / 1.003), context_length, epsilon))["excess_error"] > TARGET


def test_curves_show_the_logarithms(quick, model, norms):
    largest = bound_capacity(model, norms, CapacityQuestion(10**20, 16))["largest"]
    covers = [row["log_cover"] for row in largest["by_samples"]]
    assert covers == sorted(covers)
    steps = np.diff(covers)
    np.testing.assert_allclose(steps, steps[0], rtol=0.02)  # log covering number: affine in log samples
    sizes = [row["sample_size"] for row in largest["by_context_length"]]
    assert sizes == sorted(sizes)
    assert sizes[-1] < 2 * sizes[0]  # ten thousand times the tokens


def test_a_norm_that_is_given_replaces_those_of_the_file(quick, model, norms):
    facts = bound_capacity(model, norms, CapacityQuestion(10, 4, input_norm=0.0))
    assert [row["log_cover"] for row in facts["layers"]] == [0.0] * LAYERS
    assert {row["input_norm"] for row in facts["layers"]} == {0.0}


def test_no_layer_need_have_a_bound(read):
    model = read({name: tensor for name, tensor in files.gpt2(files.draw()).items() if "ln_1" not in name})
    norms = [layer_norms(model.heads(layer)) for layer in range(model.layers)]
    facts = bound_capacity(model, norms, CapacityQuestion(10, 4))
    assert facts["largest"] is None
    assert facts["withheld"] == []
    assert [row["log_cover"] for row in facts["layers"]] == [None] * LAYERS


def test_a_model_of_unknown_arithmetic_has_norms_and_no_bound(read, norms):
    """Not even for tokens of known length: what multiplies the scores is not known either."""
    model = read(files.gpt2(files.draw()), model_type="openai-gpt")
    assert layer_norms(model.heads(0)).value.spectral.tolist() == norms[0].value.spectral.tolist()
    facts = bound_capacity(model, norms, CapacityQuestion(10, 4, input_norm=1.0))
    assert "'openai-gpt'" in facts["withheld"][0]
    assert (facts["explicit"], facts["largest"]) == (None, None)
    for row in facts["layers"]:
        assert {row[name] for name in ("log_cover", "excess_error", "vacuous", "score_scale")} == {None}
    with pytest.raises(
        ValueError, match=r"no bound applies to this model: its config calls it 'openai-gpt'.*its norms are available"
    ):
        theorem_layer(model, 0, norms[0], input_norm=1.0)


def test_norms_of_any_size_give_bounds_or_none(quick, read):
    for size in (1e-290, 1e140):
        layers = [files.Maps(*([size * matrix for matrix in part] for part in files.draw(dtype=np.float64)[0]))]
        model = read(files.gpt2(layers))
        found = bound_capacity(model, [layer_norms(model.heads(0))], CapacityQuestion(10, 4))
        assert found["layers"][0]["log_cover"] == (0.0 if size < 1 else math.inf)
        assert (found["largest"]["by_context_length"][0]["sample_size"] is None) == (size > 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": 0},
        {"samples": 10**101},
        {"context_length": -1},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"input_norm": -1.0},
        {"input_norm": math.nan},
    ],
)
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=f"got {next(iter(wrong))}=.*: it must be .*Change it"):
        CapacityQuestion(**({"samples": 10, "context_length": 4} | wrong))


def test_curves_end_where_numbers_do(quick, model, norms):
    largest = bound_capacity(model, norms, CapacityQuestion(10**98, 10**100))["largest"]
    assert (len(largest["by_samples"]), len(largest["by_context_length"])) == (2, 1)
