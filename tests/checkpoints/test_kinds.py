"""The constants of a bound against what each kind of model computes."""

import functools
import json
import math
import re

import numpy as np
import pytest

from genscope import bounds
from genscope.checkpoints import CapacityQuestion, bound_capacity, layer_norms, open_model
from tests.checkpoints import dense, files, forward
from tests.checkpoints.files import FOUR_NORMS, HEADS, LAYERS, D, K, save

LAYER = 1
PHI = ("self_attn.dense.bias", "mlp.fc1.weight")
LLAMA = functools.partial(files.llama, bias=False)
BIASED = functools.partial(files.llama, bias=True)
# What a kind is packed with, and what its config says besides model_type and heads.
KINDS = {
    "bert": (files.bert, {}),
    "roberta": (files.roberta, {}),
    "gpt2": (files.gpt2, {}),
    "nanogpt": (files.nanogpt, {"model_type": None}),
    "vit": (files.vit, {"model_type": None, "architecture": "vit_base_patch16_224"}),
    "torch": (files.torch_encoder, {"model_type": None}),
    "gpt_neox": (files.neox, {"rotary_pct": 0.25, "use_parallel_residual": True}),
    "llama": (LLAMA, {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}),
    "mistral": (LLAMA, {"num_key_value_heads": 2, "sliding_window": 4}),
    "mixtral": (functools.partial(LLAMA, more=("block_sparse_moe.gate.weight",)), {}),
    "qwen2": (LLAMA, {"num_key_value_heads": 2, "rope_scaling": None}),
    "qwen2_moe": (LLAMA, {}),
    "gemma": (LLAMA, {"num_key_value_heads": 1}),
    "gemma2": (functools.partial(LLAMA, more=FOUR_NORMS), {"query_pre_attn_scalar": 144, "num_key_value_heads": 2}),
    "phi": (functools.partial(BIASED, more=PHI), {"partial_rotary_factor": 0.5}),
    "stablelm": (BIASED, {"partial_rotary_factor": 0.25}),
    "starcoder2": (BIASED, {"num_key_value_heads": 2}),
    "cohere": (LLAMA, {}),
    "granite": (LLAMA, {"attention_multiplier": 0.0078125, "embedding_multiplier": 12.0}),
    "nemotron": (BIASED, {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}),
}


@pytest.fixture
def read(tmp_path):
    """A file of a kind with its config: its model, tensors and config; `as_kind` is what the config calls it."""

    def read(kind, as_kind=None, **more):
        pack, config = KINDS[kind]
        config = {"model_type": kind, "num_attention_heads": HEADS, **config, **more}
        tensors = pack(files.draw(groups=config.get("num_key_value_heads", HEADS)))
        (tmp_path / "config.json").write_text(json.dumps(config | ({"model_type": as_kind} if as_kind else {})))
        return open_model(save(tmp_path / "model.safetensors", tensors)), tensors, config

    return read


