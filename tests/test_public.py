import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

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


def test_a_class_name_has_one_meaning():
    files = Path(genscope.__file__).parent.rglob("*.py")
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert names["Study"] == 1
    # Both are in claims, where a new name would change the digests of rules that are already written down.
    assert [name for name, count in names.items() if count > 1] == ["Coefficient"]
