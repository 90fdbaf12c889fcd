"""`genscope reproduce`: decide the claims, and write the report.

Source: product.md, Sections 1 and 4.
Departures: None.
Guarantee: a claim that fails is a result: the status is 0 unless `--strict`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from genscope.cli._options import DEFAULT_STORE, AsJson, Budget, StoreUrl


def reproduce(
    budget: Annotated[Budget, typer.Option("--budget", help="How much computing it may cost.")] = Budget.quick,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ID", help="Only this claim; may be repeated.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", metavar="", help="End with status 1 if a claim fails.")] = False,
    store: StoreUrl = DEFAULT_STORE,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory of report.html.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Decide the claims of the papers, and write report.html.

    Example: genscope reproduce --budget quick --only A4 --only A6
    """
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    from genscope.cli._claims import chosen, decide
    from genscope.cli._output import print_json, print_table
    from genscope.cli._progress import following
    from genscope.lab import Store

    claims = chosen(only or [], budget.value)
    if not out.is_dir() or not os.access(out, os.W_OK):  # now, not after the last study
        why = "may not be written by this user" if out.is_dir() else "is not a directory"
        raise ValueError(f"reproduce got --out {out}, which {why}: report.html goes into it. Make it, or name another.")
    with Store(store) as opened, following(opened) as follow:
        facts = decide(claims, budget.value, store=opened, out=out, follow=follow)
    if as_json:
        print_json(facts)
    else:
        print_table("Claims", ["id", "verdict", "claim", "source"], _rows(facts["claims"]))
        typer.echo(f"The report is in {facts['report']}; the results are in {facts['store']}.")
    if strict and any(verdict["verdict"] == "fails" for verdict in facts["claims"]):
        raise typer.Exit(1)


def _rows(verdicts: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Each claim with its verdict, and under it its parts with their numbers."""
    from genscope.report import words

    for verdict in verdicts:
        yield [verdict["id"], verdict["verdict"], verdict["statement"], verdict["source"]]
        for part in verdict["parts"]:
            numbers = "; ".join(f"{name}: {words.value(value)}" for name, value in part["numbers"].items())
            yield ["", part["decision"], f"- {part['statement']}{f' ({numbers})' if numbers else ''}", ""]
