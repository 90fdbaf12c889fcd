"""What counts as a change of the code that computes a trial, and what does not."""

import importlib
import importlib.metadata
import sys

import jax
import pytest

from genscope import studies
from genscope.lab import Study, grid
from genscope.lab.execution.provenance import LIBRARIES, provenance
from genscope.lab.execution.reference import load
from genscope.lab.plans import settings as settings_module
from genscope.lab.plans.settings import settings
from genscope.lab.plans.sources import changed_parts, file_sources, left_behind, sources
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
    of_tests = {f"JAX's setting {name}={value}" for name, value in settings().items()}
    assert found == mine | {"Study(paired, stacked)"} | of_tests


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


def test_a_function_without_a_name_of_its_own_stands_for_its_whole_file():
    study = Study(name="s", title="", source="", trial=lambda key: {}, points=grid(x=[1]))
    assert {"test_sources.py", "Study(paired, stacked)"} <= {*sources(study).parts}


HEAD = "from genscope import Study, grid\n"
PLAIN = "def trial(key, n):\n    return {'number': n * f()}\n"
STUDY_OF = 'study = Study(name="toy", title="", source="", trial={}, points=grid(n=[2]))\n'
ONE = "def f():\n    return 1\n"
PACKAGE = {"mine/pkg/__init__.py": "from . import sub\n"}
LATER = "from genscope.lab import run\ntry:\n    run()\nexcept TypeError:\n    h.RATE = 1\n"
RATED = "RATE = 0\ndef set_up(rate):\n    global RATE\n    RATE = rate\n"
RATED += "def trial(key, n):\n    return {'number': RATE}\n"
SET_UP = {"state": "X = 0\n", "setup_it": "import state\nstate.X = 1\n"}
REGISTRY = "RULES = {}\ndef register(f):\n    RULES[f.__name__] = f\n    return f\n"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The sources of a study in files, and what its trial measures; `library` is on the path as well."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "library"), *sys.path])
    # Python takes an edit within the second of its last compilation, of as many bytes, for none.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def made(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        before = {*sys.modules}
        importlib.invalidate_caches()
        try:
            study = load(tmp_path / "mine" / "s.py").study
            return sources(study), study.trial(None, n=2)
        finally:
            for name in {*sys.modules} - before:
                del sys.modules[name]

    (tmp_path / "library").mkdir()
    return made


def study(text, trial="trial", **others):
    helpers = {f"mine/{name.replace('__', '/')}.py": helper for name, helper in others.items()}
    return {"mine/s.py": HEAD + text + STUDY_OF.format(trial), **helpers}


TWINS = {
    **study("from a.util import f as one\nfrom b.util import f as other\ndef f(): return one() + other()\n" + PLAIN),
    "library/a/util.py": ONE,
    "library/b/util.py": ONE,
}


