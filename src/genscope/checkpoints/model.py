"""A model from a file: which naming scheme it follows, how many heads it has, and the weights of each layer.

Source: None (house design).
Departures: None.
Guarantee: exact. A file that follows no scheme, or more than one, is refused with what was found in it.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from genscope.checkpoints import bert, gpt2, llama, nanogpt, neox, torch_encoder, vit
from genscope.checkpoints._layout import Heads, Layout, Stack, Weights
from genscope.checkpoints.norms import largest_row_norm
from genscope.checkpoints.reader import read_json, read_tensors

LAYOUTS = (bert.LAYOUT, gpt2.LAYOUT, nanogpt.LAYOUT, llama.LAYOUT, vit.LAYOUT, torch_encoder.LAYOUT, neox.LAYOUT)
_HEADS = ("num_attention_heads", "n_head", "num_heads", "nhead")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
_LENGTHS = ("max_position_embeddings", "n_positions", "block_size")
_NORMED = re.compile(r"\.[qk]_(norm|ln|layernorm)\.")


@dataclass(frozen=True)
class Model:
    """Attention layers that were found in a file."""

    layout: Layout
    stack: Stack
    layers: int

    def heads(self, layer: int) -> Heads:
        """The maps of a layer's heads."""
        return self.layout.cut(self.stack, layer)

    def score_scale(self, layer: int) -> float:
        r"""What the model multiplies $z^\top W_Q W_K^\top x$ by before the softmax."""
        width = self.heads(layer).query.shape[2]
        rule = self.layout.score_scale
        return 1 / math.sqrt(width) if rule is None else rule(self.stack.config, layer, width)

    def input_norm(self, layer: int) -> float | None:
        r"""A bound on the tokens that enter a layer, from the norm before it: $\sqrt d \max_i |g_i| + \|b\|$.

        Layer norm makes of any token $g \odot u + b$ with $\|u\| \le \sqrt d$. None if the weights do not tell.
        """
        bounds = [self._norm_bound(name) for name in self.layout.input_norms(layer)]
        known = [bound for bound in bounds if bound is not None]
        return max(known) if known and len(known) == len(bounds) else None

    def _norm_bound(self, name: str) -> float | None:
        gain, bias = (
            next((found for kind in kinds if (found := self.stack.get(f"{name}.{kind}")) is not None), None)
            for kinds in (("weight", "gamma"), ("bias", "beta"))
        )
        if gain is None or gain.ndim != 1 or not gain.size:
            return None
        stretch = math.sqrt(gain.size) * largest_row_norm(gain[:, np.newaxis], name)
        return stretch + (0.0 if bias is None else largest_row_norm(bias.reshape(1, -1), name))

    def embedding_norms(self) -> dict[str, float]:
        """The longest row of each table of embeddings."""
        tables = {label: self.stack.get(name) for label, name in self.layout.embeddings.items()}
        return {
            label: largest_row_norm(table.reshape(-1, table.shape[-1]), f"the {label} embeddings")
            for label, table in tables.items()
            if table is not None and table.ndim >= 2 and table.size
        }

    def context_length(self) -> int | None:
        """The most tokens that the model was made for, if the config or a table of positions tells."""
        table = self.stack.get(self.layout.embeddings.get("position", ""))
        return self.stack.count(*_LENGTHS) or (table.shape[-2] if table is not None and table.ndim >= 2 else None)

    def left_out(self) -> tuple[str, ...]:
        """What the model does and the theorem's head does not."""
        named = self.stack.config.get("model_type")
        notes = []
        if any(map(_NORMED.search, self.stack.weights)):
            notes.append("norms of queries and keys: they make the scores differ from the map shown")
        if isinstance(named, str) and named not in self.layout.model_types:
            notes.append(f"whatever distinguishes {named!r:.40} from {self.layout.architecture}, whose names it uses")
        return (*notes, *self.layout.left_out)


def open_model(path: Path, *, config: Path | None = None, heads: int | None = None) -> Model:
    """The model in a safetensors file; sizes come from `config`, or else from the config.json beside it.

    `heads` takes precedence over the number of query heads in the config.
    """
    weights = read_tensors(path)
    layout, prefix, layers = _recognise(path, weights)
    beside = path.parent / "config.json"
    found = read_json(config or beside) if config or beside.is_file() else {}
    sizes = Stack(weights, prefix, 0, found)
    stack = Stack(weights, prefix, _head_count(path, sizes, heads), found)
    stated = stack.count(*_LAYERS) or layers
    if stated != layers:
        raise ValueError(
            f"{path} holds {layers} layers and its config speaks of {stated}: norms are taken of whole models. If this "
            "is one of several shards, give the model.safetensors.index.json; else the right config by --config."
        )
    return Model(layout, stack, layers)


def _recognise(path: Path, weights: Weights) -> tuple[Layout, str, int]:
    found = [(layout, *stack) for layout in LAYOUTS for stack in _stacks(layout, weights).items()]
    if not found:
        names = ", ".join(f"{name!r:.60} {list(weights[name].shape)}" for name in sorted(weights)[:8])
        raise ValueError(
            f"{path} holds {len(weights)} tensors and no attention layers whose names are known; the first are "
            f"{names or 'none'}. Known are {', '.join(layout.architecture for layout in LAYOUTS)}. Rename the weights "
            "to one of these, for instance PyTorch's layers.0.self_attn.in_proj_weight of shape [3d, d]."
        )
    if len(found) > 1:
        stacks = ", ".join(f"{layout.architecture} under {prefix!r:.60}" for layout, prefix, _ in found[:8])
        raise ValueError(
            f"{path} holds {len(found)} stacks of attention layers ({stacks}): norms are taken of one at a time. "
            "Save the one you mean to a file of its own."
        )
    layout, prefix, numbers = found[0]
    if numbers != set(range(len(numbers))):
        raise ValueError(
            f"{path} holds {len(numbers)} layers up to number {max(numbers)}: they are numbered from 0 without "
            "gaps. If this is one of several shards, give the model.safetensors.index.json that lists them all."
        )
    return layout, prefix, len(numbers)


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


def _head_count(path: Path, sizes: Stack, given: int | None) -> int:
    if given is not None and given < 1:
        raise ValueError(f"got {given} heads: a layer has 1 or more. Give the model's number of query heads.")
    heads = given or sizes.count(*_HEADS)
    if heads is None:
        raise ValueError(
            f"{path} does not tell how many heads its layers have: weights never do, and no config.json with "
            f"{', '.join(_HEADS[:3])} or {_HEADS[3]} is beside it. Give it by --config FILE, or the query "
            "heads of a layer by --heads N."
        )
    return heads
