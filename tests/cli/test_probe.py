"""`genscope probe` on expressions, on the user's functions and on model files."""

import json
import sys

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.constructions import SparseFunction, construct
from genscope.models import file
from genscope.models.mousavi2025 import TokenTransformer, TwoLayer
from tests.probe.functions import random_sum


@pytest.fixture
def module(directory, monkeypatch):
    """Functions of the user's in the current directory."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text):
        (directory / "their_code.py").write_text("import numpy as np\n" + text)

    yield write
    sys.modules.pop("their_code", None)


def components(facts):
    return {tuple(each["support"]): each["coefficient"] for each in facts["components"]}


def test_an_expression(call_json):
    facts = call_json("probe", "maj(x0, x1, x2) ^ x3 & ~x3", "--bits", 64)
    assert list(facts)[:8] == [
        *("degree", "sparsity", "relevant", "components"),
        *("queries", "seconds", "confidence", "exact"),
    ]
    assert (facts["degree"], facts["sparsity"], facts["relevant"]) == (3, 4, [0, 1, 2])
    assert components(facts) == {(): 0.5, (0,): -0.25, (1,): -0.25, (2,): -0.25, (0, 1, 2): 0.25}
    assert (facts["exact"], facts["confidence"], facts["queries"]) == (True, 1.0, 16)


def test_zero_has_no_components(call, call_json):
    said = call("probe", "0", "--bits", 20).stdout
    assert "1 query, " in said
    assert "No Fourier components: it is 0 everywhere." in said
    assert call_json("probe", "0", "--bits", 20)["components"] == []


def test_an_expression_as_signs(call_json):
    assert components(call_json("probe", "x0 ^ x5", "--bits", 8, "--values", "signs")) == {(0, 5): 1.0}
    assert components(call_json("probe", "x0 & x1", "--bits", 2, "--values", "signs"))[()] == 0.5


@pytest.mark.parametrize(
    "text", ["def f(x):\n    return 2.0 * (x[:, 3] ^ x[:, 40])", "def f(x):\n    return 2 * ((x[3] + x[40]) % 2)"]
)
def test_a_function_of_a_batch_or_of_one_input(module, call_json, text):
    module(text)
    facts = call_json("probe", "their_code:f", "--bits", 50, "--queries", 100_000, "--confidence", 0.999)
    assert (facts["degree"], facts["sparsity"], facts["relevant"]) == (2, 1, [3, 40])
    assert components(facts) == pytest.approx({(): 1.0, (3, 40): -1.0})
    assert (facts["exact"], facts["confidence"]) == (False, 0.999)
    assert facts["queries"] <= 100_000


def test_a_sparse_function_of_64_bits(module, call_json):
    f = random_sum(np.random.default_rng(0), 64, 5, 20)
    module(f"from genscope.fourier.walsh import WalshFunction\nf = {f!r}")
    facts = call_json("probe", "their_code:f", "--bits", 64)
    assert (facts["degree"], facts["sparsity"]) == (5, 20)
    assert facts["queries"] < 300_000
    assert components(facts) == pytest.approx(dict(zip(f.supports, f.coefficients, strict=True)))


def test_what_is_dense_is_not_decided(module, call_json, call):
    module("def f(x):\n    return 2.0 * (x.sum(axis=-1) > 20)")
    facts = call_json("probe", "their_code:f", "--bits", 41, "--queries", 50_000)
    assert facts["degree"] is facts["sparsity"] is facts["confidence"] is None
    assert facts["sparsity_at_least"] > 100
    assert facts["queries"] <= 50_000
    told = call("probe", "their_code:f", "--bits", 41, "--queries", 50_000).stdout
    assert "sparsity at least" in told
    assert "Cannot tell with 50000 queries" in told


def test_a_tolerance(module, call_json):
    for scale in (1.0, 0.01, 1e6):
        module(f"def f(x):\n    return {scale} * (x[:, 0] + 0.01 * (x.sum(axis=-1) > 10))")
        facts = call_json("probe", "their_code:f", "--bits", 12, "--tolerance", 0.001)
        assert (facts["degree"], facts["sparsity"]) == (1, 1)
        assert 0 < facts["left_out"] < 0.001
        sys.modules.pop("their_code")
    for values in ("bits", "signs"):
        facts = call_json("probe", "maj(x0, x1, x2)", "--bits", 3, "--values", values, "--tolerance", 0.3)
        assert (facts["sparsity"], facts["left_out"]) == (3, 0.25)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f = lambda x: np.random.normal(size=len(x))", "fix its seed, switch off dropout"),
        ("f = lambda x: np.where(x[:, 0] == 1, np.nan, 1.0)", "Look for a division by zero"),
        ("f = lambda x: x[:, :2]", "Drop extra axes"),
        ("f = lambda x: 'cat'", "Map classes or texts to numbers"),
        ("def f(x):\n    assert -1 in x or x.all()\n    return x.prod()", "--inputs signs"),
    ],
)
def test_mistakes_get_a_clear_answer(module, refused, text, said):
    module(text)
    assert said in refused("probe", "their_code:f", "--bits", 30)


def test_a_function_of_signs(module, call, call_json):
    module("f = lambda x: x[..., :30].prod(axis=-1)")
    assert "--inputs signs" in call("probe", "their_code:f", "--bits", 40, "--queries", 50_000).stdout
    facts = call_json("probe", "their_code:f", "--bits", 40, "--inputs", "signs")
    assert (facts["degree"], facts["sparsity"]) == (30, 1)


def test_failures_of_the_function_are_shown_as_its_own(module, call):
    module("def f(x):\n    return helper(x)\n\ndef helper(x):\n    raise RuntimeError('no luck')")
    result = call("probe", "their_code:f", "--bits", 5, status=1)
    assert result.stdout == ""
    for part in ("in f", "in helper", "RuntimeError: no luck", "one input of shape (5,)"):
        assert part in result.stderr
    assert "genscope/probe" not in result.stderr


def test_a_model_file(directory, call_json, refused):
    function = SparseFunction.parse("x3 & ~x17", context_length=24)
    file.save(construct(function, key=jr.key(0)).model, directory / "model.safetensors")
    facts = call_json("probe", "model.safetensors", "--bits", 24)
    assert (facts["degree"], facts["sparsity"], facts["relevant"]) == (2, 3, [3, 17])
    assert components(facts) == pytest.approx({(): 0.25, (3,): -0.25, (17,): 0.25, (3, 17): -0.25}, abs=1e-9)
    assert "does not take 23 bits" in refused("probe", "model.safetensors", "--bits", 23)


def test_a_model_may_answer_with_a_list_of_one_number(module, call_json, refused):
    module(
        "import equinox as eqx, jax.numpy as jnp\n"
        "class Net(eqx.Module):\n"
        "    scales: object\n"
        "    def __call__(self, x): return jnp.where(x[0] == x[2], self.scales, -self.scales)\n"
        "def one(): return Net(jnp.ones(1))\n"
        "def two(): return Net(jnp.ones(2))\n"
    )
    facts = call_json("probe", "their_code:one", "--bits", 3)
    assert components(facts) == {(0, 2): pytest.approx(1)}
    assert "outputs of shape (2,)" in refused("probe", "their_code:two", "--bits", 3)


def test_a_model_of_tokens_is_refused(directory, refused):
    model = TokenTransformer(jnp.zeros((1, 2, 2)), TwoLayer(jnp.eye(2), jnp.zeros(2), jnp.ones(2)))
    file.save(model, directory / "model.safetensors")
    assert "name a function" in refused("probe", "model.safetensors", "--bits", 8)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x0 &", "--bits", 4], "expression"),
        (["x7", "--bits", 4], "x7"),
        (["x0", "--bits", 0], "bits"),
        (["x0", "--bits", 4, "--confidence", 1.5], "--confidence must be between 0 and 1"),
        (["x0", "--bits", 4, "--queries", 0], "probe got --queries 0: --queries must be at least 1"),
        (["x0", "--bits", 4, "--tolerance", -1], "--tolerance must be a share of the energy"),
        (["x0", "--bits", 4, "--seed", -1], "--seed must be between 0 and"),
        (["absent.safetensors", "--bits", 4], "absent.safetensors"),
        (["absent_module:f", "--bits", 4], "no module 'absent_module'"),
        (["math:gcd", "--bits", 4, "--values", "signs"], "let your function return signs itself"),
    ],
)
def test_requests_that_make_no_sense(refused, arguments, said):
    assert said in refused("probe", *arguments)


def test_the_table_for_people(call):
    told = call("probe", "x0 & x1", "--bits", 5).stdout
    for part in (
        "degree 2, sparsity 3",
        "relevant bits: x0, x1",
        "Exact: read from the values at all inputs",
        "x0, x1",
    ):
        assert part in told


TEXTS = """
def score(prompts):
    return [2.0 * ("bad" in text) * ("dull" in text) for text in prompts]

