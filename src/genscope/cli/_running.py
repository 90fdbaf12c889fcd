"""Running a selection, or only saying what it costs, as the options of `run` and `learn` say.

Guarantee: exact; a dry run writes nothing, and makes no store.
"""

import contextlib
from collections.abc import Iterator

from genscope.cli._findings import expected
from genscope.cli._lookup import find_store
from genscope.cli._options import Retry
from genscope.cli._output import print_json
from genscope.cli._pool import computing, fitting
from genscope.cli._progress import following
from genscope.cli._run_tables import print_plan
from genscope.lab import Selection, Store, Study, Summary, preview
from genscope.lab import run as run_study
from genscope.lab.execution.cores import cores
from genscope.refusal import Refusal


def check_dry_run(command: str, dry_run: bool, retry: Retry | None) -> None:
    """Refuse a dry run that is to run trials again."""
    if dry_run and retry is not None:
        raise Refusal(f"{command} got --dry-run and --retry: a dry run retries nothing. Leave one of them out.")


def print_cost(
    selection: Selection,
    *,
    store: str,
    workers: int | None,
    cluster: str | None,
    time_limit: float | None,
    as_json: bool,
) -> None:
    """Say how many trials a run would compute, and about how long."""
    with computing(workers, cluster, time_limit) as pool, find_store(store) or contextlib.nullcontext() as known:
        plan = expected(selection, preview(known, selection, workers=1), pool.slots() if pool else cores())
    print_json(plan) if as_json else print_plan(plan)


@contextlib.contextmanager
def finished(
    study: Study,
    selection: Selection,
    *,
    store: str,
    workers: int | None,
    cluster: str | None,
    time_limit: float | None,
    retry: Retry | None,
    accept_changes: bool,
) -> Iterator[tuple[Store, Summary]]:
    """The store when all trials are in it, and what the run did."""
    with computing(workers, cluster, time_limit) as asked, Store(store) as opened:
        retried = retry is not None and selection.most > 1
        fit = (
            contextlib.nullcontext(asked) if asked else fitting(preview(opened, selection, workers=1), retried=retried)
        )
        with fit as pool, following(opened) as follow:
            options = {"retry_failed": retry is not None, "accept_changes": accept_changes}
            summary = run_study(study, selection, store=opened, pool=pool, progress=follow, **options)
        yield opened, summary
