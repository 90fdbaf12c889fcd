import json
import math

import ml_dtypes
import numpy as np
import pytest

from genscope.checkpoints import open_model, query_key_norms, value_norms
from tests.checkpoints import dense, files
from tests.checkpoints.files import HEADS, LAYERS, D, K, save


@pytest.fixture
def write(tmp_path):
    """A checkpoint in a directory, with or without a config."""

    def write(tensors, config=None):
        if config is not None:
            (tmp_path / "config.json").write_text(json.dumps(config))
        return save(tmp_path / "model.safetensors", tensors)

    return write


def check(model, layers):
    assert model.layers == len(layers)
    for number, layer in enumerate(layers):
        value, query_key = dense.layer_norms(layer)
        np.testing.assert_allclose(np.stack(value_norms(model.heads(number))), value, rtol=1e-12)
        np.testing.assert_allclose(np.stack(query_key_norms(model.heads(number))), query_key, rtol=1e-12)


@pytest.mark.parametrize("layout", files.LAYOUTS)
def test_every_layout_gives_the_heads_that_were_packed(write, layout):
    layers = files.draw()
    model = open_model(write(files.LAYOUTS[layout](layers)), heads=HEADS)
    assert model.layout.architecture == layout.removesuffix(" with a prefix")
    check(model, layers)


@pytest.mark.parametrize("layout", ["GPT-2", "nanoGPT", "GPT-NeoX", "BERT"])
def test_a_wrong_number_of_heads_would_be_seen(write, layout):
    layers = files.draw()
    model = open_model(write(files.LAYOUTS[layout](layers)), heads=HEADS // 2)
    assert model.heads(0).query.shape == (HEADS // 2, D, 2 * K)
    assert value_norms(model.heads(0)).spectral[0] != pytest.approx(dense.layer_norms(layers[0])[0][0, 0], rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, files.BFLOAT16])
def test_every_stored_type_is_read_exactly(write, dtype):
    layers = files.draw(dtype=dtype)
    check(open_model(write(files.llama(layers)), heads=HEADS), layers)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_grouped_heads_share_keys_and_values(write, groups):
    layers = files.draw(dimension=20, groups=groups)  # tokens are not as wide as all heads together
    tensors = files.llama(layers)
    check(open_model(write(tensors), heads=HEADS), layers)
    config = {"num_attention_heads": HEADS, "num_key_value_heads": groups, "head_dim": K, "model_type": "mistral"}
    check(open_model(write(tensors, config)), layers)


def test_the_head_count_comes_from_the_config_given_or_beside(write, tmp_path):
    path = write(files.bert(files.draw()), {"num_attention_heads": HEADS, "max_position_embeddings": 512})
    assert open_model(path).stack.heads == HEADS
    assert open_model(path).context_length() == 512
    assert open_model(path, heads=2).stack.heads == 2
    other = tmp_path / "other.json"
    other.write_text('{"n_head": 3, "n_layer": 3}')
    assert open_model(path, config=other).stack.heads == 3
    assert open_model(path, config=other).context_length() == 7  # rows of the table of positions


def test_shards_make_one_model(tmp_path):
    layers = files.draw()
    tensors = files.llama(layers)
    names = list(tensors)
    parts = {"1.safetensors": names[::2], "2.safetensors": names[1::2]}
    for shard, held in parts.items():
        save(tmp_path / shard, {name: tensors[name] for name in held})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: shard for shard, held in parts.items() for name in held}}))
    check(open_model(index, heads=HEADS), layers)
    with pytest.raises(ValueError, match="no attention layers"):
        open_model(tmp_path / "1.safetensors", heads=HEADS)


def test_the_norm_before_a_layer_bounds_its_tokens(write):
    """By trying the worst direction: all of the token in the coordinate of the largest gain."""
    model = open_model(write(files.gpt2(files.draw())), heads=HEADS)
    parts = files.norm(1)
    bound = model.input_norm(1)
    gain, bias = parts["weight"].astype(float), parts["bias"].astype(float)
    assert bound == pytest.approx(math.sqrt(D) * np.abs(gain).max() + math.sqrt((bias**2).sum()), rel=1e-12)
    tokens = np.random.default_rng(0).normal(size=(1000, D)) ** 3
    normal = (tokens - tokens.mean(1, keepdims=True)) / tokens.std(1, keepdims=True)
    assert np.linalg.norm(normal * gain + bias, axis=1).max() <= bound


def test_which_norm_feeds_a_layer(write):
    def bound(seed, bias=True):
        made = files.norm(seed, bias=bias)
        shift = np.linalg.norm(made["bias"].astype(float)) if bias else 0
        return pytest.approx(math.sqrt(D) * np.abs(made["weight"]).max() + shift, rel=1e-6)

    layers = files.draw()
    bert = open_model(write(files.bert(layers)), heads=HEADS)
    assert [bert.input_norm(i) for i in range(LAYERS)] == [bound(0), bound(1), bound(2)]
    nano = open_model(write(files.nanogpt(layers)), heads=HEADS)
    assert nano.input_norm(2) == bound(2, bias=False)
    torch = open_model(write(files.torch_encoder(layers)), heads=HEADS)
    assert torch.input_norm(0) is None
    assert torch.input_norm(1) in (bound(1), bound(50))
    for norm in ("norm1", "norm2"):
        assert torch._norm_bound(f"layers.{1 if norm == 'norm1' else 0}.{norm}") <= torch.input_norm(1)
    bare = {name: tensor for name, tensor in files.gpt2(layers).items() if "ln_1" not in name}
    assert open_model(write(bare), heads=HEADS).input_norm(0) is None
    old = {
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): t
        for name, t in files.bert(layers).items()
    }
    assert open_model(write(old), heads=HEADS).input_norm(1) == bound(1)


