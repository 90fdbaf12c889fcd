"""Two functions share a digest only if they compute the same, and keep it from one process to the next."""

import functools
import subprocess
import sys
import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from genscope.questions.identity import digest
from genscope.questions.user_files import local

SIZE = 3


def make(width, *rest, start=np.zeros):
    inner = functools.partial(start, width)

    def build(key, context_length, depth=rest):
        return inner(), depth

    return build


class Builder(eqx.Module):
    weights: jax.Array

    def __call__(self, key, context_length):
        return self.weights * SIZE


class Slotted:
    __slots__ = ("width",)

    def __init__(self, width):
        self.width = width

    def __call__(self, key, context_length):
        return self.width

    def other(self, key, context_length):
        return -self.width


def classes(width):
    class Net:
        size = width

        def __call__(self, x):
            return x + width

    return lambda key, context_length: Net()


def doubled(x):
    return 2 * x


def with_helper(key, context_length):
    return doubled(SIZE)


def with_list(*values):
    held = list(values)
    return lambda key, context_length: held


@pytest.mark.parametrize(
    "given",
    [
        make,
        functools.partial(make, start=np.ones),
        lambda width: functools.partial(make, width),
        lambda width: make(1, width),
        lambda width: make(np.arange(width)),
        lambda width: make({"a": [width]}),
        lambda width: make(jax.random.key(width)),
        lambda width: make({width, 0}),
        lambda width: Builder(jnp.ones(3) * width),
        Slotted,
        lambda width: Slotted(width).other,
        lambda width: jax.jit(make(width)),
        lambda width: eqx.filter_jit(make(width)),
        classes,
        with_list,
    ],
)
def test_what_a_function_holds_is_part_of_it(given):
    one, again, other = (digest(given(width)) for width in (5, 5, 6))
    assert one == again
    assert one != other


def test_networks_of_one_builder_are_kept_apart():
    narrow, wide = local(make(1)), local(make(32))
    assert narrow.label != wide.label
    assert [file.call(jax.random.key(0), 4)[0].shape for file in (narrow, wide)] == [(1,), (32,)]


def test_parts_of_one_line_and_of_one_object_are_told_apart():
    pair = [lambda key, length: key, lambda key, length: length]
    assert digest(pair[0]) != digest(pair[1])
    assert digest(Slotted(1)) != digest(Slotted(1).other)
    assert digest(functools.partial(make, 1)) != digest(functools.partial(make, width=1))


def test_globals_and_helpers_of_the_same_module_are_part_of_a_function(monkeypatch):
    before = digest(with_helper)
    monkeypatch.setitem(globals(), "SIZE", 4)
    changed = digest(with_helper)
    monkeypatch.setitem(globals(), "doubled", lambda x: 3 * x)
    assert len({before, changed, digest(with_helper)}) == 3


def test_a_function_that_refers_to_itself_has_a_digest():
    def build(key, context_length):
        return build

    assert digest(build) == digest(build)


def test_what_cannot_be_saved_is_unlike_all_others():
    lock = threading.Lock()

    def build(key, context_length):
        return lock

    assert digest(build) != digest(build)


def test_another_process_finds_the_same_digest():
    code = (
        "from tests.questions.test_identity import *\n"
        "print(*map(digest, (make(5), Slotted(5), classes(5), with_helper, Builder(jnp.ones(3)), make({'a', 'b'}))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = map(digest, (make(5), Slotted(5), classes(5), with_helper, Builder(jnp.ones(3)), make({"a", "b"})))
    assert done.stdout.split() == list(here)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("helper.py", "2 * x", "3 * x"),
        ("deeper.py", "SCALE = 1", "SCALE = 2"),
        ("whole.py", "= 5", "= 6"),
    ],
)
def test_the_users_modules_that_it_imports_are_part_of_a_function(tmp_path, file, old, new):
    """Named, imported further on, or used as a whole; an answer of before the edit would be a stale one."""
    (tmp_path / "deeper.py").write_text("SCALE = 1\n")
    (tmp_path / "helper.py").write_text("import deeper\n\ndef doubled(x):\n    return 2 * x * deeper.SCALE\n")
    (tmp_path / "whole.py").write_text("WIDTH = 5\n")
    script = tmp_path / "mine.py"
    script.write_text(
        "import whole\nfrom helper import doubled\nfrom genscope.questions.identity import digest\n\n"
        "def build(key, context_length):\n    return doubled(context_length) + whole.WIDTH\n\n"
        "print(digest(build))\n"
    )

    def told():
        return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout

    before = told()
    assert told() == before
    text = (tmp_path / file).read_text()
    (tmp_path / file).write_text(text.replace(old, new))
    assert told() != before
