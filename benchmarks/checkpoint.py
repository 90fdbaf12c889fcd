"""Norms and bounds of checkpoints: a BERT-shaped model (wanted: under 2 seconds), and a layer of a seven-billion LLaMA.

Peer: the same norms with every d x d product formed, as one would write them first.
"""

import json
import struct
import tempfile
from pathlib import Path

import numpy as np

from benchmarks._timing import best_seconds, show
from genscope.checkpoints import CapacityQuestion, HeadWeights, bound_capacity, layer_norms, open_model


def random_heads(heads: int, dimension: int, width: int) -> HeadWeights:
    generator = np.random.default_rng(0)
    return HeadWeights(*(generator.normal(size=(heads, dimension, width)).astype(np.float32) for _ in range(3)))


def formed(heads: HeadWeights) -> None:
    """The peer."""
    for query, key, value in zip(*heads, strict=True):
        product = query.astype(np.float64) @ key.astype(np.float64).T
        for matrix in (product, value.astype(np.float64)):
            np.linalg.norm(matrix, ord=2)
            np.linalg.norm(matrix)
            np.linalg.norm(matrix, axis=0).sum()


def bert(path: Path, layers: int = 6, heads: int = 12, dimension: int = 384, words: int = 30522) -> None:
    """A file of random weights, and a config."""
    shapes = {"embeddings.word_embeddings.weight": [words, dimension], "embeddings.LayerNorm.weight": [dimension]}
    for i in range(layers):
        base = f"encoder.layer.{i}."
        shapes |= {f"{base}attention.self.{part}.weight": [dimension] * 2 for part in ("query", "key", "value")}
        shapes[f"{base}output.LayerNorm.weight"] = [dimension]
    ends = np.cumsum([4 * int(np.prod(shape)) for shape in shapes.values()]).tolist()
    places = zip([0, *ends], ends, strict=False)
    header = {
        name: {"dtype": "F32", "shape": shape, "data_offsets": place}
        for (name, shape), place in zip(shapes.items(), places, strict=True)
    }
    text = json.dumps(header).encode()
    data = np.random.default_rng(0).normal(size=ends[-1] // 4).astype(np.float32)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data.tobytes())
    path.with_name("config.json").write_text(json.dumps({"model_type": "bert", "num_attention_heads": heads}))


def everything(path: Path) -> None:
    """What the command does."""
    model = open_model(path)
    norms = [layer_norms(model.heads(layer)) for layer in range(model.layers)]
    model.embedding_norms()
    bound_capacity(model, norms, CapacityQuestion(samples=1_000_000, context_length=512))


def main() -> None:
    middle, large = random_heads(4, 1024, 64), random_heads(32, 4096, 128)
    ours = best_seconds(lambda: layer_norms(middle), repeats=3)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.safetensors"
        bert(path)
        rows = {
            "BERT, 6 layers of 12 heads, d = 384: norms and bounds, seconds": best_seconds(
                lambda: everything(path), repeats=3
            ),
            "LLaMA 7B, one layer of 32 heads, d = 4096: norms, seconds": best_seconds(
                lambda: layer_norms(large), repeats=1
            ),
            "products formed / ours, 4 heads, d = 1024": best_seconds(lambda: formed(middle), repeats=1) / ours,
        }
    show("checkpoint: norms of real models", rows)


if __name__ == "__main__":
    main()