def test_embedding_norms(write):
    found = open_model(write(files.bert(files.draw())), heads=HEADS).embedding_norms()
    last = np.arange(4 * D, 5 * D, dtype=float)
    assert found == {"token": pytest.approx(math.sqrt((last**2).sum())), "position": pytest.approx(math.sqrt(D))}
    assert open_model(write(files.vit(files.draw())), heads=HEADS).embedding_norms()["class"] == pytest.approx(D**0.5)


def test_the_scale_of_scores(write):
    path = write(files.gpt2(files.draw()), {"n_head": HEADS})
    assert open_model(path).score_scale(1) == 1 / math.sqrt(K)
    by_layer = {"n_head": HEADS, "scale_attn_by_inverse_layer_idx": True, "scale_attn_weights": False}
    assert open_model(write(files.gpt2(files.draw()), by_layer)).score_scale(1) == 0.5
    assert open_model(write(files.vit(files.draw())), heads=HEADS).score_scale(2) == 1 / math.sqrt(K)


def test_what_is_left_out_is_said(write):
    tensors = files.llama(files.draw())
    path = write(tensors, {"num_attention_heads": HEADS, "model_type": "llama"})
    said = " ".join(open_model(path).left_out())
    assert all(word in said for word in ("rotary", "grouped", "biases", "layer norm", "residual", "output projection"))
    assert "distinguishes" not in said
    path = write(tensors, {"num_attention_heads": HEADS, "model_type": "gemma2"})
    assert "'gemma2'" in open_model(path).left_out()[0]
    normed = tensors | {"model.layers.0.self_attn.q_norm.weight": np.ones(K, np.float32)}
    assert "norms of queries and keys" in open_model(write(normed)).left_out()[0]


def without(tensors, part):
    return {name: tensor for name, tensor in tensors.items() if part not in name}


@pytest.mark.parametrize(
    ("change", "heads", "advice"),
    [
        (lambda t: {"a.b": np.ones((2, 2), np.float32)}, 4, r"'a.b' \[2, 2\]\. Known are BERT, GPT-2"),
        (lambda t: {}, 4, "first are none. Known are"),
        (lambda t: without(t, "layers.1.self_attn.q"), 4, "up to number 2.*index.json"),
        (
            lambda t: without(t, "layers.2.self_attn.k"),
            4,
            "no weight model.layers.2.self_attn.k_proj.weight.*index.json",
        ),
        (lambda t: t | {f"b.{name}": tensor for name, tensor in t.items()}, 4, "a file of its own"),
        (lambda t: t | files.vit(files.draw()), 4, "LLaMA under 'model.', ViT under ''"),
        (lambda t: t, 5, "config.json by --config"),
        (lambda t: t, 24, "config.json by --config"),
        (lambda t: t, 0, "Give the model's number of query heads"),
        (lambda t: t, None, "--heads N"),
        (lambda t: t | {"model.layers.1.self_attn.v_proj.weight": np.ones(4, np.float32)}, 4, "two axes"),
        (lambda t: t | {"model.layers.1.self_attn.v_proj.weight": np.array(1.0)}, 4, "two axes"),
        (
            lambda t: t | {"model.layers.1.self_attn.v_proj.weight": np.ones((0, D), np.float32)},
            4,
            "neither of them empty",
        ),
        (lambda t: t | {"model.layers.1.self_attn.v_proj.weight": np.ones((12, D), np.int64)}, 4, "stored as int64"),
        (
            lambda t: t | {"model.layers.1.self_attn.q_proj.weight": np.ones((12, D), ml_dtypes.float8_e4m3fn)},
            4,
            "stored as float8_e4m3fn.*Convert the model",
        ),
    ],
)
def test_models_that_make_no_sense_are_refused(write, change, heads, advice):
    path = write(change(files.llama(files.draw())))
    with pytest.raises(ValueError, match=advice):  # noqa: PT012
        model = open_model(path, heads=heads)
        for layer in range(model.layers):
            value_norms(model.heads(layer))


@pytest.mark.parametrize(
    ("config", "advice"),
    [
        ({"num_attention_heads": "4"}, "a whole number"),
        ({"num_attention_heads": 0}, "a whole number"),
        ({"num_attention_heads": True}, "a whole number"),
        ({"num_attention_heads": 10**40}, "a whole number"),
        ({"num_attention_heads": 4, "num_hidden_layers": 32}, "holds 3 layers and its config speaks of 32"),
        ({"num_attention_heads": 4, "num_key_value_heads": 3}, "Give the model's own config.json"),
        ({"num_attention_heads": 4, "head_dim": 64}, "Give the model's own config.json"),
        ({"hidden_size": 12}, "--heads N"),
    ],
)
def test_configs_that_do_not_fit_are_refused(write, config, advice):
    path = write(files.llama(files.draw()), config)
    with pytest.raises(ValueError, match=advice):
        open_model(path).heads(0)


@pytest.mark.parametrize(("layout", "heads"), [("GPT-NeoX", 5), ("ViT", 5)])
def test_heads_that_do_not_divide_a_fused_weight_are_refused(write, layout, heads):
    model = open_model(write(files.LAYOUTS[layout](files.draw())), heads=heads)
    with pytest.raises(ValueError, match="by --heads"):
        model.heads(0)


def test_a_fused_weight_has_three_parts(write):
    tensors = files.vit(files.draw()) | {"blocks.1.attn.qkv.weight": np.ones((16, D), np.float32)}
    with pytest.raises(ValueError, match="a multiple of 3"):
        open_model(write(tensors), heads=HEADS).heads(1)
