"""A model from a file: which naming scheme it follows, how many heads it has, and the weights of each layer.

Guarantee: exact. A file that follows no scheme, or more than one that the config could mean, is refused with what was
found in it.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from genscope.checkpoints import bert, gpt2, llama, nanogpt, neox, own, torch_encoder, vit
from genscope.checkpoints._layout import BIASES, GROUPED, Config, HeadWeights, Kind, Layout, Stack, Weights
from genscope.checkpoints.doubts import find_doubts, find_kind
from genscope.checkpoints.norms import largest_row_norm
from genscope.checkpoints.reader import read_json, read_tensors
from genscope.refusal import Refusal

LAYOUTS = (bert.LAYOUT, gpt2.LAYOUT, nanogpt.LAYOUT, llama.LAYOUT, vit.LAYOUT, torch_encoder.LAYOUT, neox.LAYOUT)
_HEADS = ("num_attention_heads", "n_head", "num_heads", "nhead")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
_LENGTHS = ("max_position_embeddings", "n_positions", "block_size")
_BIASED = re.compile(r".*\b([qkv]_proj|query|key|value|c_attn|qkv|query_key_value)\.bias|.*\bin_proj_bias")


@dataclass(frozen=True)
class Model:
    """Attention layers that were found in a file."""

    layout: Layout
    stack: Stack
    layers: int

    def heads(self, layer: int) -> HeadWeights:
        """The maps of a layer's heads."""
        return self.layout.cut(self.stack, layer)

    @property
    def kind(self) -> Kind | None:
        """What the model computes with its weights, if that is known."""
        return find_kind(self.layout, self.stack)

    def doubts(self) -> tuple[str, ...]:
        """Why no bounds are given; none if they are."""
        return find_doubts(self.layout, self.stack)

    def score_scale(self, layer: int) -> float | None:
        r"""What the model multiplies $z^\top W_Q W_K^\top x$ by before the softmax; None if that is not known."""
        kind = self.kind
        return None if kind is None else kind.score_scale(self.stack, layer, self.heads(layer).query.shape[2])

    def input_norm(self, layer: int) -> float | None:
        r"""A bound on the tokens that enter a layer, from the norm before it: $\sqrt d \max_i |g_i| + \|b\|$.

        Layer norm, and its like without a mean, makes of any token $g \odot u + b$ with $\|u\| \le \sqrt d$, whatever
        its epsilon. The gain $g$ is the stored weight, or 1 + weight in some models. None if the weights do not tell.
        """
        kind = self.kind
        if kind is None:
            return None
        if self.layout.longest is not None:
            return self.layout.longest(self.stack, layer)
        bounds = [self._norm_bound(name, kind.gain) for name in self.layout.input_norms(layer)]
        known = [bound for bound in bounds if bound is not None]
        return max(known) if known and len(known) == len(bounds) else None

    def _norm_bound(self, name: str, more: float) -> float | None:
        weight, bias = (
            next((found for kind in kinds if (found := self.stack.get(f"{name}.{kind}")) is not None), None)
            for kinds in (("weight", "gamma"), ("bias", "beta"))
        )
        if weight is None or weight.ndim != 1 or not weight.size:
            return None
        gain = weight.astype(np.float64)[:, np.newaxis] + more
        stretch = math.sqrt(gain.size) * largest_row_norm(gain, name)
        return stretch + (0.0 if bias is None else largest_row_norm(bias.reshape(1, -1), name))

    def embedding_norms(self) -> dict[str, float]:
        """The longest row of each table of embeddings, before any factor that the model puts on it."""
        tables = {label: self.stack.get(name) for label, name in self.layout.embeddings.items()}
        return {
            label: largest_row_norm(table.reshape(-1, table.shape[-1]), f"the {label} embeddings")
            for label, table in tables.items()
            if table is not None and table.ndim >= 2 and table.size
        }

    def context_length(self) -> int | None:
        """The most tokens that the model was made for, if the config or a table of positions tells."""
        table = self.stack.get(self.layout.embeddings.get("position", ""))
        rows = self.stack.count(*_LENGTHS) or (table.shape[-2] if table is not None and table.ndim >= 2 else None)
        padding = self.kind and self.kind.padding
        if rows is None or padding is None:
            return rows
        given = self.stack.config.get("pad_token_id", padding)
        return max(1, rows - 1 - (given if type(given) is int and 0 <= given < rows else padding))

    def left_out(self) -> tuple[str, ...]:
        """What the model does and the theorem's head does not."""
        kind, heads = self.kind, self.heads(0)
        biased = any(name.startswith(self.stack.prefix) and _BIASED.fullmatch(name) for name in self.stack.weights)
        shared = len(heads.key) < len(heads.query)
        own = () if kind is None else kind.left_out
        return (*own, *[GROUPED] * shared, *[BIASES] * biased, *self.layout.left_out)


