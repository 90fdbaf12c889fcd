"""The commands with modules of PyTorch, as a user types them."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.program import invoke

MODULES = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, scale=4.0):
        super().__init__()
        self.linear, self.drop = nn.Linear(4, 3), nn.Dropout(0.9)
        with torch.no_grad():
            self.linear.weight.copy_(scale * torch.eye(3, 4))
            self.linear.bias.zero_()
    def forward(self, x):
        return self.drop(self.linear(x))

class Noisy(Net):
    def forward(self, x):
        return self.linear(x) + torch.randn(3)

class Words(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.out = nn.Embedding(9, 4), nn.Linear(4, 3)
    def forward(self, input_ids, attention_mask):
        mask = attention_mask[:, :, None]
        return self.out((self.words(input_ids) * mask).sum(1) / mask.sum(1))

class Bits(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 0.0, 0.0, 2.0]))
    def forward(self, x):
        return x.float() @ self.weight

class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(torch.arange(9.0)[:, None], freeze=False)
        self.out = nn.Linear(1, 2, bias=False)
        with torch.no_grad():
            self.out.weight.copy_(torch.tensor([[1.0], [-1.0]]))
    def forward(self, input_ids):
        return self.out(self.words(input_ids).cumsum(dim=1))

class Frozen(Bits):
    def __init__(self):
        super().__init__()
        self.requires_grad_(False)

class NoWeights(nn.Module):
    def forward(self, x):
        return x[:, 0] + 2 * x[:, 3]

net = Net()
def initial(): return Net(3.5)
def half(): return Net().half()
def double(): return Net().double()
"""
X = np.random.default_rng(0).normal(size=(2000, 4))


@pytest.fixture(autouse=True)
def modules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(MODULES)
    np.savez("d.npz", x=X, y=X[:, :3].argmax(axis=1))


def call(*words, status=0):
    result = invoke(*words)
    assert result.exit_code == status, result.output
    return json.loads(result.stdout) if "--json" in words else result.output


@pytest.mark.parametrize("name", ["net", "Net"])
def test_sharpness(name):
    facts = call("sharpness", f"m.py:{name}", "--data", "d.npz", "--loss", "cross-entropy", "--by", "group", "--json")
    chance = np.exp(4 * X[:, :3])
    chance /= chance.sum(axis=1, keepdims=True)
    spread = 1 - np.sum(chance**2, axis=1)
    assert facts["groups"]["linear.bias"]["mean"] == pytest.approx(spread.mean(), rel=1e-4)
    assert facts["groups"]["linear.weight"]["mean"] == pytest.approx((spread * np.sum(X**2, axis=1)).mean(), rel=1e-4)


def test_certify():
    words = ("--data", "d.npz", "--prior", "m.py:initial", "--loss", "error", "--draws", "100", "--steps", "50")
    facts = call("certify", "m.py:net", *words, "--json")
    assert facts["classes"] == 3
    assert facts["certificate"] < 0.2 < facts["trivial"]
    assert facts["vacuous"] is False


def test_named_inputs_stay_integers():
    random = np.random.default_rng(1)
    ids, mask = random.integers(0, 9, (20, 5)), np.ones((20, 5), np.int64)
    np.savez("t.npz", input_ids=ids, attention_mask=mask, y=random.integers(0, 3, 20))
    facts = call("sharpness", "m.py:Words", "--data", "t.npz", "--loss", "cross-entropy", "--method", "exact", "--json")
    assert (facts["parameters"], facts["examples"]) == (9 * 4 + 15, 20)
    assert np.isfinite(facts["trace"]["mean"])


def test_probe_of_prompts():
    """A language model that adds up what it read; the last place is asked."""
    (Path.cwd() / "p.json").write_text(json.dumps({"zero": [8, 1, 2, 8], "one": [8, 3, 4, 8]}))
    facts = call("probe", "m.py:Adder", "--bits", "2", "--template", "p.json", "--answer", "0,1", "--json")
    # Ids are added up: 2 * 19 without ones, 2 more per bit; a coefficient is minus half of a bit's effect.
    found = {tuple(each["support"]): each["coefficient"] for each in facts["components"]}
    assert found == pytest.approx({(): 2 * 21, (0,): -2, (1,): -2})
    said = call("probe", "m.py:Adder", "--bits", "2", "--template", "p.json", status=2)
    assert "as in --answer 1,0" in " ".join(said.split())
    (Path.cwd() / "p.json").write_text(json.dumps({"zero": [8, 1, 2, 8], "one": [8, 3, -1, 8]}))
    said = call("probe", "m.py:Adder", "--bits", "2", "--template", "p.json", "--answer", "0,1", status=2)
    assert "from -1 to 8" in " ".join(said.split())


@pytest.mark.parametrize("name", ["Bits", "Frozen", "NoWeights"])
def test_probe(name):
    """Which needs no gradient."""
    facts = call("probe", f"m.py:{name}", "--bits", "4", "--json")
    assert (facts["relevant"], facts["degree"]) == ([0, 3], 1)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("m.py:Noisy",), "Remove randomness from forward"),
        (("m.py:half",), "module.float()"),
        (("m.py:Words", "--data", "t.npz"), "int64 from -1 to 8"),
        (("m.py:Frozen",), "Call requires_grad_(True) on some of them"),
        (("m.py:NoWeights",), "Call requires_grad_(True) on some of them"),
        (("m.py:Words",), "must be named like its arguments"),
        (("m.py:net", "--loss", "squared"), "For 3 classes take the cross-entropy loss"),
    ],
)
def test_modules_that_are_refused(words, advice):
    ids = np.ones((2000, 5), np.int64)
    ids[1500, 2], ids[1000, 0] = -1, 8  # where nobody looks
    np.savez("t.npz", input_ids=ids, attention_mask=np.ones_like(ids), y=np.ones(2000, np.int64))
    loss = () if "--loss" in words else ("--loss", "cross-entropy")
    data = () if "--data" in words else ("--data", "d.npz")
    assert advice in " ".join(call("sharpness", *words, *data, *loss, status=2).split())


def test_certificates_are_drawn_in_single_precision():
    assert "module.float()" in call("certify", "m.py:double", "--data", "d.npz", "--loss", "error", status=2)
    facts = call(
        "sharpness", "m.py:double", "--data", "d.npz", "--loss", "cross-entropy", "--method", "exact", "--json"
    )
    assert facts["parameters"] == 15


LEARNERS = """
import torch
from torch import nn


def build(key, context_length):
    return nn.Sequential(nn.Linear(context_length, 8), nn.Tanh(), nn.Linear(8, 1))


def wide(key, context_length):
    return nn.Linear(context_length, 3)
"""


def test_a_module_learns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "learners.py").write_text(LEARNERS)
    asked = ("learn", "x0", "--context-length", "4", "--budget", "quick", "--width", "0.9", "--steps", "200")
    found = invoke(*asked, "--rate", "0.03", "--network", "learners.py:build", "--json")
    assert found.exit_code == 0, found.stderr
    [row] = json.loads(found.stdout)["answers"]
    assert row["network"].startswith("learners.py:build@")
    assert row["high"] < 200
    refused = invoke(*asked, "--network", "learners.py:wide")
    assert (refused.exit_code, "of shape () or (1,)" in " ".join(refused.stderr.split())) == (2, True)
