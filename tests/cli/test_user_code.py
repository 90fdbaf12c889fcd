"""References to the user's functions, and whose fault a failure is."""

import importlib.util
import sys

import pytest
import typer

from genscope import fourier
from genscope.cli._errors import guarded
from genscope.cli._user_code import imported, users_code


@pytest.fixture
def module(directory, monkeypatch):
    """A module of the user's in the current directory; its name."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = []

    def write(text, name="their_module"):
        (directory / f"{name}.py").write_text(text)
        names.append(name)
        return name

    yield write
    for name in names:
        sys.modules.pop(name, None)


def run(command):
    """The status a command would end with, run as the program runs it."""
    with pytest.raises(typer.Exit) as end:
        guarded(command)()
    return end.value.exit_code


def test_a_function_is_found_in_the_current_directory(module):
    name = module(
        "class Models:\n    @staticmethod\n    def double(x):\n        return 2 * x\n\ntriple = lambda x: 3 * x"
    )
    assert imported(f"{name}:triple")(2) == 6
    assert imported(f"{name}:Models.double")(2) == 4


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("x0 & x1", "it must look like package.module:function"),
        ("file.py:function", "cannot open file.py"),
        ("absent_module:function", "no module 'absent_module'"),
        ("os.absent:function", "no module 'os.absent'"),
        ("math:sqroot", "Did you mean sqrt"),
        ("math:pi", "of type float: it must be callable"),
    ],
)
def test_references_that_name_nothing_are_refused(reference, said, capsys):
    assert run(lambda: imported(reference) and None) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


def test_a_module_that_cannot_be_loaded_shows_its_own_frames(module, capsys):
    name = module("import absent_dependency")
    assert run(lambda: imported(f"{name}:f") and None) == 1
    told = capsys.readouterr().err
    assert "line 1, in <module>" in told
    assert "No module named 'absent_dependency'" in told
    assert "genscope/cli" not in told


@pytest.mark.parametrize(
    ("package", "missing", "advice"),
    [
        ("torch", {"torch", "torchax"}, "this needs torch, torchax, from genscope's extra torch"),
        ("torchax.ops", {"torchax"}, "this needs torchax, from genscope's extra torch"),
        (
            "transformers",
            {"torch", "torchax", "transformers"},
            "this needs torch, torchax, from genscope's extra torch",
        ),
        ("transformers", {"transformers"}, "Run pip install transformers"),
    ],
)
def test_pytorch_that_is_not_installed(module, monkeypatch, capsys, package, missing, advice):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else find("math"))
    text = f"raise ModuleNotFoundError({package!r}, name={package!r})"  # whatever is installed here
    assert run(lambda: imported(f"{module(text)}.py:f") and None) == 2
    told = capsys.readouterr().err
    assert f"their_module.py imports {package.partition('.')[0]}, which is not installed" in told
    assert advice in told
    assert "Traceback" not in told


def test_a_mistake_of_syntax_is_shown_alone(module, capsys):
    name = module("x = 1\ndef (")
    assert run(lambda: imported(f"{name}:f") and None) == 1
    told = capsys.readouterr().err
    assert "line 2" in told
    assert "genscope/cli" not in told
    assert "importlib" not in told


@pytest.mark.parametrize("text", ["1 / 0", "raise ValueError('theirs')", "raise SystemExit(0)"])
def test_failures_in_the_users_code_show_its_own_frames(module, capsys, text):
    name = module(f"def inner(x):\n    {text}\n\ndef outer(x):\n    return inner(x)")
    function = imported(f"{name}:outer")

    def command():
        with users_code(f"{name}:outer"):
            list(map(function, [1]))

    assert run(command) == 1
    told = capsys.readouterr().err
    assert f"{name}:outer failed" in told
    assert "in outer" in told
    assert "in inner" in told
    assert "genscope/cli" not in told


def test_a_refusal_of_genscope_inside_the_users_code_is_theirs(module, capsys):
    name = module("from genscope import fourier\n\ndef f(x):\n    return fourier.parse('x0 &')")
    function = imported(f"{name}:f")

    def command():
        with users_code(name):
            function(0)

    assert run(command) == 1
    assert "in f" in capsys.readouterr().err


def test_a_function_without_frames_is_shown_whole(capsys):
    def command():
        with users_code("operator:neg"):
            imported("operator:neg")("text")

    assert run(command) == 1
    assert "bad operand type" in capsys.readouterr().err


def test_refusals_of_genscope_and_interrupts_pass(monkeypatch, capsys):
    monkeypatch.setattr("genscope.cli._user_code._is_users", lambda frame, module: False)  # this file is no user's
    with pytest.raises(ValueError, match="expression"), users_code("math:sqrt"):
        fourier.parse("x0 &")
    with pytest.raises(KeyboardInterrupt), users_code("math:sqrt"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == ""
