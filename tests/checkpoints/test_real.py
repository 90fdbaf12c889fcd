"""A real BERT, and a file of the shape of a seven-billion-parameter model."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from genscope.checkpoints import layer_norms, open_model
from tests.checkpoints.files import pack
from tests.minilm import fetch

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "checkpoints.toml").read_text())


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    return fetch(tmp_path_factory.mktemp("minilm"))


@pytest.mark.slow
def test_the_known_norms_of_a_real_bert(minilm):
    model = open_model(minilm / "model.safetensors")
    assert (model.layout.architecture, model.layers, model.stack.heads) == ("BERT", 6, 12)
    value, query_key = layer_norms(model.heads(0))
    found = {"value": value, "query_key": query_key}
    for golden in GOLDEN["minilm_layer_0"]:
        norms = getattr(found[golden["map"]], golden["norm"])
        assert float(norms.mean()) == pytest.approx(golden["mean"], rel=golden["tolerance"])
        assert float(norms.max()) == pytest.approx(golden["max"], rel=golden["tolerance"])


LIMITED = """
import resource, sys
limit = int(1.5 * 2**30)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
"""


def limited(code, *arguments):
    """Run code in a process that may have 1.5 GiB of its own, threads and program included; mapped files are free."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED + code, *map(str, arguments)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit on a process's own memory is Linux's")
def test_seven_billion_parameters_in_bounded_memory(tmp_path):
    layers, dimension, heads, feedforward, words = 32, 4096, 32, 11008, 32000
    shapes = {"model.embed_tokens.weight": [words, dimension], "lm_head.weight": [words, dimension]}
    for i in range(layers):
        base = f"model.layers.{i}."
        shapes |= {f"{base}self_attn.{part}_proj.weight": [dimension, dimension] for part in "qkvo"}
        shapes |= {f"{base}mlp.{part}_proj.weight": [feedforward, dimension] for part in ("gate", "up", "down")}
        shapes[f"{base}input_layernorm.weight"] = [dimension]
    header, place = {}, 0
    for name, shape in shapes.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + size]}
        place += size
    assert place > 13e9
    path = tmp_path / "model.safetensors"
    start = pack(header)
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + place)  # zeros that take no room on the disk
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": heads, "num_hidden_layers": layers}))
    done = limited(
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from genscope.checkpoints import open_model\n"
        "from genscope.cli.checkpoint import _measured\n"
        "model = open_model(Path(sys.argv[1]))\n"
        "model.embedding_norms()\n"
        "norms = _measured(replace(model, layers=4))\n"  # two at a time, and all are alike
        "print(norms[-1].value.spectral.shape)",
        path,
    )
    assert done.stdout == f"({heads},)\n", done.stderr
    assert limited("x = bytearray(int(1.5 * 2**30))").returncode != 0  # the limit bites