def agrees(model, tensors, config, kind):
    """Whether scores are the scaled map of the heads, and how the longest token compares with the bound on it."""
    stream = np.concatenate([1e4 * np.eye(D), -1e4 * np.eye(D), np.random.default_rng(1).normal(size=(50, D)) ** 3])
    heads, scale = model.heads(LAYER), model.score_scale(LAYER)
    fits = True
    for head in range(HEADS):
        tokens, scores = forward.tokens_and_scores(kind, tensors, config, LAYER, head, stream)
        query, key = heads.query[head].astype(float), heads.key[head * len(heads.key) // HEADS].astype(float)
        fits = fits and np.allclose(scores, scale * (tokens @ query @ key.T @ tokens.T), rtol=1e-9, atol=1e-6)
    return fits, np.linalg.norm(tokens, axis=1).max() / model.input_norm(LAYER)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_tokens_are_those_of_the_model(read, kind):
    model, tensors, config = read(kind)
    assert model.doubts() == ()
    fits, share = agrees(model, tensors, config, kind)
    assert fits
    if kind in forward.MEANLESS:  # one coordinate may hold all of a token
        assert share == pytest.approx(1, rel=1e-9)
    else:  # nearly all, and a bias may point elsewhere
        assert 0.5 < share < 1


@pytest.mark.parametrize(("kind", "other"), [("gemma", "llama"), ("gemma2", "gemma"), ("granite", "llama")])
def test_a_model_read_as_another_would_be_seen(read, kind, other):
    model, tensors, config = read(kind, as_kind=other)
    fits, share = agrees(model, tensors, config, kind)
    assert not fits or share != pytest.approx(1, rel=1e-3)


def test_the_bound_of_a_gemma_has_the_constants_of_its_forward_pass(read, monkeypatch):
    """By dense norms, the factor found between map and scores, and the longest token found by trying."""
    monkeypatch.setattr(bounds, "heads", functools.partial(bounds.heads, form="order"))
    model, tensors, config = read("gemma2")
    norms = [layer_norms(model.heads(layer)) for layer in range(LAYERS)]
    found = bound_capacity(model, norms, CapacityQuestion(50, 4, 2.0))
    packed = files.draw(groups=2)[LAYER]
    value, query_key = dense.layer_norms(packed)
    tokens, scores = forward.tokens_and_scores("gemma2", tensors, config, LAYER, 0, 1e4 * np.eye(D))
    longest = np.linalg.norm(tokens, axis=1).max()
    factor = scores[0, 1] / (tokens[0] @ packed.query[0].astype(float) @ packed.key[0].T @ tokens[1])
    cover = bounds.heads(
        value_21=value[2].tolist(),
        value_spectral=value[0].tolist(),
        query_key_21=(factor * np.minimum(query_key[2], query_key[3])).tolist(),
        input_norm=longest,
        context_norm=longest,
        width=K,
        dimension=D,
        epsilon=2.0,
        points=2 * 50 * 4,
    )
    row = found["layers"][LAYER]
    assert row["score_scale"] == pytest.approx(factor, rel=1e-9) == pytest.approx(1 / 12)
    assert row["input_norm"] == pytest.approx(longest, rel=1e-9)
    assert row["log_cover"] == pytest.approx(cover.value, rel=1e-6)
    assert (found["explicit"], found["withheld"]) == (True, [])


def test_a_soft_cap_keeps_scores_as_close_as_they_were():
    scores = np.random.default_rng(0).normal(size=(2, 1000)) * 100
    for cap in (50.0, 0.3):
        first, second = cap * np.tanh(scores / cap)
        assert (np.abs(first - second) <= np.abs(scores[0] - scores[1])).all()


@pytest.mark.parametrize(
    ("kind", "more", "factor"),
    [
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True, "scale_attn_weights": False}, 0.5),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, 0.5 / math.sqrt(K)),
        ("gemma2", {"query_pre_attn_scalar": 256}, 1 / 16),
        ("gemma", {"query_pre_attn_scalar": 256}, 1 / math.sqrt(K)),  # the first does not read it
        ("granite", {"attention_multiplier": 1}, 1.0),
    ],
)
def test_what_a_config_says_of_scores(read, kind, more, factor):
    assert read(kind, **more)[0].score_scale(LAYER) == pytest.approx(factor)


def test_what_a_config_leaves_out_is_the_models_default(tmp_path):
    (tmp_path / "config.json").write_text('{"text_config": {"model_type": "gemma2"}}')
    layers = files.draw(heads=8, groups=4)
    model = open_model(save(tmp_path / "model.safetensors", files.llama(layers, "language_model.model.")))
    assert model.score_scale(0) == 1 / 16
    assert len(model.heads(0).query) == 8


@pytest.mark.parametrize("wrong", [0, -1, "144", None, True, 10**400, [144]])
def test_a_factor_that_is_none_is_refused(read, wrong):
    model = read("gemma2", query_pre_attn_scalar=wrong)[0]
    with pytest.raises(ValueError, match=r"query_pre_attn_scalar as .* finite number above 0. Pass the model's own"):
        model.score_scale(0)


