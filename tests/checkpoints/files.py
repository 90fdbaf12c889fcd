"""Checkpoints of every layout, packed by hand from the maps of their heads, and a writer of our own."""

import json
import struct
from typing import NamedTuple

import ml_dtypes
import numpy as np

CODES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "int64": "I64",
    "uint8": "U8",
    "bool": "BOOL",
}
BFLOAT16 = ml_dtypes.bfloat16


def header_of(tensors):
    header, place = {}, 0
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": CODES[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + tensor.nbytes],
        }
        place += tensor.nbytes
    return header


def pack(header, data=b""):
    """A file from a header, which may be bytes already, and what follows it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def save(path, tensors, metadata=None):
    header = header_of(tensors)
    if metadata is not None:
        header = {"__metadata__": metadata, **header}
    path.write_bytes(pack(header, b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in tensors.values())))
    return path


class Maps(NamedTuple):
    """The heads of one layer, one d x k matrix each."""

    query: list[np.ndarray]
    key: list[np.ndarray]
    value: list[np.ndarray]


D, K, HEADS, LAYERS = 12, 3, 4, 3


def draw(seed=0, *, dimension=D, width=K, heads=HEADS, groups=HEADS, layers=LAYERS, dtype=np.float32):
    generator = np.random.default_rng(seed)

    def matrices(count):
        return [generator.normal(size=(dimension, width)).astype(dtype) for _ in range(count)]

    return [Maps(matrices(heads), matrices(groups), matrices(groups)) for _ in range(layers)]


def rows(maps):
    """The transposes below each other: [heads * k, d]."""
    return np.concatenate([matrix.T for matrix in maps], axis=0)


def thirds(layer):
    return np.concatenate([rows(layer.query), rows(layer.key), rows(layer.value)], axis=0)


def norm(seed, dimension=D, *, bias=True):
    generator = np.random.default_rng(1000 + seed)
    made = {"weight": generator.normal(size=dimension).astype(np.float32)}
    return made | ({"bias": generator.normal(size=dimension).astype(np.float32)} if bias else {})


def named(base, parts):
    return {f"{base}.{part}": tensor for part, tensor in parts.items()}


def others(base, *names):
    """Weights that a layer of this kind has as well, and that nothing is computed from."""
    return {f"{base}{name}": np.zeros(1, np.float32) for name in names}


def bert(layers, prefix=""):
    made = named(f"{prefix}embeddings.LayerNorm", norm(0))
    made[f"{prefix}embeddings.word_embeddings.weight"] = np.arange(5 * D, dtype=np.float32).reshape(5, D)
    made[f"{prefix}embeddings.position_embeddings.weight"] = np.ones((7, D), np.float32)
    for i, layer in enumerate(layers):
        base = f"{prefix}encoder.layer.{i}."
        for part in ("query", "key", "value"):
            made[f"{base}attention.self.{part}.weight"] = rows(getattr(layer, part))
            made[f"{base}attention.self.{part}.bias"] = np.zeros(HEADS * K, np.float32)
        made |= named(f"{base}attention.output.LayerNorm", norm(200 + i))
        made |= named(f"{base}output.LayerNorm", norm(i + 1))
        made |= others(base, "attention.output.dense.weight", "intermediate.dense.bias", "output.dense.weight")
    return made


def roberta(layers):
    return bert(layers, "roberta.")


def gpt2(layers, prefix="transformer."):
    made = {f"{prefix}wte.weight": np.ones((5, D), np.float32), f"{prefix}wpe.weight": np.ones((9, D), np.float32)}
    for i, layer in enumerate(layers):
        columns = [np.concatenate(part, axis=1) for part in layer]
        made[f"{prefix}h.{i}.attn.c_attn.weight"] = np.concatenate(columns, axis=1)
        made |= named(f"{prefix}h.{i}.ln_1", norm(i))
        made |= others(f"{prefix}h.{i}.", "attn.bias", "attn.c_proj.bias", "ln_2.weight", "mlp.c_fc.weight")
    return made


def nanogpt(layers, prefix="_orig_mod.transformer."):
    made = {f"{prefix}wte.weight": np.ones((5, D), np.float32)}
    for i, layer in enumerate(layers):
        made[f"{prefix}h.{i}.attn.c_attn.weight"] = thirds(layer)
        made |= named(f"{prefix}h.{i}.ln_1", norm(i, bias=False))
        made |= others(f"{prefix}h.{i}.", "attn.c_proj.weight", "ln_2.weight", "mlp.c_proj.weight")
    return made


_USUAL = ("self_attn.o_proj.weight", "post_attention_layernorm.weight", "mlp.up_proj.weight")


def llama(layers, prefix="model.", *, more=_USUAL, bias=False):
    dimension = len(layers[0].query[0])
    made = {f"{prefix}embed_tokens.weight": np.ones((5, dimension), np.float32)}
    for i, layer in enumerate(layers):
        for part in ("query", "key", "value"):
            made[f"{prefix}layers.{i}.self_attn.{part[0]}_proj.weight"] = rows(getattr(layer, part))
        made |= named(f"{prefix}layers.{i}.input_layernorm", norm(i, dimension, bias=bias))
        made |= others(f"{prefix}layers.{i}.", *more)
    return made


FOUR_NORMS = (*_USUAL, "pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight")
NORMED = ("self_attn.q_norm.weight", "self_attn.k_norm.weight")


def vit(layers):
    made = {"pos_embed": np.ones((1, 17, D), np.float32), "cls_token": np.ones((1, 1, D), np.float32)}
    for i, layer in enumerate(layers):
        made[f"blocks.{i}.attn.qkv.weight"] = thirds(layer)
        made |= named(f"blocks.{i}.norm1", norm(i))
        made |= others(f"blocks.{i}.", "attn.proj.weight", "ls1.gamma", "norm2.weight", "mlp.fc1.weight")
    return made


def torch_encoder(layers):
    made = {}
    for i, layer in enumerate(layers):
        made[f"encoder.layers.{i}.self_attn.in_proj_weight"] = thirds(layer)
        made |= named(f"encoder.layers.{i}.norm1", norm(i)) | named(f"encoder.layers.{i}.norm2", norm(50 + i))
        made |= others(f"encoder.layers.{i}.", "self_attn.out_proj.weight", "linear1.weight", "linear2.bias")
    return made


def neox(layers):
    made = {"gpt_neox.embed_in.weight": np.ones((5, D), np.float32)}
    for i, layer in enumerate(layers):
        heads = [np.concatenate([part[h].T for part in layer], axis=0) for h in range(HEADS)]
        made[f"gpt_neox.layers.{i}.attention.query_key_value.weight"] = np.concatenate(heads, axis=0)
        made |= named(f"gpt_neox.layers.{i}.input_layernorm", norm(i))
        made |= others(
            f"gpt_neox.layers.{i}.", "attention.dense.weight", "attention.masked_bias", "mlp.dense_h_to_4h.bias"
        )
    return made


LAYOUTS = {
    "BERT": bert,
    "BERT with a prefix": roberta,
    "GPT-2": gpt2,
    "nanoGPT": nanogpt,
    "LLaMA": llama,
    "ViT": vit,
    "PyTorch encoder": torch_encoder,
    "GPT-NeoX": neox,
}
MODEL_TYPES = {
    "BERT": "bert",
    "BERT with a prefix": "roberta",
    "GPT-2": "gpt2",
    "LLaMA": "llama",
    "GPT-NeoX": "gpt_neox",
}


def config(layout, **more):
    """What the config of a model in this layout says."""
    return (
        ({"model_type": MODEL_TYPES[layout]} if layout in MODEL_TYPES else {}) | {"num_attention_heads": HEADS} | more
    )
