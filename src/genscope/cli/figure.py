"""`genscope figure`: one figure of a study as a file, from the store.

Guarantee: made from the store alone; needs neither studies nor JAX.
"""

from pathlib import Path
from typing import Annotated

import typer

from genscope.cli._options import DEFAULT_STORE, AsJson, Budget, StoreUrl
from genscope.extras import need


def figure(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write: .svg, .png or .pdf.")],
    study: Annotated[
        str | None,
        typer.Argument(metavar="STUDY", help="A study that the store holds; without it, the opening picture."),
    ] = None,
    number: Annotated[
        int, typer.Option("--number", metavar="K", min=1, help="Which of its figures, in the order of the report.")
    ] = 1,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="AXIS=VALUE,VALUE", help="Draw the run that was asked for so; repeatable."),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    budget: Annotated[
        Budget | None, typer.Option("--budget", help="Draw the results of this budget where there are some.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw one figure of a study, or the report's opening picture, as SVG, PNG or PDF.

    Example: genscope figure mousavi2025-1str --number 1 --out figure.pdf
    """
    need("report", given="genscope figure")
    from genscope.cli._errors import complain
    from genscope.cli._output import counted, echo, print_json
    from genscope.lab import Store
    from genscope.report.file import write_figure

    with Store(store, read_only=True) as opened:
        drawn = write_figure(opened, out, study=study, number=number, budget=budget, where=where or ())
    for warning in drawn.warnings:
        complain(f"warning: {warning}")
    if as_json:
        facts = drawn._asdict()
        print_json({"figure": str(facts.pop("path")), "store": opened.url, "study": study, "number": number, **facts})
        return
    echo(f"{drawn.path}: {drawn.heading}")
    if study is not None:
        echo(f"Drawn from {drawn.selection}, {counted(drawn.trials, 'trial')}.")
    if drawn.others:
        echo(f"Also stored: {'; '.join(drawn.others)}. Choose by --budget and --where.")