def logits(prompts):
    return np.stack([np.zeros(len(prompts)), [float("bad" in text) for text in prompts]], axis=1)

def text(x):
    return ["bad" if row[1] else "good" for row in x]

def one(x):
    return ["bad"]

def ids(x):
    return [[7, 8 + int(row[0])] for row in x]

def is_eight(prompts):
    return (prompts == 8).any(axis=1) * 1.0
"""


def test_prompts(directory, module, call, call_json):
    module(TEXTS)
    prompts = {"zero": ["A ", "good", " and ", "lively", " film"], "one": ["A ", "bad", " and ", "dull", " film"]}
    (directory / "film.json").write_text(json.dumps(prompts))
    np.savez("sample.npz", x=np.array([[0, 0], [1, 1], [1, 0]]))
    asked = ("probe", "their_code:score", "--bits", 2, "--template", "film.json", "--sample", "sample.npz")
    facts = call_json(*asked)
    assert components(facts) == pytest.approx({(): 0.5, (0,): -0.5, (1,): -0.5, (0, 1): 0.5})
    assert facts["law"] == "uniform over the 2^2 prompts of film.json, whichever of them people would write"
    assert facts["sample"] == {"file": "sample.npz", "inputs": 3, "left_out": 0.0, "largest_error": 0.0}
    said = " ".join(call(*asked).stdout.split())
    assert "At the 3 inputs of sample.npz, which have a law of their own, the components leave out 0" in said
    facts = call_json("probe", "their_code:logits", "--bits", 3, "--template", "their_code:text", "--answer", "1,0")
    assert components(facts) == pytest.approx({(): 0.5, (1,): -0.5})
    facts = call_json("probe", "their_code:is_eight", "--bits", 1, "--template", "their_code:ids")
    assert components(facts) == pytest.approx({(): 0.5, (0,): 0.5})


def test_errors_at_a_sample_are_in_the_values_of_the_expression(directory, call_json):
    """1 - 2 f has twice the errors of f, and the same share of the variance left out."""
    np.savez("sample.npz", x=np.array([[1, 1, 1, 1], [0, 1, 1, 1]]))
    asked = ("probe", "x0 & x1 & x2 & x3", "--bits", 4, "--tolerance", 0.9, "--sample", "sample.npz")
    bits, signs = (call_json(*asked, "--values", values)["sample"] for values in ("bits", "signs"))
    assert bits["largest_error"] > 0.1
    assert signs == bits | {"largest_error": 2 * bits["largest_error"]}


def test_a_sample_shows_what_a_tolerance_leaves_out(module, directory, call_json):
    """The AND of four bits has a sixteenth of its inputs at 1, and all of a sample that knows no others."""
    module("def f(x):\n    return 1.0 * x[:, 0] + 0.3 * x[:, :4].all(axis=1)")
    np.savez("sample.npz", x=np.array([[1, 1, 1, 1], [0, 1, 1, 1]]))
    facts = call_json("probe", "their_code:f", "--bits", 4, "--tolerance", 0.05, "--sample", "sample.npz")
    assert facts["left_out"] < 0.05
    assert facts["sample"]["largest_error"] > 0.2


def test_the_published_testers_beside_ours(module, call, call_json, refused):
    """Two of 20 coordinates are the pair once in 190 trials: 47 hardly see it, 4,606 do. Directions always go on."""
    module("def f(x):\n    return 1.0 * (x[:, 3] ^ x[:, 17])")
    asked = ("probe", "their_code:f", "--bits", 20)
    fine = call_json(*asked, "--published", 0.001)["published"]
    assert (fine["proximity"], fine["degree"], fine["degree_levels_rejected"]) == (0.001, 2, 2)
    assert fine["degree_by_directions"] is None
    assert fine["degree_by_directions_levels_rejected"] == 9
    assert fine["sparsity"] in (0, 1)
    assert call_json(*asked)["published"] is None
    assert "cubes along coordinates" in call(*asked, "--published", 0.5).stdout
    assert "--published must be from 1e-9 to below 1" in refused(*asked, "--published", 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("their_code:score", "--bits", 3, "--template", "film.json"), "differ in 1 places"),
        (("their_code:score", "--bits", 1, "--template", "broken.json"), "holds no template"),
        (("their_code:score", "--bits", 1, "--template", "missing.json"), "missing.json"),
        (("their_code:score", "--bits", 2, "--template", "their_code:one"), "returned 1 prompts for"),
        (("their_code:logits", "--bits", 1, "--template", "film.json", "--answer", "1,9"), "logits 1 and 9"),
        (("their_code:logits", "--bits", 1, "--template", "film.json", "--answer", "yes"), "--answer 1,0"),
        (("their_code:score", "--bits", 1, "--template", "film.json", "--inputs", "signs"), "Leave --inputs out"),
        (("x0 & x1", "--bits", 2, "--answer", "1,0"), "a model or function of your own"),
        (("x0 & x1", "--bits", 2, "--sample", "sample.npz"), "at least two rows of T bits"),
    ],
)
def test_prompts_that_are_refused(directory, module, refused, arguments, said):
    module(TEXTS)
    (directory / "film.json").write_text(json.dumps({"zero": ["good"], "one": ["bad"]}))
    (directory / "broken.json").write_text("{")
    np.savez("sample.npz", x=np.full((3, 2), 2))
    assert said in " ".join(refused("probe", *arguments).split())
