"""The printed command of a selection, parsed by the command line itself, selects it again."""

import inspect
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from genscope.cli._app import app
from genscope.cli._lookup import find_selection
from genscope.lab import select
from genscope.lab.plans.study import BUDGETS
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
