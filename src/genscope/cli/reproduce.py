"""`genscope reproduce`: decide the claims, and write the report.

Source: product.md, Sections 1 and 4.
Departures: None.
Guarantee: a claim that fails is a result: the status is 0 unless `--strict`, or a crash left a claim undecided.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from genscope.cli._errors import complain
from genscope.cli._options import DEFAULT_STORE, AsJson, Budget, StoreUrl

_MOST_PROCESSES = 8  # each holds JAX and its programs, half a gigabyte


def reproduce(
    budget: Annotated[Budget, typer.Option("--budget", help="How much computing it may cost.")] = Budget.quick,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ID", help="Only this claim; may be repeated.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", metavar="", help="End with status 1 if a claim fails.")] = False,
    store: StoreUrl = DEFAULT_STORE,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory of report.html.")] = Path(),
    processes: Annotated[
        int | None,
        typer.Option("--processes", metavar="N", help="Processes that compute (default: one per core, at most 8)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide the claims of the papers, and write report.html.

    What is stored already is not computed again; after an interruption the same command goes on.

    Example: genscope reproduce --budget quick --only A4 --only A6
    """
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    from genscope.cli._board import Board
    from genscope.cli._claims import chosen, decide
    from genscope.cli._output import console, print_json, print_table
    from genscope.cli._progress import resumable
    from genscope.lab import Store
    from genscope.lab.design import default_threads

    claims = chosen(only or [])
    if processes is not None and processes < 1:
        raise ValueError(f"reproduce got --processes {processes}: at least one computes. Give 1 or more.")
    if not out.is_dir() or not os.access(out, os.W_OK):  # now, not after the last study
        why = "may not be written by this user" if out.is_dir() else "is not a directory"
        raise ValueError(f"reproduce got --out {out}, which {why}: report.html goes into it. Make it, or name another.")
    many = processes or min(default_threads(), _MOST_PROCESSES)
    board = Board(claims, budget.value, console(stderr=True))
    with Store(store) as opened, resumable(opened), board.live():
        facts = decide(claims, budget.value, store=opened, url=store, processes=many, out=out, board=board)
    if as_json:
        print_json(facts)
    else:
        print_table("Claims", ["id", "verdict", "claim and source"], _rows(facts["claims"]))
        found = Counter(verdict["verdict"] for verdict in facts["claims"])
        typer.echo(f"{found['holds']} hold, {found['fails']} fail, {found['undecided']} are undecided at this budget.")
        typer.echo(f"The report is in {facts['report']}; the results are in {facts['store']}.")
    for name, reason in facts["broken"].items():
        complain(f"{name} has no verdict: {reason}")
    if facts["broken"] or (strict and any(verdict["verdict"] == "fails" for verdict in facts["claims"])):
        raise typer.Exit(1)


def _rows(verdicts: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Each claim with its verdict; under it its parts with their numbers, rule, departures, and what speaks against."""
    from genscope.report import words

    for verdict in verdicts:
        yield [verdict["id"], verdict["verdict"], f"{verdict['statement']} ({verdict['source']})"]
        for part in verdict["parts"]:
            numbers = "; ".join(f"{name}: {words.value(value)}" for name, value in part["numbers"].items())
            yield ["", part["decision"], f"- {part['statement']}{f' ({numbers})' if numbers else ''}"]
        yield ["", "by", f"- {verdict['rule']}"]
        if verdict["departures"]:
            yield ["", "departs", f"- {'; '.join(verdict['departures'])}"]
        if remark := verdict["remark"]:
            yield ["", "but", f"- {remark['text']} (docs/errata.md, {remark['paper']} {remark['row']})"]
