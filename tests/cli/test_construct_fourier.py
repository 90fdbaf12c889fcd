import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genscope.constructions import Verification, fourier_verification
from genscope.fourier import points
from genscope.fourier.walsh import WalshFunction
from genscope.models.file import load
from genscope.precision import float64
from tests.cli.program import invoke

G1 = ("construct", "fourier", "--components", "0,1:0.6;2,3:0.8", "--context-length", 6)
BLOCKS = ["A", "K", "V", "E", "b", "F", "W2", "w"]


def test_the_paper_s_weights(call_json, directory):
    facts = call_json(*G1, "--out", "model.safetensors")
    assert (facts["construction"], facts["variant"], facts["context_length"]) == ("fourier", "full", 6)
    assert facts["components"][1] == {"support": [2, 3], "coefficient": 0.8}
    assert list(facts["norm_squared"]) == [*BLOCKS, "total"]
    assert facts["norm_squared"]["total"] == pytest.approx(1378.157242)
    assert facts["trace"] == pytest.approx(431.066445)
    assert facts["trace_sem"] == 0
    assert {*BLOCKS, "F_b", "F_pos", "total"} == {*facts["gradient_squared"]}
    assert facts["gradient_squared"]["F_pos"] == pytest.approx(50.501125)
    assert facts["max_error"] == pytest.approx(1.4e-6, rel=1e-5)
    assert (facts["exhaustive"], facts["inputs_checked"], facts["parameters"]) == (True, 64, 400)
    assert (facts["verified"], facts["exact"]) == (True, False)
    model = load(directory / facts["file"])
    with float64():
        values = np.asarray(jax.jit(jax.vmap(model))(jnp.asarray(points(6))))
    expected = WalshFunction(6, ((0, 1), (2, 3)), (0.6, 0.8), "phi").truth_table()
    np.testing.assert_allclose(values, expected, atol=2e-6)


def test_other_variants_signs_and_a_constant(call_json):
    tuned = call_json(*G1, "--variant", "tuned")
    assert tuned["norm_squared"]["total"] * tuned["trace"] < 1378 * 431 / 15
    assert tuned["parameters"] == 400
    mixed = (
        "construct",
        "fourier",
        "--components",
        "1 ,0: +5e-1;2:-.5 ; :3",
        "--context-length",
        3,
        "--inactive",
        1e-14,
    )
    facts = call_json(*mixed, "--signed", "one-token", "--variant", "minimal")
    assert facts["exact"]
    assert facts["constant"] == 3
    assert facts["components"][0]["support"] == [0, 1]
    assert facts["gradient_squared"]["b0"] == 1
    assert facts["norm_squared"]["w"] == pytest.approx(1)


def test_a_network_for_a_sample(call, call_json, refused, directory):
    """One component of three bits, of which the sample shows 1 and 2 ones: one rise, two units of eight."""
    x = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 1]])
    np.savez("sample.npz", x=x)
    asked = ("construct", "fourier", "--components", "0,1,2:1", "--context-length", 4)
    facts = call_json(*asked, "--sample", "sample.npz", "--out", "model.safetensors")
    seen = facts["sample"]
    assert (seen["used"], seen["units"], seen["inputs"]) == ([1, 2], {"before": 8, "after": 2}, 3)
    assert (facts["verified"], facts["exhaustive"], facts["inputs_checked"]) == (True, False, 3)
    assert seen["norm_squared"]["after"] == facts["norm_squared"]["total"] < seen["norm_squared"]["before"]
    assert seen["trace"]["after"] == facts["trace"] < seen["trace"]["before"]
    assert seen["bounds"]["kept"] < seen["bounds"]["whole"]
    assert seen["bounds"]["sets"] == 16
    model = load(directory / facts["file"])
    with float64():
        assert np.asarray(jax.vmap(model)(jnp.asarray(x == 1))) == pytest.approx([0, 1, 1], abs=1e-5)
    assert call_json(*asked)["sample"] is None
    assert "a union over 16 choices" in call(*asked, "--sample", "sample.npz").stdout
    np.savez("wrong.npz", x=x[:, :3])
    assert "rows of T bits" in refused(*asked, "--sample", "wrong.npz")


def test_people_read_a_table(call, directory):
    options = ("--components", "0,1:1;5,16:-2", "--context-length", 17, "--variant", "tuned", "--out", "m.safetensors")
    text = " ".join(call("construct", "fourier", *options).stdout.split())
    assert "2 components on 17 bits, weights tuned" in text
    assert "verified: largest error" in text
    assert "8194 hard and random inputs" in text
    assert "block norm mean gradient" in text
    assert (directory / "m.safetensors").exists()


def test_weights_that_fail_are_not_written(call, directory, monkeypatch):
    def spoilt(*_, **__):
        return Verification(0.5, 64, True, exact=False, kept=False)

    monkeypatch.setattr(fourier_verification, "verify_fourier", spoilt)
    monkeypatch.setattr("genscope.constructions.verify_fourier", spoilt)
    result = call(*G1, "--out", "model.safetensors", "--json", status=1)
    assert not json.loads(result.stdout)["verified"]
    assert "drop the smallest" in result.stderr
    assert not list(directory.iterdir())


@pytest.mark.parametrize(
    ("components", "advice"),
    [
        ("0,1:0.6;2,x:0.8", "'2,x:0.8' at character 8"),
        ("0,1", "Rewrite it in that form"),
        ("0,1:0.6;", "Rewrite it in that form"),
        ("0;1:0.6", "Rewrite it in that form"),
        ("", "Rewrite it in that form"),
        ("0,,1:0.6", "Rewrite it in that form"),
        ("-1:0.6", "Rewrite it in that form"),
        ("\N{ARABIC-INDIC DIGIT THREE}:1", "Rewrite it in that form"),
        ("9" * 5000 + ":1", "Rewrite it in that form"),
        ("0,6:1", "numbers from 0 to 5"),
        ("0,0:1", "distinct"),
        ("0:x", "is not a number"),
        ("0:", "is not a number"),
        ("0:nan", "is not a number"),
        ("0:1:2", "is not a number"),
        ("0:1e999", "between 1e-30 and 1e30"),
        ("0:0", "Leave out zeros"),
        ("0,1:1;1,0:2", "Add up"),
        (";".join(f"{i},{j}:1" for i in range(6) for j in range(i)), "drop the smallest components"),
    ],
)
def test_components_that_make_no_sense(refused, components, advice):
    assert advice in refused("construct", "fourier", "--components", components, "--context-length", 6)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (("--context-length", 0), "Correct it"),
        (("--context-length", 513), "Correct it"),
        (("--context-length", 6, "--seed", -1), "Correct it"),
        (("--context-length", 6, "--inactive", 2), "Correct "),
        (("--context-length", 6, "--out", "missing/model.safetensors"), "create the directory first"),
    ],
)
def test_options_that_make_no_sense(refused, options, advice):
    assert advice in refused("construct", "fourier", "--components", "0:1", *options)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([*"0123,:;.-+ex ", "nan", "1e300", "é"]), max_size=12).map("".join))
def test_no_components_end_in_a_traceback(components):
    """On no bits at all, so that what could be built is refused too, without waiting."""
    result = invoke("construct", "fourier", f"--components={components}", "--context-length=0")
    assert result.exit_code == 2
    result = invoke("construct", "fourier", f"--components={components};", "--context-length=4")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
