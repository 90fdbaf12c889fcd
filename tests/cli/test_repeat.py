"""The printed command of a selection, parsed by the command line itself, selects it again."""

import html
import inspect
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from genscope.cli._app import app
from genscope.cli._lookup import find_selection
from genscope.lab import Selection, Store, select
from genscope.lab.execution.processes import _EndedError, _reason
from genscope.lab.plans.study import BUDGETS
from genscope.lab.results.again import again
from genscope.lab.storage.store import MACHINE_FAILED
from genscope.report import render
from genscope.studies import ALL

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_study.py"
CHEAPEST = sorted(ALL, key=lambda study: select(study, "quick").most * (study.trial_seconds("quick") or 10))[:3]


def parsed(command):
    """The study and the selection of a command."""
    program, *words = shlex.split(command)
    assert program == "genscope"
    group: Any = typer.main.get_command(app)
    name, found, rest = group.resolve_command(group.make_context("genscope", [*words]), words)
    options = found.make_context(name, rest).params
    return find_selection(**{name: options[name] for name in inspect.signature(find_selection).parameters})


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.name)
def test_the_command_of_every_plan_selects_it_again(study):
    for budget in BUDGETS:
        selection = select(study, budget)
        chosen, again = parsed(selection.command)
        assert chosen is study
        assert (again.id, again.request) == (selection.id, selection.request)


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.name)
def test_so_does_the_command_of_a_part_and_of_a_single_trial(study):
    last = dict(study.plan("quick").points[-1])
    part = select(study, "quick", where={axis: [value] for axis, value in last.items()})
    assert parsed(part.command)[1].id == part.id
    search = study.plan("quick").search
    single = last | ({search.axis: 37} if search else {})
    found = parsed(part.command_of(single, 5))[1]
    assert [dict(point) for point in found.points] == [single]
    assert (found.seeds, found.search) == (range(5, 6), None)


ODD = [
    1,
    2.5,
    10,
    True,
    "1",
    "true",
    "True",
    "2.5",
    "1_0",
    "nan",
    "",
    " x",
    "x ",
    "a,b",
    '"',
    '"a"',
    'a"b',
    "\\",
    "é\n",
    "no",
]
FILE = f"""
from genscope import Study, grid

def trial(key, **point):
    raise ValueError(repr(point))

odd = Study(name="odd", title="", source="", trial=trial, points=grid(value={ODD!r}))
ragged = odd.replace(name="ragged", points=[{{"a": 1}}, {{"a": 1, "b": 1}}, {{"a": 2, "b": 2}}])
numbers = odd.replace(name="numbers", points=grid(scale=[1, 2.5]))
"""


@pytest.fixture
def file(directory):
    (directory / "mine.py").write_text(FILE)
    return "mine.py"


def test_values_that_look_alike_or_have_commas_are_told_apart(file):
    _, whole = find_selection(f"{file}:odd", "standard", [], None, None)
    assert parsed(whole.command)[1].id == whole.id
    for value in ODD:
        [found] = parsed(whole.command_of({"value": value}, 3))[1].points
        assert (type(found["value"]), found["value"]) == (type(value), value)
    everything = f"value={','.join(json.dumps(each) if isinstance(each, str) else str(each) for each in ODD)}"
    _, every = find_selection(f"{file}:odd", "standard", [everything], None, None)
    assert every.id == whole.id
    again = Selection.from_facts("odd", 1, json.loads(json.dumps(every.facts())))
    assert again.command == every.command
    assert 'value=1,2.5,10,True,"1","true","True"' in every.command


def test_what_is_printed_of_ordinary_values_has_no_quotation_marks():
    study = next(study for study in ALL if study.name == "lintilhac2026-bounds")
    texts = [value for value in study.points[0].values() if isinstance(value, str)]
    assert texts
    assert '"' not in select(study).command_of(study.points[0], 0)
    assert "constant" in study.axes()
    assert parsed(select(study, where={"constant": ["0.1"]}).command)[1].request.where == {"constant": ["0.1"]}
    assert "constant=0.1" in select(study, where={"constant": ["0.1"]}).command


def test_a_text_that_json_does_not_know_is_refused(file, refused):
    assert "a backslash is written" in refused("run", f"{file}:odd", "--where", r'value="\q"')


def test_a_point_without_some_axis_is_repeated_alone(file, refused, call_json):
    _, whole = find_selection(f"{file}:ragged", "standard", [], None, None)
    for point in whole.points:
        again = parsed(whole.command_of(point, 0))[1]
        assert again.points == (point,)
        assert parsed(again.command_of(point, 0))[1].points == (point,)
    assert "--where b= " in whole.command_of({"a": 1}, 0)
    assert call_json("run", f"{file}:ragged", "--where", "b=,2", "--dry-run")["points"] == 2
    assert "got no value for a" in refused("run", f"{file}:ragged", "--where", "a=")
    with pytest.raises(ValueError, match="every point has a value for scale"):
        select(find_selection(f"{file}:numbers", "standard", [], None, None)[0], where={"scale": [None]})


def test_the_command_of_a_failure_has_the_point_as_it_was_computed(file, call_json):
    facts = call_json("run", f"{file}:numbers", status=1)
    commands = [failure["again"] for failure in facts["failures"]]
    assert [" scale=1 " in commands[0], " scale=2.5 " in commands[1]] == [True, True]
    again = call_json(*shlex.split(commands[0])[1:], status=1)
    assert (again["new_trials"], again["error"].splitlines()[-1]) == (1, "ValueError: {'scale': 1}")
    with Store(read_only=True) as store:
        assert store.frame("numbers").height == 2
        page = html.unescape(render(store))
    assert commands[0].removesuffix(" --traceback") in page


@pytest.mark.parametrize(
    ("end", "limit", "options"),
    [
        (_EndedError("was ended by SIGKILL", late=True, begun=True, seconds=5), 5, "--workers 1 --time-limit 5"),
        (_EndedError("was ended by SIGKILL", late=True, begun=True, seconds=5), 0.25, "--workers 1 --time-limit 0.25"),
        (_EndedError("was ended by SIGKILL", late=False, begun=True, seconds=5), None, "--workers 1"),
        (_EndedError("was ended by SIGSEGV", late=False, begun=True, seconds=5), 5, "--workers 1"),
    ],
)
def test_a_trial_that_ended_its_process_does_not_end_the_program_that_repeats_it(end, limit, options):
    [trial] = ALL[0].trials({}, [7])
    command = again(Selection(ALL[0].name, 1), trial, _reason(end, limit))
    assert command == f"genscope run {ALL[0].name} --budget standard --seed 7 --retry failed {options}"
    assert again(Selection("s", 1), trial, f"{MACHINE_FAILED}, in each\nTraceback ...").endswith(" --retry failed")
    assert again(Selection("s", 1), trial, None).endswith(" --seed 7")


def test_a_study_of_the_users_own_is_named_by_its_file():
    reference = f"{EXAMPLE}:study"
    _, selection = find_selection(reference, "standard", [], None, None)
    assert selection.command == f"genscope run {reference} --budget standard"
    assert parsed(selection.command)[1].id == selection.id


@pytest.mark.parametrize("study", CHEAPEST, ids=lambda study: study.name)
def test_the_command_computes_nothing_new(study, call_json):
    words = shlex.split(select(study, "quick").command)[1:]
    first, again = (call_json(*words) for _ in range(2))
    assert first["new_trials"] == first["trials"] > 0
    assert (again["new_trials"], again["trials"]) == (0, first["trials"])
