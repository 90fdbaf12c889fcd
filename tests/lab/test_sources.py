"""What counts as a change of the code that computes a trial, and what does not."""

import functools
import importlib
import importlib.metadata
import sys
import textwrap

import jax
import pytest

from genscope import studies
from genscope.lab import Study, grid
from genscope.lab.execution.provenance import LIBRARIES, provenance
from genscope.lab.execution.reference import load
from genscope.lab.plans.settings import settings
from genscope.lab.plans.sources import changed_parts, function_sources, sources
from tests.lab import toys

STUDY = '''
"""A study."""
import math
import jax
import numpy as np
import scaling.laws as laws
from helper import FACTOR, unused
from scaling import grown
from genscope import Study, grid
from genscope.random import stream

RATE = 0.5
OTHER = 3
jax.config.update("jax_platforms", "cpu")


def trial(key, size):
    """A trial."""
    # it multiplies
    from inner import deep
    return {"number": laws.power(size) * FACTOR * _rate() * grown(size) * deep(), "text": TEXT}


def _rate():
    return RATE


TEXT = """
# no comment
"""
study = Study(name="mine", title="", source="", trial=trial, points=grid(size=[1]))
'''
FILES = {
    "study_of_mine.py": STUDY,
    "helper.py": "FACTOR = 2\nunused = 1\n",
    "inner.py": "def deep():\n    return base() + 1\n\n\ndef base():\n    return 4\n",
    "scaling/__init__.py": "from scaling.growth import grown as grown\nfrom .laws import power\n",
    "scaling/growth.py": "import math\n\n\ndef grown(size):\n    return math.log(size)\n",
    "scaling/laws.py": "from . import settings\n\ndef power(size):\n    return size**settings.EXPONENT\n",
    "scaling/settings.py": "EXPONENT = 2\nTITLE = 'a power'\n",
}


@pytest.fixture
def look(tmp_path, monkeypatch):
    """The sources of the study, after some texts were replaced."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def look(file="", old="", new=""):
        for name, text in FILES.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            assert name != file or text.count(old) == 1
            (tmp_path / name).write_text(text.replace(old, new) if name == file else text)
        for name in [*sys.modules]:
            if name.partition(".")[0] in ("helper", "inner", "scaling"):
                monkeypatch.delitem(sys.modules, name)
        importlib.invalidate_caches()
        return sources(load(tmp_path / "study_of_mine.py").study)

    return look


def test_the_users_modules_and_ours_are_followed_and_others_not(look):
    found = {*look().parts}
    mine = {"helper.py", "inner.py", "scaling/growth.py", "scaling/laws.py", "scaling/settings.py", "study_of_mine.py"}
    assert found == mine | {"Study(paired, stacked)"}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("study_of_mine.py", "RATE = 0.5", "RATE = 0.6"),
        ("study_of_mine.py", "return RATE", "return 2 * RATE"),
        ("study_of_mine.py", "# no comment", "# a comment"),
        ("study_of_mine.py", '"jax_platforms", "cpu"', '"jax_debug_nans", False'),
        ("helper.py", "FACTOR = 2", "FACTOR = 3"),
        ("inner.py", "return 4", "return 5"),
        ("scaling/growth.py", "math.log(size)", "math.log2(size)"),
        ("scaling/settings.py", "EXPONENT = 2", "EXPONENT = 3"),
    ],
)
def test_a_change_of_what_computes_is_seen_and_its_file_named(look, file, old, new):
    before, after = look(), look(file, old, new)
    assert before.digest != after.digest
    assert changed_parts(before.parts, after.parts) == [file]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("study_of_mine.py", "size=[1]", "size=[1, 2]"),
        ("study_of_mine.py", "OTHER = 3", "OTHER = 4"),
        ("study_of_mine.py", '"""A trial."""', '"""A trial, explained."""'),
        ("study_of_mine.py", "    # it multiplies\n", "\n"),
        ("helper.py", "unused = 1", "unused = 2"),
        ("scaling/settings.py", "'a power'", "'power'"),
    ],
)
def test_a_new_point_title_or_comment_is_no_change(look, file, old, new):
    assert look().parts == look(file, old, new).parts


def test_what_decides_keys_and_stacking_belongs_to_it():
    study = Study(name="s", title="", source="", trial=first, points=grid(size=[1]))
    assert sources(study) != sources(study.replace(paired=frozenset({"size"})))
    assert sources(study) != sources(study.replace(stacked=True))
    assert sources(study) == sources(study.replace(batch=8, seeds=7, title="another"))


def first(key, size):
    return {"number": size}


def test_partial_applications_count_their_arguments():
    made = [function_sources(functools.partial(first, size=size)) for size in (1, 2)]
    assert made[0] != made[1]
    assert changed_parts(made[0].parts, made[1].parts) == ["bound arguments"]


def test_a_function_without_a_name_of_its_own_stands_for_its_whole_file():
    study = Study(name="s", title="", source="", trial=lambda key: {}, points=grid(x=[1]))
    assert {"test_sources.py", "Study(paired, stacked)"} <= {*sources(study).parts}


def test_a_function_that_was_typed_in_has_no_sources():
    typed = {}
    exec(textwrap.dedent("def trial(key):\n    return {}\n"), typed)
    assert function_sources(typed["trial"]) is None


def test_shipped_studies_rest_on_what_they_train_and_not_on_machinery():
    by_name = {study.name: {*sources(study).parts} for study in studies.ALL}
    assert "genscope/models/bit_classifier.py" in by_name["edelman2022-and"]
    assert "genscope/train/fit.py" in by_name["edelman2022-and"]
    assert "genscope/models/bit_transformer.py" not in by_name["edelman2022-and"]
    assert not [part for parts in by_name.values() for part in parts if part.startswith("genscope/lab/execution")]
    assert all(len(parts) > 2 for parts in by_name.values())


def test_settings_of_jax_that_change_numbers_count_as_code():
    before = sources(toys.fixed)
    assert settings() == {}  # so that nothing is said of rows that were stored without them
    with jax.enable_x64(True):
        assert sources(toys.fixed) == before  # other threads, which compute the trials, do not see it
    jax.config.update("jax_default_matmul_precision", "highest")
    try:
        now = sources(toys.fixed)
        assert settings() == provenance()["settings"] == {"jax_default_matmul_precision": "highest"}
    finally:
        jax.config.update("jax_default_matmul_precision", None)
    assert before is not None
    assert now is not None
    assert changed_parts(before.parts, now.parts) == ["JAX's setting jax_default_matmul_precision=highest"]
    assert "settings" not in provenance()


def test_installed_packages_that_the_users_file_imports_are_named_with_their_versions(look):
    found = look("study_of_mine.py", "import math\n", "import math\nimport yaml.nodes\nfrom hypothesis import given\n")
    assert {"math", "yaml", "hypothesis", "jax", "helper", "genscope"} <= found.packages
    libraries = provenance(sources=found)["libraries"]
    assert {*libraries} == {*LIBRARIES, "yaml", "hypothesis"}
    assert libraries["yaml"] == importlib.metadata.version("PyYAML")
    assert found.digest == look().digest  # a name that the trial does not use is no change
