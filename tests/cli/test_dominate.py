"""`genscope dominate`: a model whose function is known, one that is not dominated, and what is refused."""

import numpy as np
import pytest

from genscope.cli import dominate

MODELS = """
import equinox as eqx, jax, jax.numpy as jnp
class Parities(eqx.Module):
    weight: jax.Array
    unit: float = 1.0
    def __call__(self, x):
        sign = 1 - 2 * x.astype(self.weight.dtype)
        return self.unit * (self.weight[0] * sign[0] * sign[1] + self.weight[1] * sign[2])
def trained(): return Parities(jnp.asarray([0.6, 0.8]))
def idle(): return Parities(jnp.asarray([0.6, 0.8, 100.0]))  # a weight that does nothing
def sharp(): return Parities(jnp.asarray([0.0006, 0.0008]), 1000.0)
def constant(): return Parities(jnp.asarray([0.0, 0.0]))
def noise():
    table = jax.random.normal(jax.random.key(0), (64,))
    class Table(eqx.Module):
        table: jax.Array
        def __call__(self, x):
            return self.table[jnp.sum(x.astype(int) * 2 ** jnp.arange(6))]
    return Table(table)
"""
KEYS = ["function", "constructed", "trained", "dominated", "bound", "vacuous", "assumptions"]


@pytest.fixture
def data(directory):
    (directory / "dominate_models.py").write_text(MODELS)
    x = np.random.default_rng(0).integers(0, 2, (400, 6))
    sign = 1 - 2 * x
    np.savez(directory / "data.npz", x=x, y=0.6 * sign[:, 0] * sign[:, 1] + 0.8 * sign[:, 2])
    return ["--data", "data.npz", "--bits", 6]


def test_a_dominated_model(call_json, data, capsys):
    facts = call_json("dominate", "dominate_models:trained", *data, "--constant", 0.1)
    assert {*KEYS} <= {*facts}
    assert (facts["function"]["degree"], facts["function"]["sparsity"]) == (2, 2)
    found = {tuple(each["support"]): each["coefficient"] for each in facts["function"]["components"]}
    assert found == pytest.approx({(2,): 0.8, (0, 1): 0.6}, abs=1e-6)
    assert facts["constructed"]["verified"] is True
    assert facts["constructed"]["norm_squared"] > 1000
    trained = facts["trained"]
    assert (trained["parameters"], trained["norm_squared"]) == (2, pytest.approx(1))
    assert trained["trace"]["mean"] == pytest.approx(4)  # 2 E|∇f|², with two signs
    assert trained["perturbed_sharpness"]["mean"] == pytest.approx(4, rel=0.5)  # 2 |ξ|², of 32 pairs
    assert facts["dominated"] is True
    bound = facts["bound"]
    assert bound["value"] == pytest.approx(sum(bound["terms"].values()))
    assert facts["vacuous"] is True  # C = 0.1 at 400 examples
    assert bound["trivial"] == pytest.approx(np.var(np.load("data.npz")["y"]))
    assert any("redrawn around the trained ones" in each for each in facts["assumptions"])
    dominate._print_comparison(facts)
    text = capsys.readouterr().out
    assert "Dominated: trained over constructed" in text
    assert "\nVacuous: the best constant" in text
    assert "C is given" in text


@pytest.mark.parametrize("name", ["idle", pytest.param("sharp", marks=pytest.mark.slow)])
def test_a_longer_or_a_sharper_model_is_not_dominated(call_json, data, name):
    facts = call_json("dominate", f"dominate_models:{name}", *data, "--constant", 0.1)
    assert facts["dominated"] is False
    ratio = "norm_squared" if name == "idle" else "perturbed_sharpness"
    assert facts["ratios"][ratio] > 1


@pytest.mark.parametrize(
    ("model", "change", "advice"),
    [
        ("trained", {"--bits": 5}, "Correct x or --bits"),
        ("trained", {"--probes": 1}, "Correct the one that is out of range"),
        ("trained", {"--constant": 0}, "leave it out to have it fitted"),
        ("constant", {}, "Train it further"),
        ("noise", {"--tolerance": 0}, "Raise the tolerance to 0.612 (--tolerance): the 6 largest"),
    ],
)
def test_what_is_refused(call, data, model, change, advice):
    options = dict(zip(data[::2], data[1::2], strict=True)) | change
    done = call("dominate", f"dominate_models:{model}", *[part for pair in options.items() for part in pair], status=2)
    assert advice in " ".join(done.stderr.split())


def test_labels_that_do_not_differ_are_refused(call, data, directory):
    np.savez(directory / "same.npz", x=np.zeros((4, 6)), y=np.ones(4))
    done = call("dominate", "dominate_models:trained", "--data", "same.npz", "--bits", 6, status=2)
    assert "at least two different labels" in done.stderr
