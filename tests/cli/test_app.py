import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest
import typer

import genscope
from genscope.cli import _errors, _options
from genscope.cli._app import COMMANDS, load
from genscope.lab import Store
from genscope.lab.plans.study import BUDGETS
from genscope.lab.storage.store import DEFAULT_URL
from tests.checkpoints import files
from tests.cli.program import TOYS

ROOT = Path(__file__).parents[2]
QUICK = ["bound", "vc-cover", "--vc-dimension", "5", "--points", "100"]  # a command that starts at once


def test_help_lists_every_command_and_shows_an_example_of_each(call):
    listed = call("--help").stdout
    for name in COMMANDS:
        assert name in listed
        if name != "store":
            assert f"Example: genscope {name}" in call(name, "--help").stdout
    assert "Example: genscope store copy" in call("store", "copy", "--help").stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_command_says_first(name):
    assert COMMANDS[name] == (load(name).help or "").partition("\n\n")[0]


def test_help_flows_and_keeps_brackets(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert "takes a batch [n, T] or one input [T]" in call("probe", "--help").stdout
    assert "measure the risk on the data, and the divergence" in call("certify", "--help").stdout


@pytest.mark.parametrize(
    "words",
    [[], *([name] for name in COMMANDS), ["store", "copy"], ["bound"], ["bound", "head"], ["construct", "fourier"]],
)
def test_flags_show_no_value_and_required_arguments_no_braces(words, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = call(*words, "--help").stdout
    flag = next(line for line in told.splitlines() if "--help " in line and "Show this message" in line)
    assert flag.strip("│ ").split()[:2] == ["--help", "Show"]
    assert "<bool>" not in told
    assert not any("{" in line for line in told.splitlines() if "Usage:" in line)
    assert max(map(len, told.splitlines())) <= 80


def test_version(call):
    assert call("--version").stdout == f"genscope {genscope.__version__}\n"


def test_a_shell_can_complete_commands_and_the_guide_says_how(monkeypatch):
    for name, value in {"_GENSCOPE_COMPLETE": "complete_bash", "COMP_WORDS": "genscope bo", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    told = subprocess.run([sys.executable, "-m", "genscope"], capture_output=True, text=True, check=False)
    assert told.stdout.split() == ["bound"]
    assert "genscope --install-completion" in (ROOT / "docs" / "guide.md").read_text()


def test_an_unknown_command_or_option_is_refused_with_the_nearest(call):
    assert "No such command 'rnu'. Did you mean 'run'?" in call("rnu", status=2).stderr
    assert "No such option: --sed" in call("run", "x", "--sed", "3", status=2).stderr
    assert "quick" in call("run", "x", "--budget", "huge", status=2).stderr
    call(status=2)


def test_options_agree_with_the_library():
    assert _options.DEFAULT_STORE == DEFAULT_URL
    assert get_args(_options.Budget) == BUDGETS


def test_a_command_to_repeat_names_the_store_unless_it_is_the_default():
    assert _options.store_option(_options.DEFAULT_STORE, "sqlite:///genscope.db") == ""
    given, shown = "postgresql://me:secret@host/runs", "postgresql://me:***@host/runs"
    assert _options.store_option(given, shown) == f" --store '{shown}'"


def test_commands_that_need_no_jax_do_not_load_it(call, directory):
    call("run", f"{TOYS}:study", "--budget", "quick", "--where", "size=1,2")
    files.save(directory / "model.safetensors", files.bert(files.draw()))
    requests = [
        ["--help"],
        ["run", "--help"],
        ["--version"],
        ["report"],
        ["figure", "toy", "--out", "figure.svg"],
        ["export", "toy"],
        ["probe", "x0 & x1", "--bits", "4"],
        ["store", "copy", DEFAULT_URL, f"sqlite:///{directory}/copy.db"],
        [*QUICK, "--vary", "points=100:1000", "--plot", "curve.svg"],
        ["checkpoint", "model.safetensors", "--heads", f"{files.HEADS}", "--plot", "norms.svg"],
    ]
    code = (
        "import json, sys; from genscope.cli._app import app\n"
        "for request in json.loads(sys.argv[1]):\n"
        "    try: app(request)\n"
        "    except SystemExit as end: assert not end.code, (request, end.code)\n"
        "    assert 'jax' not in sys.modules, f'{request} loads JAX'"
    )
    subprocess.run([sys.executable, "-c", code, json.dumps(requests)], check=True, capture_output=True)
    assert (directory / "copy.db").exists()


def test_help_loads_neither_tables_nor_databases():
    code = "import sys, genscope.cli; assert not {'polars', 'sqlalchemy', 'numpy', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_start_loads_only_what_studies_are_made_of():
    # The others are as slow to load as JAX, or nearly; a start takes two seconds at most.
    unwanted = {"scipy.special", "scipy.stats", "scipy.optimize", "matplotlib", "plotly", "jinja2", "starlette", "dask"}
    code = (
        "import gc, sys; from genscope.cli._app import app\n"
        "try: app(['list', '--json'])\n"
        f"except SystemExit: sys.exit(' '.join({unwanted} & {{*sys.modules}}) or not gc.isenabled())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("fault", [lambda: Store("nonsense"), lambda: os.stat("not there"), lambda: "\ud800".encode()])
def test_a_bad_request_is_a_message(fault, capsys):
    with pytest.raises(typer.Exit) as end:
        _errors.guarded(fault)()
    assert end.value.exit_code == 2
    assert capsys.readouterr().err.startswith("genscope: ")


@pytest.mark.parametrize("fault", [lambda: int("three"), lambda: len(3), lambda: 1 / 0])
def test_a_bug_of_ours_is_no_message_and_says_how_to_report_it(fault, capsys):
    with pytest.raises((ValueError, TypeError, ZeroDivisionError)) as raised:
        _errors.guarded(fault)()
    assert raised.value.__notes__ == [_errors.BUG]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Term")]
)
def test_an_interrupted_run_says_so_and_goes_on_later(number, status, word, program, call_json, directory):
    process = program("run", f"{TOYS}:slow")
    store = directory / "genscope.db"
    deadline = time.monotonic() + 120
    while not (store.exists() and _trials(store) >= 4):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.2)  # to look is work too
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == status
    assert out == ""
    assert f"{word}" in err.splitlines()[-1]
    assert f"Every finished trial is stored in sqlite:///{store}; the same command continues" in err
    assert "Traceback" not in err
    stored = _trials(store)
    assert 4 <= stored < 400
    facts = call_json("run", f"{TOYS}:slow", "--seeds", 20)
    assert facts["trials"] == 20
    assert facts["new_trials"] <= 20 - min(stored, 20) + 2


def _trials(path):
    try:
        with Store(f"sqlite:///{path}", read_only=True) as store:
            return len(store.done("toy-slow"))
    except (OSError, ValueError):  # not yet made
        return 0


@pytest.mark.parametrize(("arguments", "status"), [(QUICK, 141), (["run", "--help"], 1)])
def test_a_reader_that_has_gone_is_met_with_silence(arguments, status):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "genscope", *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.returncode == status
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full is Linux's")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [QUICK, ["--help"], ["--version"], ["bound", "--help"]])
def test_a_full_disk_is_a_message(arguments, unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "genscope", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("genscope: standard output, or a file, could not be written (No space left on")
    assert done.stderr.count("\n") == 1


def test_progress_without_a_terminal_is_a_line_at_the_start_and_one_at_the_end(call):
    result = call("run", f"{TOYS}:study", "--budget", "quick", "--json")
    first, *_, last = result.stderr.splitlines()
    assert first == "toy: 0 of 1 trials, compiling, size=1 kind=good"
    assert last.startswith("toy: 1 of 1 trials, ")
    assert last.endswith("trials/s, done") or last.endswith("s/trial, done")


def test_a_store_that_is_removed_during_a_run_is_a_message(program, directory):
    process = program("run", f"{TOYS}:slow", "--workers", "1")
    deadline = time.monotonic() + 60
    while _trials(file := directory / "genscope.db") < 1:
        assert time.monotonic() < deadline, "no trial was stored"
        time.sleep(0.1)
    file.unlink()
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (2, ""), stderr
    assert f"The store {file} was removed or replaced while it was in use" in stderr
    assert "Traceback" not in stderr
    assert not file.exists()


def test_a_disk_that_fills_up_during_a_run_loses_nothing(call_json, directory):
    limited = (
        "import resource, runpy\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))\n"
        "runpy.run_module('genscope', run_name='__main__')"
    )
    command = [sys.executable, "-c", limited, "run", f"{TOYS}:slow", "--seeds", "300"]
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}  # it would meet the limit as well
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "everything committed so far is safe" in done.stderr
    assert "Traceback" not in done.stderr
    stored = _trials(directory / "genscope.db")
    assert 0 < stored < 300
    assert call_json("run", f"{TOYS}:slow", "--seeds", stored)["new_trials"] <= 2