DOUBTS = {
    "an unknown kind": (
        "llama",
        {"model_type": "olmo9"},
        (),
        "calls it 'olmo9': .*names of LLaMA.*Known are llama, mistral",
    ),
    "no kind": ("llama", {"model_type": None}, (), r"no config.json says which .*--config"),
    "no word": ("llama", {"model_type": ["llama"]}, (), "calls it .'llama'.:"),
    "a kind of another layout": ("llama", {"model_type": "bert"}, (), "calls it 'bert'"),
    "a kind where none is named": ("vit", {"model_type": "qwen2_vl"}, (), "Known are models whose config names none"),
    "code of its own": ("bert", {"auto_map": {"AutoModel": "a.b"}}, (), "auto_map"),
    "normed queries": ("qwen2", {"model_type": "qwen3"}, files.NORMED, "normalizes queries and keys"),
    "Gemma 3": ("gemma2", {"model_type": "gemma3_text"}, files.NORMED, "normalizes queries and keys"),
    "normed heads": ("stablelm", {}, ("self_attn.q_layernorm.norms.0.weight",), "normalizes queries and keys"),
    "sinks": ("llama", {}, ("self_attn.sinks",), "not known here: 'self_attn.sinks'$"),
    "four norms": ("llama", {}, FOUR_NORMS, "'post_feedforward_layernorm.weight', 'pre_feedforward_layernorm.weight'"),
    "adapters": ("llama", {}, [f"self_attn.q_proj.lora_{x}.weight" for x in "ABCDE"], "and 2 more"),
    "distances": ("bert", {}, ("attention.self.distance_embedding.weight",), "distance_embedding"),
    "norms before": ("bert", {}, ("attention.ln.weight", "ln.weight"), "'attention.ln.weight', 'ln.weight'"),
    "relative": ("bert", {"position_embedding_type": "relative_key"}, (), "positions enter its scores"),
    "slopes": ("bert", {"position_embedding_type": "alibi"}, (), "'alibi'"),
    "other text": ("gpt2", {}, ("crossattention.c_attn.weight",), "crossattention"),
    "a temperature": ("vit", {}, ("attn.temperature",), "attn.temperature"),
    "relative in images": ("vit", {}, ("attn.relative_position_bias_table",), "relative_position_bias_table"),
    "norms after": ("vit", {"architecture": "vit_base_patch16_rpn_224"}, (), "norms before the attention"),
    "another vision": ("vit", {"architecture": "xcit_nano"}, (), "calls it 'xcit_nano'"),
    "a decoder": ("torch", {}, ("multihead_attn.in_proj_weight", "norm3.weight"), "multihead_attn.in_proj_weight"),
    "bias tokens": ("torch", {}, ("self_attn.bias_k",), "self_attn.bias_k"),
    "YaRN": ("qwen2", {"rope_scaling": {"type": "yarn", "factor": 4.0}}, (), "'yarn' may stretch"),
    "LongRoPE": ("gpt_neox", {"rope_parameters": {"rope_type": "longrope"}}, (), "'longrope' may stretch"),
    "by layer": ("gemma2", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, (), "'yarn' may stretch"),
    "no kind of rope": ("llama", {"rope_scaling": {"rope_type": []}}, (), "may stretch"),
}


@pytest.mark.parametrize("case", DOUBTS)
def test_what_is_not_known_has_no_bounds(tmp_path, case):
    kind, more, names, reason = DOUBTS[case]
    pack, config = KINDS[kind]
    tensors = pack(files.draw())
    layer = {"bert": "encoder.layer.2.", "gpt2": "transformer.h.2.", "vit": "blocks.2.", "torch": "encoder.layers.2."}
    tensors |= files.others(layer.get(kind, "model.layers.2."), *names)
    config = {"model_type": kind, **config, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, **more}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = open_model(save(tmp_path / "model.safetensors", tensors))
    (said,) = model.doubts()
    assert re.search(reason, said)
    norms = [layer_norms(model.heads(number)) for number in range(LAYERS)]
    found = bound_capacity(model, norms, CapacityQuestion(10, 4, input_norm=1.0))
    assert found["withheld"] == [said]
    assert found["largest"] is None
    assert {row["log_cover"] for row in found["layers"]} == {None}
