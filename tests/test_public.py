import subprocess
import sys

import pytest

import genscope


def test_every_public_name_can_be_reached():
    for name in dir(genscope):
        assert getattr(genscope, name) is not None
    assert genscope.Store is genscope.lab.Store
    with pytest.raises(AttributeError, match="has no attribute 'bound'"):
        genscope.bound  # noqa: B018


@pytest.mark.parametrize("package", ["lab", "claims", "report"])
def test_a_package_lists_its_public_names_and_nothing_else(package):
    assert package in dir(genscope)
    module = getattr(genscope, package)
    assert dir(module) == sorted(module.__all__)
    for name in dir(module):
        assert getattr(module, name) is not None


def test_importing_genscope_loads_nothing_else():
    code = (
        "import sys, genscope; assert not {'jax', 'numpy', 'polars', 'sqlalchemy', 'scipy', 'typer'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