def open_model(path: Path, *, config: Path | None = None, heads: int | None = None) -> Model:
    """The model in a safetensors file or a directory; sizes come from `config`, or else from the config.json there.

    A model that genscope wrote tells its sizes itself. Of a config with a `text_config`, as models of text and images
    have, that part is read. `heads` takes precedence over the number of query heads in the config.
    """
    weights = read_tensors(path)
    if path.is_file() and (told := own.description(path)) is not None:
        return Model(*own.arranged(path, weights, told))
    beside = (path if path.is_dir() else path.parent) / "config.json"
    found = _of_text(read_json(config or beside) if config or beside.is_file() else {})
    layout, prefix, layers = _recognise(path, weights, found)
    sizes = Stack(weights, prefix, 0, found)
    stack = Stack(weights, prefix, _head_count(path, layout, sizes, heads), found)
    stated = stack.count(*_LAYERS) or layers
    if stated != layers:
        raise Refusal(
            f"{path} holds {layers} layers but its config says {stated}: norms are computed for whole models. If "
            "this is one of several shards, give the directory that holds them all; otherwise pass the right "
            "config with --config."
        )
    return Model(layout, stack, layers)


def _of_text(config: Config) -> Config:
    """The part of a config that describes the layers which read text."""
    part = config.get("text_config")
    own = {"auto_map": config["auto_map"]} if "auto_map" in config else {}
    return own | part if isinstance(part, dict) else config


def _recognise(path: Path, weights: Weights, config: Config) -> tuple[Layout, str, int]:
    every = [(layout, *stack) for layout in LAYOUTS for stack in _stacks(layout, weights).items()]
    meant = [each for each in every if _is_meant(*each, weights, config)]
    found = meant if len(meant) == 1 else every
    if not found:
        names = ", ".join(f"{name!r:.60} {list(weights[name].shape)}" for name in sorted(weights)[:8])
        raise Refusal(
            f"{path} holds {len(weights)} tensors, but no attention layers with names that genscope knows; the "
            f"first tensors are {names or 'none'}. Known architectures are "
            f"{', '.join(layout.architecture for layout in LAYOUTS)}. Rename the weights to match one of these, for "
            "instance PyTorch's layers.0.self_attn.in_proj_weight of shape [3d, d]."
        )
    if len(found) > 1:
        stacks = ", ".join(f"{layout.architecture} under {prefix!r:.60}" for layout, prefix, _ in found[:8])
        raise Refusal(
            f"{path} holds {len(found)} stacks of attention layers ({stacks}): norms are computed for one stack at "
            "a time. Pass a config with its num_hidden_layers and hidden_size with --config, or save the stack to "
            "a file of its own."
        )
    layout, prefix, numbers = found[0]
    if numbers != set(range(len(numbers))):
        raise Refusal(
            f"{path} holds {len(numbers)} layers, numbered up to {max(numbers)}: layers must be numbered from 0 "
            "without gaps. If this is one of several shards, give the directory that holds them all."
        )
    return layout, prefix, len(numbers)


def _is_meant(layout: Layout, prefix: str, numbers: set[int], weights: Weights, config: Config) -> bool:
    """Whether the config describes a stack: by the number of its layers, and the dimension of its tokens."""
    name = prefix + layout.signs[0].format(min(numbers))
    sizes = [config[key] for key in ("hidden_size", "n_embd") if key in config]
    return any(config.get(key) == len(numbers) for key in _LAYERS) and all(
        size in weights[name].shape for size in sizes
    )


def _stacks(layout: Layout, weights: Weights) -> Mapping[str, set[int]]:
    """Numbers of the layers by their prefix, if one of them has all signs of the scheme."""
    stacks: dict[str, set[int]] = {}
    sure = set()
    for name, prefix, layer in _marked(layout.signs[0], weights):
        stacks.setdefault(prefix, set()).add(layer)
        if all(prefix + sign.format(layer) in weights for sign in layout.signs) and layout.accepts(weights[name].shape):
            sure.add(prefix)
    return {prefix: numbers for prefix, numbers in stacks.items() if prefix in sure}


def _marked(sign: str, weights: Weights) -> Iterator[tuple[str, str, int]]:
    pattern = re.compile(r"((?:.*\.)?)" + re.escape(sign).replace(r"\{\}", "(0|[1-9][0-9]{0,3})"))
    return ((name, m[1], int(m[2])) for name in weights if (m := pattern.fullmatch(name)))


def _head_count(path: Path, layout: Layout, sizes: Stack, given: int | None) -> int:
    if given is not None and given < 1:
        raise Refusal(f"got {given} heads: a layer must have at least 1. Give the model's number of query heads.")
    kind = find_kind(layout, sizes)
    heads = given or sizes.count(*_HEADS) or (kind and kind.heads)
    if heads is None:
        raise Refusal(
            f"{path} does not say how many heads its layers have: weights never do, and there is no config.json "
            f"next to it with {', '.join(_HEADS[:3])} or {_HEADS[3]}. Pass one with --config FILE, or the number of "
            "query heads per layer with --heads N."
        )
    return heads
