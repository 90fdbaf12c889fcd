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


def test_importing_genscope_loads_nothing_else():
    code = (
        "import sys, genscope; assert not {'jax', 'numpy', 'polars', 'sqlalchemy', 'scipy', 'typer'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
