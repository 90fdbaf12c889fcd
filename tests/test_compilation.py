import ast
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope import compilation
from genscope.compilation import FASTER, ONCE, compiled_faster, jit, known

ROOT = Path(__file__).parents[1]
UNKNOWN = {"xla_cpu_no_such_option": False}


def test_only_options_that_the_compiler_knows_are_passed_on():
    sure = {"xla_backend_optimization_level": 0}  # of every compiler from JAX 0.10 on
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_cpu_no_such_option"):
        jax.jit(lambda x: x + 1, compiler_options=UNKNOWN)(1.0)
    assert known(UNKNOWN | sure) == sure
    assert jit(lambda x: x + 1, compiler_options=UNKNOWN)(1.0) == 2.0


@pytest.mark.parametrize("options", [FASTER, ONCE, FASTER | UNKNOWN])
def test_options_change_no_number(options):
    def program(key):
        bits = jr.bernoulli(key, 0.5, (50,))
        return bits, jr.normal(key, (50,)) ** 2

    bits, squares = jit(program, compiler_options=options)(jr.key(0))
    same_bits, same_squares = program(jr.key(0))
    assert (bits == same_bits).all()
    np.testing.assert_allclose(squares, same_squares, rtol=1e-5)


def test_a_program_does_what_those_of_jax_do():
    double = jit(lambda x, *, times: x * times, compiler_options=ONCE, static_argnames="times")
    lowered = double.lower(jnp.ones(3), times=2)
    assert (lowered.compile()(jnp.ones(3)) == 2).all()
    assert double.eval_shape(jnp.ones(3), times=2).shape == (3,)
    assert compiled_faster(lambda x, name: {name: x + 1})(jnp.zeros(()), "not an array") == {"not an array": 1.0}


def test_the_compiler_is_asked_when_a_program_is_needed_and_not_before():
    """JAX starts when it is asked, and a trial has to say how many threads it may have before."""
    program = """
import jax
from jax._src import xla_bridge
from genscope.compilation import ONCE, jit
made = jit(lambda x: x + 1, compiler_options=ONCE)
import genscope.measure, genscope.studies
assert not xla_bridge.backends_are_initialized()
made(1.0)
assert xla_bridge.backends_are_initialized()
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, timeout=120)


def test_no_other_file_passes_options_to_jax_itself():
    for file in sorted((ROOT / "src").rglob("*.py")):
        calls = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
        for call in calls:
            words = {word.arg for word in call.keywords}
            spelled = {ast.unparse(part) for part in (call.func, *call.args[:1])}
            assert "compiler_options" not in words or file.name == "compilation.py" or "jit" in spelled, ast.unparse(
                call
            )


@pytest.mark.skipif(not compilation.MAPS.exists(), reason="the maps of a process are Linux's")
def test_programs_are_forgotten_before_a_process_dies_of_them(monkeypatch, tmp_path):
    """Every program keeps maps; a limit that stands for the system's is half full after some of them."""

    def maps():
        return len(compilation.MAPS.read_bytes().splitlines())

    most = tmp_path / "max_map_count"
    monkeypatch.setattr(compilation, "MOST_MAPS", most)
    monkeypatch.setattr(compilation, "_EVERY", 3600.0)  # however slow the machine
    jax.clear_caches()
    most.write_text(str(2 * (before := maps()) + 60))
    programs = [jax.jit(lambda x, i=i: jnp.sin(x) + i) for i in range(30)]
    assert not compilation.make_room(now=True)
    for program in programs:
        program(jnp.ones(7))
    assert maps() > before + 30
    assert not compilation.make_room()  # it has just looked
    assert compilation.make_room(now=True)
    assert maps() < before + 30
    assert float(programs[5](jnp.zeros(()))) == 5.0
