import functools
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genscope import bounds
from tests.checkpoints import dense, files
from tests.checkpoints.files import HEADS, LAYERS, save
from tests.cli.program import invoke


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The order form in place of the explicit one, whose thousands of small calls are slow when types are checked."""
    monkeypatch.setattr(bounds, "heads", functools.partial(bounds.heads, form="order"))


@pytest.fixture
def model(directory):
    """A BERT with its config."""
    (directory / "config.json").write_text(json.dumps({"num_attention_heads": HEADS, "model_type": "bert"}))
    return save(directory / "model.safetensors", files.bert(files.draw()))


def test_norms_of_every_head_are_printed(model, call_json):
    facts = call_json("checkpoint", model)
    assert (facts["architecture"], facts["dimension"]) == ("BERT", files.D)
    assert [layer["layer"] for layer in facts["layers"]] == list(range(LAYERS))
    for layer, packed in zip(facts["layers"], files.draw(), strict=True):
        assert [head["head"] for head in layer["heads"]] == list(range(HEADS))
        for name, expected in zip(("value", "query_key"), dense.layer_norms(packed), strict=True):
            for row, norm in zip(expected, ("spectral", "frobenius", "two_one", "two_one_transposed"), strict=True):
                np.testing.assert_allclose([head[name][norm] for head in layer["heads"]], row, rtol=1e-12)
    assert facts["embedding_norms"]["position"] == pytest.approx(files.D**0.5)
    assert any("residual" in part for part in facts["left_out"])


def test_bounds_of_every_layer_are_printed(model, call_json):
    found = call_json("checkpoint", model, "--samples", 1000, "--context-length", 20)["bounds"]
    assert (found["explicit"], found["samples"], found["context_length"], found["epsilon"]) == (True, 1000, 20, 0.5)
    assert [layer["layer"] for layer in found["layers"]] == list(range(LAYERS))
    covers = [layer["log_cover"] for layer in found["layers"]]
    assert found["largest"]["layer"] == covers.index(max(covers))
    assert found["largest"]["by_samples"][0]["log_cover"] == max(covers)


def test_the_tables_say_what_is_left_out(model, call):
    told = " ".join(call("checkpoint", model).stdout.split())
    for part in ("BERT (bert), 3 layers of 4 heads", "query-key (2,1)", "layer norm", "biases", "7 tokens", "explicit"):
        assert part in told


@pytest.fixture
def gemma(directory):
    """The directory of a model of text and images: two shards, and a config whose text part leaves out defaults."""
    place = directory / "gemma"
    place.mkdir()
    tensors = files.llama(files.draw(heads=8, groups=4), "language_model.model.", more=files.FOUR_NORMS)
    seen = {name.replace("encoder.layer", "vision.layers"): t for name, t in files.bert(files.draw()).items()}
    for number, part in enumerate((tensors, seen), start=1):
        save(place / f"model-0000{number}-of-00002.safetensors", part)
    described = {"model_type": "gemma2", "query_pre_attn_scalar": 144, "num_hidden_layers": LAYERS}
    (place / "config.json").write_text(json.dumps({"model_type": "paligemma", "text_config": described}))
    return place


def test_a_directory_is_enough(gemma, call, call_json):
    facts = call_json("checkpoint", gemma, "--samples", 1000)
    assert (facts["architecture"], facts["model_type"], facts["prefix"]) == ("LLaMA", "gemma2", "language_model.model.")
    assert [len(layer["heads"]) for layer in facts["layers"]] == [8] * LAYERS
    assert facts["bounds"]["withheld"] == []
    for number, layer in enumerate(facts["bounds"]["layers"]):
        gain = 1 + files.norm(number, bias=False)["weight"].astype(float)
        assert layer["input_norm"] == pytest.approx(files.D**0.5 * np.abs(gain).max(), rel=1e-12)
        assert layer["score_scale"] == pytest.approx(1 / 12)
        assert layer["log_cover"] > 0
    told = call("checkpoint", gemma).stdout
    assert "LLaMA (gemma2), 3 layers of 8 heads" in told
    assert "soft-capping" in told


@pytest.mark.parametrize("model_type", ["brand\x1bnew", None])
def test_a_model_that_is_not_known_gets_norms_the_reason_and_no_bounds(gemma, call, call_json, model_type):
    described = {"num_attention_heads": 8, "model_type": model_type}
    (gemma / "config.json").write_text(json.dumps({"text_config": described}))
    facts = call_json("checkpoint", gemma)
    (reason,) = facts["bounds"]["withheld"]
    assert "names of LLaMA" in reason
    assert facts["layers"][0]["heads"][0]["query_key"]["spectral"] > 0
    assert {layer["log_cover"] for layer in facts["bounds"]["layers"]} == {None}
    told = " ".join(call("checkpoint", gemma).stdout.split())
    assert "value spectral" in told
    assert f"No bounds are given: - {reason}" in told
    assert "rotary" in told
    assert not any(word in told for word in ("explicit", "excess error", "\x1b"))


def test_layers_whose_tokens_are_not_bounded_have_no_bound(directory, call, call_json):
    path = save(directory / "x.safetensors", files.torch_encoder(files.draw()))
    first, second = call_json("checkpoint", path, "--heads", HEADS)["bounds"]["layers"][:2]
    assert first["input_norm"] is None
    assert first["log_cover"] is None
    assert second["log_cover"] > 0
    assert "--input-norm" in call("checkpoint", path, "--heads", HEADS).stdout
    given = call_json("checkpoint", path, "--heads", HEADS, "--input-norm", 2)["bounds"]["layers"]
    assert [layer["input_norm"] for layer in given] == [2.0] * LAYERS


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_norms_are_drawn(model, call, directory, suffix):
    call("checkpoint", model, "--plot", f"norms.{suffix}")
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[suffix]
    assert (directory / f"norms.{suffix}").read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--heads", "5"], "--heads"),
        (["--heads", "0"], "number of query heads"),
        (["--config", "absent.json"], "Give the path of such a file"),
        (["--samples", "0"], "samples=0: it must be a whole number"),
        (["--context-length", "0"], "context_length=0: it must be"),
        (["--epsilon", "0"], "epsilon=0.0: it must be a finite number above 0"),
        (["--epsilon", "nan"], "epsilon"),
        (["--input-norm", "-1"], "0 or more. Change it"),
        (["--input-norm", "nan"], "input_norm"),
        (["--plot", "norms.gif"], "must end in .svg"),
        (["--plot", "no/where.svg"], "create the directory first"),
    ],
)
def test_requests_that_make_no_sense(model, refused, options, advice):
    assert advice in refused("checkpoint", model, *options)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04rest of an archive", b"\x80\x04\x95garbage", files.pack(b'{"a": ')]
)
def test_hostile_files_are_refused(directory, refused, content):
    (directory / "model.safetensors").write_bytes(content)
    assert "model.safetensors" in refused("checkpoint", "model.safetensors")


def test_weights_that_are_no_numbers_are_refused(directory, refused):
    tensors = files.bert(files.draw())
    tensors["encoder.layer.1.attention.self.key.weight"][2, 3] = np.nan
    save(directory / "model.safetensors", tensors)
    assert "the keys of layer 1 contain NaN or infinity" in refused("checkpoint", "model.safetensors", "--heads", HEADS)


WHOLE = files.pack(
    files.header_of(small := files.vit(files.draw(layers=1))), b"".join(t.tobytes() for t in small.values())
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 9), st.binary(max_size=6)), max_size=3),
    st.sampled_from([[], ["--heads", "4"], ["--heads", "6"], ["--config", "model.safetensors"]]),
)
def test_mutated_files_never_show_a_traceback(directory, changes, options):
    content = WHOLE
    for place, length, new in changes:
        content = content[:place] + new + content[place + length :]
    (directory / "model.safetensors").write_bytes(content)
    result = invoke("checkpoint", "model.safetensors", *options)
    assert result.exit_code in (0, 2)
    assert result.exit_code == 0 or result.stderr.startswith("genscope: ")
