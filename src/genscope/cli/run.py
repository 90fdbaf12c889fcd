"""`genscope run`: one study, from its trials to a threshold and a law.

Guarantee: what is stored already is not computed again.
"""

import shlex
from contextlib import nullcontext
from enum import StrEnum
from typing import Annotated, Any

import typer

from genscope.cli._errors import complain
from genscope.cli._options import DEFAULT_STORE, AcceptChanges, AsJson, Budget, StoreUrl
from genscope.refusal import Refusal

_SHOWN = 3  # errors that are named before the rest is only counted


class Retry(StrEnum):
    """Which stored trials run again."""

    failed = "failed"


def run(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A name of genscope list, or my_file.py:study.")],
    budget: Annotated[Budget, typer.Option("--budget", help="How much compute to spend.")] = Budget.standard,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="AXIS=VALUE,VALUE", help="Values of an axis; may be repeated."),
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", help="Repetitions of each point.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="K", help="Only the repetition number K.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Only print how many trials would run, and for how long.")
    ] = False,
    retry: Annotated[Retry | None, typer.Option("--retry", help="Run failed trials again.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="Run trials in N processes, one core each.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ADDRESS", help="Compute on a Dask scheduler's workers: tcp://host:8786."),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            help="Stop a trial that takes longer and count it as failed. Runs trials in processes, one per core unless "
            "--workers says otherwise.",
        ),
    ] = None,
    traceback: Annotated[
        bool, typer.Option("--traceback", metavar="", help="Show the whole traceback of each error of a trial.")
    ] = False,
    accept_changes: AcceptChanges = False,
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Run a study and show its thresholds and the law they follow.

    Stored trials are not run again; after an interruption, the same command resumes.

    Example: genscope run edelman2022-and --where context_length=100,200
    """
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    from genscope.cli._findings import expected, findings, next_step
    from genscope.cli._lookup import find_selection, find_store
    from genscope.cli._output import print_json
    from genscope.cli._pool import computing, fitting
    from genscope.cli._progress import following
    from genscope.cli._tell import tell_findings, tell_plan
    from genscope.lab import Store, preview
    from genscope.lab import run as run_study
    from genscope.lab.plans.design import cores

    chosen, selection = find_selection(study, budget, where, seeds, seed)
    if dry_run and retry is not None:
        raise Refusal("run got --dry-run and --retry: the first runs nothing. Leave one of them out.")
    with computing(workers, cluster, time_limit) as asked:
        if dry_run:
            with find_store(store) or nullcontext() as known:
                plan = expected(selection, preview(known, selection, workers=1), asked.slots() if asked else cores())
            print_json(plan) if as_json else tell_plan(plan)
            return
        with Store(store) as opened:
            fit = nullcontext(asked) if asked else fitting(preview(opened, selection, workers=1))
            with fit as pool, following(opened) as follow:
                options = {"retry_failed": retry is not None, "accept_changes": accept_changes}
                summary = run_study(chosen, selection, store=opened, pool=pool, progress=follow, **options)
            facts = findings(chosen, selection, summary, opened)
            facts["next"] = next_step(chosen, selection, facts["thresholds"], opened)
    for warning in facts["warnings"]:
        complain(f"warning: {warning}")
    for failure in facts["failures"][: None if traceback else _SHOWN]:
        _tell_failure(failure, "" if store == DEFAULT_STORE else f" --store {shlex.quote(facts['store'])}", traceback)
    print_json(facts) if as_json else tell_findings(chosen.title, facts, report=_report(store, facts["store"]))
    if 0 < facts["failed"] == facts["stored"]:
        complain(
            "every trial failed."
            if traceback
            else f"every trial failed. The first one says:\n{facts['error'].rstrip()}"
        )
        raise typer.Exit(1)


def _tell_failure(failure: dict[str, Any], where: str, whole: bool) -> None:
    """An error, how many trials it ended, and how to meet it again."""
    said = f"\n{failure['traceback'].rstrip()}" if whole else f" {failure['error']}"
    number = "one trial" if failure["trials"] == 1 else f"{failure['trials']} trials"
    complain(f"{number} failed:{said}\n  again: {failure['again']}{where}")


def _report(given: str, store: str) -> str:
    """The command that shows the results; `store` is the address without its password."""
    return "genscope report" if given == DEFAULT_STORE else f"genscope report --store {shlex.quote(store)}"
