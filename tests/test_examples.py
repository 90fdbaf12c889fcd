"""The examples that are programs run, smaller than they are."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.slow
def test_the_certificate_of_the_example_says_something(capsys):
    spec = importlib.util.spec_from_file_location("certify_my_model", EXAMPLES / "certify_my_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(size=10_000, steps=300)
    assert "not vacuous" in capsys.readouterr().out
