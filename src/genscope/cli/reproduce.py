"""`genscope reproduce`: decide the claims, and write the report.

Guarantee: a claim that fails is a result: the status is 0 unless `--strict`, or a crash left a claim undecided.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from genscope.cli._errors import complain
from genscope.cli._options import DEFAULT_STORE, AcceptChanges, AsJson, BudgetChoice, StoreUrl
from genscope.extras import need
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from genscope.lab.results.verdict import Verdict

_MOST_WORKERS = 8  # each holds JAX and its programs, half a gigabyte


def reproduce(
    budget: BudgetChoice = "quick",
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ID", help="Only this claim; may be repeated.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with status 1 if a claim fails.")] = False,
    accept_changes: AcceptChanges = False,
    store: StoreUrl = DEFAULT_STORE,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory of report.html.")] = Path(),
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", help="Processes that compute (default: one per core, at most 8)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide the claims of the papers, and write report.html.

    Stored trials are not run again; after an interruption, the same command resumes.

    Example: genscope reproduce --budget quick --only A4 --only A6
    """
    need("report", given="genscope reproduce")
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    from genscope.claims import chosen, decide
    from genscope.cli._claims_table import ClaimsTable
    from genscope.cli._output import console, counted, echo, print_json, print_table
    from genscope.cli._progress import resumable
    from genscope.lab import Store
    from genscope.lab.execution.cores import cores
    from genscope.lab.execution.provenance import provenance
    from genscope.listing import rules
    from genscope.report.page import write_report

    start = time.monotonic()
    names = [name.strip() for text in only or () for name in text.split(",")]
    claims = chosen(names)
    if workers is not None and workers < 1:
        raise Refusal(f"reproduce got --workers {workers}: at least one process is needed. Give 1 or more.")
    if not out.exists() and out.parent.is_dir() and os.access(out.parent, os.W_OK):
        out.mkdir()
    if not out.is_dir() or not os.access(out, os.W_OK):  # now, not after the last study
        why = "may not be written by this user" if out.is_dir() else "is not a directory"
        raise Refusal(
            f"reproduce got --out {out}, which {why}: it must be a directory for report.html. Create it, or name "
            "another."
        )
    many = workers or min(cores(), _MOST_WORKERS)
    table = ClaimsTable(claims, budget, console(stderr=True))
    with Store(store) as opened, resumable(opened), table.live():
        options = {"workers": many if many > 1 else None, "watcher": table, "accept_changes": accept_changes}
        found = decide(opened, budget, only=names, **options)
        path = write_report(opened, out / "report.html", rules=rules())
        facts = provenance()
    if as_json:
        print_json(
            {
                "claims": [verdict.as_dict() for verdict in found.verdicts],
                "broken": found.broken,
                "budget": budget,
                "seconds": time.monotonic() - start,
                "versions": facts["libraries"] | {"python": facts["python"]},
                "report": str(path),
                "store": opened.url,
            }
        )
    else:
        print_table("Claims", ["id", "verdict", "claim and source"], _rows(found.verdicts))
        tally = Counter(verdict.verdict for verdict in found.verdicts)
        holds, fails = counted(tally["holds"], "holds", "hold"), counted(tally["fails"], "fails", "fail")
        echo(f"{holds}, {fails}, {counted(tally['undecided'], 'is', 'are')} undecided at this budget.")
        echo(f"The report is in {path}; the results are in {opened.url}.")
    for name, reason in found.broken.items():
        complain(f"{name} has no verdict: {reason}")
    if found.broken or (strict and any(verdict.verdict == "fails" for verdict in found.verdicts)):
        raise typer.Exit(1)


def _rows(verdicts: "Sequence[Verdict]") -> Iterator[list[str]]:
    """Each claim with its verdict; under it parts with numbers, rule, departures, cautions, and what speaks against."""
    from genscope.report import words

    for verdict in verdicts:
        yield [verdict.id, verdict.verdict, f"{verdict.statement} ({verdict.source})"]
        for part in verdict.parts:
            numbers = "; ".join(f"{name}: {words.value(value)}" for name, value in part.numbers.items())
            yield ["", part.decision, f"- {part.statement}{f' ({numbers})' if numbers else ''}"]
        yield ["", "by", f"- {verdict.rule}"]
        if verdict.departures:
            yield ["", "departs", f"- {'; '.join(verdict.departures)}"]
        for caution in (*verdict.cautions, *filter(None, [verdict.changed_rule])):
            yield ["", "caution", f"- {caution}"]
        if remark := verdict.remark:
            yield ["", "but", f"- {remark.text} (docs/errata.md, {remark.paper} {remark.row})"]
