import types

import pytest

from genscope.lab import Study
from genscope.lab.execution.reference import _place, load, refer, resolve
from tests.lab import toys

TEXT = """
from genscope.lab import Study
def trial(key):
    return {"x": 1}
mine = Study(name="mine", title="", source="", trial=trial, points=[{}])
number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_file.py"
    path.write_text(TEXT)
    return path


def test_a_study_of_a_package_is_named_by_its_module():
    assert refer(toys.search) == "tests.lab.toys:search"
    assert resolve("tests.lab.toys:search") is toys.search


def test_a_study_of_a_file_is_named_by_its_path(file):
    study = load(file).mine
    assert refer(study) == f"{file}:mine"
    again = resolve(f"{file}:mine")
    assert again is not study
    assert (again.name, again.revision) == ("mine", 1)


def test_a_program_that_is_a_file_is_named_by_its_path_and_a_prompt_has_no_name(file):
    program = types.ModuleType("__main__")
    assert _place(program) is None
    program.__file__ = str(file)
    assert _place(program) == str(file)


def test_a_study_that_no_module_holds_is_refused():
    with pytest.raises(ValueError, match="Define it at the top level of a Python file"):
        refer(toys.fixed.replace(name="nowhere"))


def test_a_name_that_leads_elsewhere_is_refused(file):
    for name in ("number", "nothing"):
        with pytest.raises(ValueError, match="Copy the same file to this machine"):
            resolve(f"{file}:{name}")
    assert isinstance(resolve(f"{file}:mine"), Study)
