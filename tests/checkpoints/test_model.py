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


@pytest.mark.parametrize(
    ("model_type", "more", "length"),
    [
        ("bert", {}, 7),
        ("roberta", {}, 5),
        ("roberta", {"pad_token_id": None}, 5),
        ("xlm-roberta", {"pad_token_id": 3}, 3),
        ("camembert", {"pad_token_id": 1, "max_position_embeddings": 514}, 512),
    ],
)
def test_roberta_begins_to_count_after_its_padding(write, model_type, more, length):
    path = write(files.bert(files.draw()), files.config("BERT", model_type=model_type, **more))
    assert open_model(path).context_length() == length


@pytest.mark.parametrize(("model_type", "heads"), [("gemma2", 8), ("gemma3_text", 8), ("gemma", 16), ("llama", 32)])
def test_heads_that_a_config_leaves_out_are_those_of_its_kind(write, model_type, heads):
    """As in text_config, which holds what differs from the defaults only."""
    layers = files.draw(heads=heads, groups=heads // 2)
    described = {"model_type": "some", "text_config": {"model_type": model_type, "num_hidden_layers": LAYERS}}
    model = open_model(write(files.llama(layers, "language_model.model."), described))
    assert (model.stack.heads, model.stack.prefix) == (heads, "language_model.model.")
    check(model, layers)


def test_of_several_stacks_the_one_that_the_config_describes_is_read(write):
    layers = files.draw(dimension=20)
    tensors = files.llama(layers) | files.vit(files.draw(layers=2))
    sizes = {"num_attention_heads": HEADS, "num_hidden_layers": LAYERS}
    for described in (sizes, {"text_config": sizes}):
        model = open_model(write(tensors, described))
        assert model.layout.architecture == "LLaMA"
        check(model, layers)
    sizes |= {"num_hidden_layers": 2, "hidden_size": D}
    assert open_model(write(tensors, sizes)).layout.architecture == "ViT"
    for wrong in ({"hidden_size": 21}, {"num_hidden_layers": 5}):
        with pytest.raises(ValueError, match="2 stacks of attention layers"):
            open_model(write(tensors, sizes | wrong))


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
    (tmp_path / "config.json").write_text(json.dumps(files.config("LLaMA")))
    check(open_model(tmp_path), layers)
    index.unlink()
    check(open_model(tmp_path), layers)
    with pytest.raises(ValueError, match="no attention layers"):
        open_model(tmp_path / "1.safetensors", heads=HEADS)


def test_the_norm_before_a_layer_bounds_its_tokens(write):
    model = open_model(write(files.gpt2(files.draw()), files.config("GPT-2")))
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
    nano = open_model(write(files.nanogpt(layers)), heads=HEADS)
    assert nano.input_norm(2) == bound(2, bias=False)
    torch = open_model(write(files.torch_encoder(layers)), heads=HEADS)
    assert torch.input_norm(0) is None
    assert torch.input_norm(1) in (bound(1), bound(50))
    for norm in ("norm1", "norm2"):
        assert torch._norm_bound(f"layers.{1 if norm == 'norm1' else 0}.{norm}", 0.0) <= torch.input_norm(1)
    bert = open_model(write(files.bert(layers), files.config("BERT")))
    assert [bert.input_norm(i) for i in range(LAYERS)] == [bound(0), bound(1), bound(2)]
    bare = {name: tensor for name, tensor in files.gpt2(layers).items() if "ln_1" not in name}
    assert open_model(write(bare, files.config("GPT-2"))).input_norm(0) is None
    old = {
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): t
        for name, t in files.bert(layers).items()
    }
    assert open_model(write(old, files.config("BERT"))).input_norm(1) == bound(1)


def test_embedding_norms(write):
    found = open_model(write(files.bert(files.draw())), heads=HEADS).embedding_norms()
    last = np.arange(4 * D, 5 * D, dtype=float)
    assert found == {"token": pytest.approx(math.sqrt((last**2).sum())), "position": pytest.approx(math.sqrt(D))}
    assert open_model(write(files.vit(files.draw())), heads=HEADS).embedding_norms()["class"] == pytest.approx(D**0.5)


def test_what_is_left_out_is_said(write):
    tensors = files.llama(files.draw())
    said = " ".join(open_model(write(tensors, files.config("LLaMA"))).left_out())
    assert all(word in said for word in ("rotary", "layer norm", "residual", "output projection"))
    assert not any(word in said for word in ("grouped", "biases", "soft-capping"))
    tensors = files.llama(files.draw(groups=2)) | {"model.layers.1.self_attn.k_proj.bias": np.ones(K, np.float32)}
    said = " ".join(open_model(write(tensors, files.config("LLaMA", model_type="gemma2"))).left_out())
    assert all(word in said for word in ("rotary", "grouped", "biases", "soft-capping", "after the attention"))


def without(tensors, part):
    return {name: tensor for name, tensor in tensors.items() if part not in name}


@pytest.mark.parametrize(
    ("change", "heads", "advice"),
    [
        (lambda t: {"a.b": np.ones((2, 2), np.float32)}, 4, r"'a.b' \[2, 2\]\. Known architectures are BERT, GPT-2"),
        (lambda t: {}, 4, "first tensors are none. Known architectures are"),
        (lambda t: without(t, "layers.1.self_attn.q"), 4, "numbered up to 2.*the directory"),
        (
            lambda t: without(t, "layers.2.self_attn.k"),
            4,
            "no weight model.layers.2.self_attn.k_proj.weight.*the directory",
        ),
        (lambda t: t | {f"b.{name}": tensor for name, tensor in t.items()}, 4, "a file of its own"),
        (lambda t: t | files.vit(files.draw()), 4, "LLaMA under 'model.', ViT under ''"),
        (lambda t: t, 5, "config.json with --config"),
        (lambda t: t, 24, "config.json with --config"),
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
        ({"num_attention_heads": 4, "num_hidden_layers": 32}, "holds 3 layers but its config says 32"),
        ({"num_attention_heads": 4, "num_key_value_heads": 3}, "Pass the model's own config.json"),
        ({"num_attention_heads": 4, "head_dim": 64}, "Pass the model's own config.json"),
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
    with pytest.raises(ValueError, match="with --heads"):
        model.heads(0)


def test_a_fused_weight_has_three_parts(write):
    tensors = files.vit(files.draw()) | {"blocks.1.attn.qkv.weight": np.ones((16, D), np.float32)}
    with pytest.raises(ValueError, match="a multiple of 3"):
        open_model(write(tensors), heads=HEADS).heads(1)
