"""`genscope run`: one study, from its trials to a threshold and a law.

Guarantee: what is stored already is not computed again.
"""

import shlex
from typing import Annotated, Any

import typer

from genscope.cli._errors import complain
from genscope.cli._options import (
    DEFAULT_STORE,
    AcceptChanges,
    AsJson,
    Budget,
    BudgetChoice,
    Cluster,
    DryRun,
    RetryFailed,
    StoreUrl,
    TimeLimit,
    Workers,
)

_SHOWN = 3  # errors that are named before the rest is only counted


def run(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A name of genscope list, or my_file.py:study.")],
    budget: BudgetChoice = Budget.standard,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="AXIS=VALUE,VALUE", help="Values of an axis; may be repeated."),
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", help="Repetitions of each point.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="K", help="Only the repetition number K.")] = None,
    dry_run: DryRun = False,
    retry: RetryFailed = None,
    workers: Workers = None,
    cluster: Cluster = None,
    time_limit: TimeLimit = None,
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
    from genscope.cli._findings import findings, next_step
    from genscope.cli._lookup import find_selection
    from genscope.cli._output import print_json
    from genscope.cli._running import check_dry_run, finished, tell_cost
    from genscope.cli._tell import tell_findings

    check_dry_run("run", dry_run, retry)
    chosen, selection = find_selection(study, budget, where, seeds, seed)
    computed_by = {"store": store, "workers": workers, "cluster": cluster, "time_limit": time_limit}
    if dry_run:
        tell_cost(selection, as_json=as_json, **computed_by)
        return
    with finished(chosen, selection, retry=retry, accept_changes=accept_changes, **computed_by) as (opened, summary):
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
