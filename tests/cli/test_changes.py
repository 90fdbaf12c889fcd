"""Going on with code that has changed asks for a decision, and what was pooled says so wherever it is shown."""

import html
import json
import os
from pathlib import Path

import polars as pl
import pytest

from genscope.lab import Store, Study, grid, run, select
from genscope.refusal import Refusal

TEXT = '''
"""A study with a helper."""
from genscope import Study, grid
from genscope.lab import Line, Mean
from {helper} import FACTOR


def trial(key, size):
    return {{"number": 2 * size * FACTOR}}


study = Study(name="mine", title="Mine", source="tests", trial=trial, points=grid(size=[1, 2]), seeds=2,
              figures=[Line(x="size", y=Mean("number"), title="Numbers", caption="")])
'''


@pytest.fixture
def file(directory, request):
    helper = f"helper_{abs(hash(request.node.name))}"  # modules stay loaded
    made = directory / f"study_{helper}.py"
    made.write_text(TEXT.format(helper=helper))
    (directory / f"{helper}.py").write_text("FACTOR = 1\n")
    return made


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_a_changed_trial_is_not_pooled_silently(file, call, call_json, refused):
    call("run", f"{file}:study", "--seeds", 2)
    edit(file, "2 * size", "3 * size")
    message = refused("run", f"{file}:study", "--seeds", 4)
    assert "4 stored trials were computed by different code or settings" in message
    assert f"{file.name} changed since" in message
    assert "--accept-changes" in message
    assert "new revision (now 1)" in message
    with Store(read_only=True) as store:
        assert store.frame("mine").height == 4
        assert [each.seeds for each in store.selections("mine")] == [range(2)]  # a refusal writes nothing
    facts = call_json("run", f"{file}:study", "--seeds", 4, "--accept-changes")
    [remark] = [each for each in facts["warnings"] if "different code" in each]
    assert file.name in remark
    assert facts["new_trials"] == 4
    assert call_json("run", f"{file}:study", "--seeds", 5)["warnings"]  # accepted once: it goes on, and says so
    call("report", "--out", "report.html")
    page = html.unescape(Path("report.html").read_text())
    assert "different code computed these trials" in page
    assert "digest of the code" in page
    drawn, exported = call_json("figure", "mine", "--out", "f.svg"), call_json("export", "mine", "--out", "t.csv")
    assert remark.partition(" (")[0] in drawn["warnings"][0]
    assert drawn["warnings"] == exported["warnings"]
    assert "Note: different code computed these trials" in html.unescape(Path("f.svg").read_text())
    codes = exported["sources"]
    assert all(digest in exported["warnings"][0] for digest in codes.values())
    assert {*pl.read_csv("t.csv")["provenance"]} == {*codes}
    assert len({*codes.values()}) == 2
    assert "warning: different code" in call("figure", "mine", "--out", "f.svg").stderr
    assert "warning: different code" in call("export", "mine").stderr


def test_double_precision_does_not_join_single_precision_silently(file, call, program):
    double = os.environ | {"JAX_ENABLE_X64": "1"}
    call("run", f"{file}:study", "--seeds", 1)
    refused = program("run", f"{file}:study", "--seeds", "2", env=double)
    assert refused.wait() == 2
    assert "JAX's setting jax_enable_x64=True changed since" in refused.stderr.read()
    accepted = program("run", f"{file}:study", "--seeds", "2", "--accept-changes", "--json", env=double)
    assert accepted.wait() == 0
    [remark] = json.loads(accepted.stdout.read())["warnings"]
    assert "JAX's setting jax_enable_x64=True changed: they are pooled here all the same" in remark
    again = program("run", f"{file}:study", "--seeds", "3", "--workers", "1", "--json", env=double)
    assert again.wait() == 0
    assert json.loads(again.stdout.read())["new_trials"] == 2


def test_a_changed_module_that_the_trial_imports_counts(file, call, program):
    call("run", f"{file}:study", "--seeds", "1")  # here, where the helper then stays as it was: others see the change
    helper = next(file.parent.glob("helper_*.py"))
    edit(helper, "FACTOR = 1", "FACTOR = 10")
    for workers in ((), ("--workers", "1")):
        refused = program("run", f"{file}:study", "--seeds", "2", *workers)
        assert refused.wait() == 2
    assert program("run", f"{file}:study", "--seeds", "1").wait() == 0  # nothing to compute, nothing to mix


def test_stored_trials_of_earlier_code_are_shown_with_a_remark(file, call, call_json):
    call("run", f"{file}:study")
    assert call_json("run", f"{file}:study")["warnings"] == []
    edit(file, "2 * size", "3 * size")
    [remark] = call_json("run", f"{file}:study")["warnings"]
    assert f"4 stored trials were computed by different code or settings: {file.name} changed since" in remark
    assert "give the study a new revision (now 1)" in remark
    assert "different code" in call("run", f"{file}:study").stderr


def test_an_import_that_may_fail_is_followed(file, call, refused):
    helper = next(file.parent.glob("helper_*.py"))
    edit(
        file,
        f"from {helper.stem} import FACTOR",
        f"try:\n    from {helper.stem} import FACTOR\nexcept ImportError:\n    pass",
    )
    call("run", f"{file}:study", "--seeds", 2)
    edit(helper, "FACTOR = 1", "FACTOR = 10")
    assert f"{helper.name} changed since" in refused("run", f"{file}:study", "--seeds", 4)


def test_a_trial_that_was_typed_in_is_not_pooled_silently(directory):
    def typed(body):
        exec(f"FACTOR = {body}\ndef trial(key, size):\n    return {{'number': size * FACTOR}}\n", names := {})
        return Study(name="typed", title="", source="", trial=names["trial"], points=grid(size=[1, 2]))

    with Store(f"sqlite:///{directory}/typed.db") as store:
        run(typed("2"), store=store)
        again = run(typed("2"), select(typed("2"), seeds=2), store=store)
        assert (again.computed, again.outdated) == (2, None)
        with pytest.raises(Refusal, match="what was typed in changed since"):
            run(typed("3"), select(typed("3"), seeds=3), store=store)
        assert "different code" in (run(typed("3"), store=store).outdated or "")


def test_a_function_bound_to_a_trial_is_the_same_in_every_process(file, call_json):
    edit(file, "trial=trial", "trial=functools.partial(trial, rule=_rule)")
    edit(file, "def trial(key, size)", "import functools\ndef _rule(): return 1\ndef trial(key, size, rule)")
    assert call_json("run", f"{file}:study", "--workers", "1")["new_trials"] == 4
    edit(file, "2 * size", "3 * size")
    assert len(call_json("run", f"{file}:study")["warnings"]) == 1


def test_more_points_and_a_new_revision_need_no_decision(file, call_json):
    call_json("run", f"{file}:study")
    edit(file, "size=[1, 2]", "size=[1, 2, 3]")
    facts = call_json("run", f"{file}:study")
    assert (facts["new_trials"], facts["warnings"]) == (2, [])
    edit(file, "2 * size", "3 * size")
    edit(file, "seeds=2", "seeds=2, revision=2")
    facts = call_json("run", f"{file}:study")
    assert (facts["new_trials"], facts["warnings"]) == (6, [])


def test_a_trial_that_failed_and_was_mended_needs_no_decision(file, call, call_json):
    edit(file, "2 * size", "2 / 0")
    call("run", f"{file}:study", status=1)
    edit(file, "2 / 0", "2 * size")
    facts = call_json("run", f"{file}:study", "--retry", "failed")
    assert (facts["new_trials"], facts["warnings"]) == (4, [])