# The files of a study, one that is edited, and the edit (of 1 to 2 where none is given), by how the trial comes by it.
FORMS = {
    "import in try": (
        study("try:\n    from fast import f\nexcept ImportError:\n    from slow import f\n" + PLAIN, slow=ONE),
        "mine/slow.py",
    ),
    "import in if": (study("if len(HEAD := 'a'):\n    from slow import f\n" + PLAIN, slow=ONE), "mine/slow.py"),
    "import in with": (
        study("import contextlib\nwith contextlib.nullcontext():\n    from slow import f\n" + PLAIN, slow=ONE),
        "mine/slow.py",
    ),
    "star in try": (
        study("try:\n    from slow import *\nexcept ImportError:\n    f = None\n" + PLAIN, slow=ONE),
        "mine/slow.py",
    ),
    "try star": (study("try:\n    def f(): return 1\nexcept* ValueError:\n    pass\n" + PLAIN), "mine/s.py"),
    "match": (
        study("D = {}\nmatch 1:\n    case 1:\n        D.update(f=1)\nf = lambda: D['f']\n" + PLAIN),
        "mine/s.py",
        "f=1",
        "f=2",
    ),
    "not for type checkers": (
        study("from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    def f(): return 1\n" + PLAIN),
        "mine/s.py",
    ),
    "no program": (study("if __name__ != '__main__':\n    def f(): return 1\n" + PLAIN), "mine/s.py"),
    "else of a program": (
        study("if __name__ == '__main__':\n    f = None\nelse:\n    def f(): return 1\n" + PLAIN),
        "mine/s.py",
    ),
    "decorator in another file": (
        study(
            f"from h import logged\n@logged\n{ONE.replace('f()', 'trial(key, n)').replace('1', '{1: n}')}",
            h="def logged(f):\n    def wrapper(key, **kw):\n        return f(key, **kw)\n    return wrapper\n",
        ),
        "mine/s.py",
        "{1:",
        "{2:",
    ),
    "decorator that is edited": (
        study(
            "from h import base\nfrom d import logged\ntrial = logged(base)\n",
            h="def base(key, n):\n    return n\n",
            d="import functools\ndef logged(f):\n    @functools.wraps(f)\n"
            "    def wrapper(key, n):\n        return 1 * f(key, n)\n    return wrapper\n",
        ),
        "mine/d.py",
        "1 *",
        "2 *",
    ),
    "variable of a closure": (
        study(
            "from h import make\nWIDTH = 5\ntrial = make(WIDTH)\n",
            h="def make(w):\n    def trial(key, n):\n        return n * w\n    return trial\n",
        ),
        "mine/s.py",
        "5",
        "6",
    ),
    "state of a bound method": (
        study(
            "from h import E\nof = E(5)\n",
            trial="of.trial",
            h="class E:\n    def __init__(s, w): s.w = w\n    def trial(s, key, n): return n * s.w\n",
        ),
        "mine/s.py",
        "E(5)",
        "E(6)",
    ),
    "state of a callable object": (
        study(
            "from h import E\nof = E(5)\n",
            trial="of",
            h="class E:\n    def __init__(s, w): s.w = w\n    def __call__(s, key, n): return n * s.w\n",
        ),
        "mine/s.py",
        "E(5)",
        "E(6)",
    ),
    "array in a partial application": (
        study(
            "import functools\nimport numpy as np\nfrom h import base\nW = np.zeros(2000)\nW[1000] = 5\n",
            trial="functools.partial(base, w=W)",
            h="def base(key, n, w): return float(w.sum())\n",
        ),
        "mine/s.py",
        "= 5",
        "= 6",
    ),
    "function in a partial application": (
        study(
            "import functools\nfrom h import base\nfrom g import f\n",
            trial="functools.partial(base, rule=f)",
            h="def base(key, n, rule): return rule()\n",
            g=ONE,
        ),
        "mine/g.py",
    ),
    "registry": (
        study(
            "from h import RULES\ndef f(): return RULES['one']()\n" + PLAIN,
            h=REGISTRY + "@register\ndef one(): return 1\n",
        ),
        "mine/h.py",
    ),
    "registry of methods": (
        study(
            "from h import RULES\ndef f(): return RULES['one'](None)\n" + PLAIN,
            h=REGISTRY + "class Rules:\n    @register\n    def one(self): return 1\n    def one(self): return 3\n",
        ),
        "mine/h.py",
    ),
    "registry filled by an assignment": (
        study("from h import RULES\ndef f(): return RULES['f']()\n" + PLAIN, h=REGISTRY + ONE + "_ = register(f)\n"),
        "mine/h.py",
    ),
    "subclasses": (
        study(
            "class Base: pass\nclass A(Base):\n    def f(self): return 1\n"
            "def f(): return Base.__subclasses__()[0]().f()\n" + PLAIN
        ),
        "mine/s.py",
    ),
    "subclasses that register": (
        study(
            "from h import ALL\nimport rules\ndef f(): return ALL[0].f()\n" + PLAIN,
            h="ALL = []\nclass Base:\n    def __init_subclass__(cls): ALL.append(cls)\n",
            rules="from h import Base\nclass A(Base):\n    @staticmethod\n    def f(): return 1\n",
        ),
        "mine/rules.py",
    ),
    "module of that name": (
        study("import sys\ndef f(): return getattr(sys.modules[__name__], 'F')\nF = 1\n" + PLAIN),
        "mine/s.py",
        "F = 1",
        "F = 2",
    ),
    "globals": (study("def f(): return globals()['F']\nF = 1\n" + PLAIN), "mine/s.py", "F = 1", "F = 2"),
    "import for its effect": (
        study("import state\nimport setup_it\ndef f(): return state.X\n" + PLAIN, **SET_UP),
        "mine/setup_it.py",
    ),
    "package imported on the way": (
        {
            **study("from p.h import f\n" + PLAIN, p__st="X = 0\n", p__h="import p.st\ndef f(): return p.st.X\n"),
            "mine/p/__init__.py": "import p.st\np.st.X = 1\n",
        },
        "mine/p/__init__.py",
        "= 1",
        "= 2",
    ),
    "import for its effect inside the trial": (
        study("import state\ndef f():\n    import setup_it\n    return state.X\n" + PLAIN, **SET_UP),
        "mine/setup_it.py",
    ),
    "assertion": (
        study("D = []\ndef a():\n    D.append(1)\n    return 5\nassert a()\ndef f(): return D[0]\n" + PLAIN),
        "mine/s.py",
        "append(1)",
        "append(2)",
    ),
    "one of two files of one name": (TWINS, "library/a/util.py"),
    "the other of two files of one name": (TWINS, "library/b/util.py"),
    "form feed": (study("\f\n" + PLAIN + ONE), "mine/s.py"),
    "line separator": (study("SEPARATOR = '\u2028'\n" + PLAIN + ONE), "mine/s.py"),
    "two statements on a line": (
        study("from g import f as g\nlen('a'); f = g\n" + PLAIN, g=ONE),
        "mine/g.py",
    ),
    "docstring on the line of its function": (study("def f(): 'doc'; return 1\n" + PLAIN), "mine/s.py"),
    "byte order mark": (
        {name: "\ufeff" + text for name, text in study(ONE + PLAIN).items()},
        "mine/s.py",
    ),
    "part that a package imports": (
        {**study("import pkg\ndef f(): return pkg.sub.f()\n" + PLAIN, pkg__sub=ONE), **PACKAGE},
        "mine/pkg/sub.py",
    ),
    "part of such a package by name": (
        {**study("from pkg import sub\nf = sub.f\n" + PLAIN, pkg__sub=ONE), **PACKAGE},
        "mine/pkg/sub.py",
    ),
    "part that another part imports": (
        {**study("from pkg.a import f\n" + PLAIN, pkg__a="from . import sub\nf = sub.f\n", pkg__sub=ONE), **PACKAGE},
        "mine/pkg/sub.py",
    ),
    "module imported by its name": (
        study("import importlib\ndef f(): return importlib.import_module('slow').f()\n" + PLAIN, slow=ONE),
        "mine/slow.py",
    ),
    "module imported by a builtin": (study("f = __import__('slow').f\n" + PLAIN, slow=ONE), "mine/slow.py"),
    "setting made in the file of the study": (study("import h\nh.RATE = 1\n", trial="h.trial", h=RATED), "mine/s.py"),
    "call in the file of the study": (study("import h\nh.set_up(1)\n", trial="h.trial", h=RATED), "mine/s.py"),
    "setting made after a first run": (
        study("import h\n" + LATER, trial="h.trial", h=RATED),
        "mine/s.py",
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_edit_is_seen_however_the_trial_comes_by_it(made, form):
    files, file, *edit = form
    x, y = edit or ("1", "2")
    assert files[file].count(x) == 1
    (before, measured), (after, other) = made(files), made({**files, file: files[file].replace(x, y)})
    assert measured != other  # else the edit would be no change
    assert changed_parts(before.parts, after.parts)
    assert made(files)[0] == before


def test_another_encoding_is_read_as_python_reads_it(made):
    text = "# coding: latin-1\n" + HEAD + "def f(): return 'na\xefve'\n" + PLAIN + STUDY_OF.format("trial")
    [before, after] = (made({"mine/s.py": each.encode("latin-1")})[0] for each in (text, text.replace("'na", "'Na")))
    assert changed_parts(before.parts, after.parts) == ["s.py"]


def test_a_file_that_is_no_python_of_today_counts_with_all_its_bytes(made):
    files = study("def f():\n    if f is None:\n        import legacy\n    return 1\n" + PLAIN, legacy="print 'old'\n")
    (before, _), (after, _) = made(files), made({**files, "mine/legacy.py": "print 'new'\n"})
    assert changed_parts(before.parts, after.parts) == ["legacy.py"]


def test_a_sum_of_thousands_of_terms_is_followed(made):
    files = study(f"SIZES = {' + '.join(['[0]'] * 2000)}\n" + ONE + PLAIN)
    before, _ = made(files)
    assert made({"mine/s.py": files["mine/s.py"].replace("return 1", "return 2")})[0] != before


def test_what_no_trial_comes_by_is_no_change(made):
    text = (
        "import math\nimport h\nfrom functools import cache\n"
        + ONE
        + "@cache\ndef other(): return 3\nA = math.log(4)\n"
    )
    text += "def points(): return [2]\nif __name__ == '__main__':\n    print(5)\n" + PLAIN
    files = study(
        text, h="B = 6\nclass Unused:\n    @property\n    def c(self): 7\n    @c.setter\n    def c(self, _): 7\n"
    )
    files["mine/s.py"] = files["mine/s.py"].replace("n * f()", "n * f() if f else f.eval()")
    before, _ = made(files)
    for file, old, new in [("s.py", digit, "9") for digit in "345"] + [
        ("h.py", "6", "9"),
        ("h.py", "_): 7", "_): 9"),
        ("s.py", 'title=""', 'title="a"'),
    ]:
        assert files[f"mine/{file}"].count(old) == 1
        assert made({**files, f"mine/{file}": files[f"mine/{file}"].replace(old, new)})[0] == before


def test_what_trials_leave_behind_is_no_change_and_what_a_user_sets_is_one():
    """A memo that a cell of a notebook keeps; the next run of the same process would have been refused."""
    cell = {"__name__": "cell", "MEMO": {}, "RATE": 1}
    exec("def trial(key, n):\n    MEMO[n] = len(MEMO)\n    return {'number': RATE * n}", cell)
    typed = Study(name="typed", title="", source="", trial=cell["trial"], points=grid(n=[1]))
    before = sources(typed)
    for n in (1, 2):
        with left_behind(typed):
            typed.trial(None, n=n)
        assert sources(typed) == before
    cell["RATE"] = 2
    assert changed_parts(sources(typed).parts, before.parts) == ["what was typed in"]
    cell["RATE"] = 1
    assert sources(typed) == before
    cell["MEMO"].clear()
    assert sources(typed) == before


def test_the_docstring_of_a_function_that_was_typed_in_is_no_change():
    found = []
    for words in ("It doubles.", "It multiplies."):
        cell = {"__name__": "cell"}
        exec(f"def trial(key, n):\n    {words!r}\n    return {{'number': 2 * n}}", cell)
        found.append(sources(Study(name="typed", title="", source="", trial=cell["trial"], points=grid(n=[1]))))
    assert found[0] == found[1]


def test_what_a_program_does_with_results_is_no_change(made):
    """More seeds, another picture: the first thing that a user edits."""
    files = study(ONE + PLAIN)
    files["mine/s.py"] += (
        "from genscope.lab import run\nprint('begins')\ntry:\n    found = run(study, seeds=3)\nexcept TypeError:\n"
        "    found = {}\nfound['a'] = 4\nfor x in found:\n    print(x, 5)\nlen('axis')\n"
    )
    before, _ = made(files)
    for old, new in [("begins", "ends"), ("=3", "=4"), ("= 4", "= 5"), ("5)", "6)"), ("axis", "label")]:
        assert files["mine/s.py"].count(old) == 1
        assert made({"mine/s.py": files["mine/s.py"].replace(old, new)})[0] == before


def test_a_title_beside_a_call_of_the_users_own_is_no_change(made):
    files = study("from h import make\n", trial="make(5)", h="def make(w):\n    return lambda key, n: w\n")
    [before, title, width] = (
        made({**files, "mine/s.py": files["mine/s.py"].replace(*edit)})[0]
        for edit in [("", ""), ('title=""', 'title="a"'), ("make(5)", "make(6)")]
    )
    assert title == before
    assert width != before


def test_modules_that_a_file_imports_are_found_beside_it_and_itself_left_out(tmp_path):
    for name, text in {"net.py": "import math\nimport helper_beside\n", "helper_beside.py": "WIDTH = 1\n"}.items():
        (tmp_path / name).write_text(text)
    before, names = file_sources(tmp_path / "net.py")
    assert ({*before.parts}, names) == ({"helper_beside.py"}, ["helper_beside"])
    (tmp_path / "helper_beside.py").write_text("WIDTH = 20\n")
    assert file_sources(tmp_path / "net.py")[0] != before
    assert str(tmp_path) not in sys.path
    assert not file_sources(tmp_path / "helper_beside.py")[0].parts


def test_shipped_studies_rest_on_what_they_train_and_not_on_machinery():
    by_name = {study.name: {*sources(study).parts} for study in studies.ALL}
    assert "genscope/models/bit_classifier.py" in by_name["edelman2022-and"]
    assert "genscope/train/fit.py" in by_name["edelman2022-and"]
    assert "genscope/models/bit_transformer.py" not in by_name["edelman2022-and"]
    assert not [part for parts in by_name.values() for part in parts if part.startswith("genscope/lab/execution")]
    assert all(len(parts) > 2 for parts in by_name.values())


def test_settings_of_jax_that_change_numbers_count_as_code(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setattr(settings_module, "_DEFAULTS", {**settings_module._DEFAULTS, **settings()})  # those of the tests
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


def test_options_of_the_compiler_count_as_code_where_they_change_numbers(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_force_host_platform_device_count=2")
    assert "XLA_FLAGS" not in settings()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2 --xla_cpu_multi_thread_eigen=false")
    assert settings()["XLA_FLAGS"] == "--xla_cpu_max_isa=SSE4_2"


def test_installed_packages_that_the_users_file_imports_are_named_with_their_versions(look):
    found = look("study_of_mine.py", "import math\n", "import math\nimport yaml.nodes\nfrom hypothesis import given\n")
    assert {"math", "yaml", "hypothesis", "jax", "helper", "genscope"} <= found.packages
    libraries = provenance(sources=found)["libraries"]
    assert {*libraries} == {*LIBRARIES, "yaml", "hypothesis"}
    assert libraries["yaml"] == importlib.metadata.version("PyYAML")
    assert found.digest == look().digest  # a name that the trial does not use is no change
