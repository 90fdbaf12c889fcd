"""A real sentence encoder with a head of three classes: sharpness against PyTorch's own double backward."""

import json
import resource
import subprocess
import sys

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import genscope as gs
from genscope.measure import hessian_trace
from genscope.tasks import Batch
from genscope.train import cross_entropy
from tests.minilm import fetch

torch = pytest.importorskip("torch", reason="needs genscope[torch]: run make test-torch")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.filterwarnings("ignore"),  # of libraries that are not ours
]

CLASSIFIER = """
import json, pathlib
import safetensors.torch, torch
from torch import nn
from transformers import BertConfig, BertModel

HERE = pathlib.Path(__file__).parent

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(**json.loads((HERE / "config.json").read_text()))
        self.encoder = BertModel(config, add_pooling_layer=False)
        weights = safetensors.torch.load_file(HERE / "model.safetensors")
        lost = self.encoder.load_state_dict(weights, strict=False)
        assert not lost.missing_keys, lost.missing_keys
        torch.manual_seed(0)
        self.head = nn.Linear(384, 3)

    def forward(self, input_ids, attention_mask):
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[:, :, None].to(states.dtype)
        return self.head((states * mask).sum(1) / mask.sum(1))
"""
SUBSET = ("head.bias", "encoder.encoder.layer.5.attention.self.query.bias")  # 387 weights, through a whole layer
TEXTS, LENGTH = 6, 10


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    pytest.importorskip("transformers", reason="the architecture is that of transformers: run make test-torch")
    directory = fetch(tmp_path_factory.mktemp("minilm"))
    (directory / "classifier.py").write_text(CLASSIFIER)
    random = np.random.default_rng(0)
    mask = (np.arange(LENGTH) < random.integers(4, LENGTH + 1, (TEXTS, 1))).astype(np.int64)
    ids = random.integers(1000, 20_000, (TEXTS, LENGTH)) * mask
    y = random.integers(0, 3, TEXTS)
    np.savez(directory / "texts.npz", input_ids=ids, attention_mask=mask, y=y)
    return directory, {"input_ids": ids, "attention_mask": mask}, y


def loaded(directory):
    names: dict = {"__file__": str(directory / "classifier.py")}
    exec(CLASSIFIER, names)
    return names["Classifier"]().eval()


def eager_traces(module, x, y):
    """Trace of each block of the subset, one double backward for every weight."""
    inputs = {name: torch.tensor(part) for name, part in x.items()}
    blocks = [dict(module.named_parameters())[name] for name in SUBSET]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        loss = torch.nn.functional.cross_entropy(module(**inputs), torch.tensor(y))
        slopes = torch.autograd.grad(loss, blocks, create_graph=True)
    found = {}
    for name, block, slope in zip(SUBSET, blocks, slopes, strict=True):
        flat = slope.reshape(-1)
        diagonal = [
            torch.autograd.grad(flat[number], block, retain_graph=True)[0].reshape(-1)[number]
            for number in range(flat.numel())
        ]
        found[name] = float(torch.stack(diagonal).sum())
    return found


def test_exact_traces_are_those_of_double_backward(minilm):
    directory, x, y = minilm
    module = loaded(directory)
    for name, each in module.named_parameters():
        each.requires_grad_(name in SUBSET)
    expected = eager_traces(module, x, y)
    model = gs.from_torch(module)
    model.check(x)
    batch = Batch({name: jnp.asarray(part) for name, part in x.items()}, jnp.asarray(y))
    found = hessian_trace(model, batch, cross_entropy, method="exact")
    assert {*found.groups} == {*SUBSET}
    for name, trace in expected.items():
        assert found.groups[name].mean == pytest.approx(trace, rel=2e-3, abs=1e-4), name
    fisher = hessian_trace(model, batch, cross_entropy, method="fisher", probes=40, key=jr.key(0))
    newton = hessian_trace(model, batch, cross_entropy, method="gauss_newton")
    assert abs(fisher.mean - newton.mean) < 6 * fisher.sem
    assert fisher.sem < 0.1 * newton.mean
    # The loss is linear in nothing but the head, whose block has no other part than Gauss-Newton's.
    assert newton.groups["head.bias"].mean == pytest.approx(found.groups["head.bias"].mean, rel=1e-3)


LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_DATA, ({0}, {0})); from genscope.cli import main; main()"


def test_all_22_million_weights_in_bounded_memory(minilm):
    """Trace by group, norm and smoothed sharpness; twenty Lanczos vectors alone are 3.6 GB in double precision."""
    directory, *_ = minilm
    words = ("classifier.py:Classifier", "--data", "texts.npz", "--loss", "cross-entropy", "--by", "group")
    command = [sys.executable, "-c", LIMITED.format(10 * 2**30), "sharpness", *words]
    ended = subprocess.run(
        [*command, "--method", "hutchinson", "--probes", "4", "--json"], cwd=directory, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    facts = json.loads(ended.stdout)
    assert facts["parameters"] > 22_000_000
    assert facts["groups"]["head.weight"]["parameters"] == 3 * 384
    assert np.isfinite([facts["trace"]["mean"], facts["operator_norm"]["value"]]).all()
    assert facts["operator_norm"]["value"] > 0
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 2**20  # KiB: the limit was of the right process
