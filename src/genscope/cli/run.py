"""`genscope run`: one study, from its trials to a threshold and a law.

Guarantee: what is stored already is not computed again.
"""

from typing import Annotated, Any

import typer

from genscope.cli import _options
from genscope.cli._errors import complain

_SHOWN = 3  # errors that are named before the rest is only counted


def run(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A name of genscope list, or my_file.py:study.")],
    budget: _options.BudgetChoice = "standard",
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="AXIS=VALUE,VALUE", help="Values of an axis; may be repeated."),
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", help="Repetitions of each point.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="K", help="Only the repetition number K.")] = None,
    dry_run: _options.DryRun = False,
    retry: _options.RetryFailed = None,
    workers: _options.Workers = None,
    cluster: _options.Cluster = None,
    time_limit: _options.TimeLimit = None,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show the whole traceback of each error of a trial.")
    ] = False,
    accept_changes: _options.AcceptChanges = False,
    store: _options.StoreUrl = _options.DEFAULT_STORE,
    as_json: _options.AsJson = False,
) -> None:
    """Run a study and show its thresholds and the law they follow.

    Stored trials are not run again; after an interruption, the same command resumes.

    Example: genscope run edelman2022-and --where context_length=100,200,400
    """
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    from genscope.cli._findings import findings, next_step
    from genscope.cli._lookup import find_selection
    from genscope.cli._output import print_json
    from genscope.cli._run_tables import print_findings
    from genscope.cli._running import check_dry_run, finished, print_cost

    check_dry_run("run", dry_run, retry)
    chosen, selection = find_selection(study, budget, where, seeds, seed)
    computed_by = {"store": store, "workers": workers, "cluster": cluster, "time_limit": time_limit}
    if dry_run:
        print_cost(selection, as_json=as_json, **computed_by)
        return
    with finished(chosen, selection, retry=retry, accept_changes=accept_changes, **computed_by) as (opened, summary):
        facts = findings(chosen, selection, summary, opened)
        facts["next"] = next_step(chosen, selection, facts["thresholds"], opened)
    same_store = _options.store_option(store, facts["store"])
    for warning in facts["warnings"]:
        complain(f"warning: {warning}")
    for failure in facts["failures"][: None if traceback else _SHOWN]:
        _print_failure(failure, same_store, traceback)
    print_json(facts) if as_json else print_findings(chosen.title, facts, report=f"genscope report{same_store}")
    if 0 < facts["failed"] == facts["stored"]:
        complain(
            "every trial failed."
            if traceback
            else f"every trial failed. The first one says:\n{facts['error'].rstrip()}"
        )
        raise typer.Exit(1)


def _print_failure(failure: dict[str, Any], same_store: str, whole: bool) -> None:
    """An error, how many trials it ended, and how to meet it again."""
    said = f"\n{failure['traceback'].rstrip()}" if whole else f" {failure['error']}"
    number = "one trial" if failure["trials"] == 1 else f"{failure['trials']} trials"
    complain(f"{number} failed:{said}\n  again: {failure['again']}{same_store}")
