"""`genscope report`: the stored results as one HTML file.

Guarantee: what is shown comes from the store alone; the claims' rules only tell which verdicts are by older ones.
"""

from pathlib import Path
from typing import Annotated

import typer

from genscope.cli._options import DEFAULT_STORE, AsJson, Budget, StoreUrl
from genscope.extras import need


def report(
    store: StoreUrl = DEFAULT_STORE,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the page goes.")] = Path("report.html"),
    budget: Annotated[
        Budget | None, typer.Option("--budget", help="Show the results of this budget where there are some.")
    ] = None,
    study: Annotated[
        list[str] | None,
        typer.Option("--study", metavar="STUDY", help="Show only this study and its claims; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the stored results as one page: claims, figures, tables.

    Example: genscope report --store sqlite:///results.db --out report.html
    """
    need("report", given="genscope report")
    from genscope.cli._output import counted, echo, print_json
    from genscope.lab import Store
    from genscope.listing import rules
    from genscope.report.page import write_report

    with Store(store, read_only=True) as opened:
        verdicts = opened.verdicts()
        path = write_report(opened, out, budget=budget, only=study or (), rules=rules() if verdicts else None)
        studies = sorted(study or opened.manifests())
        claims = [row["claim"] for row in verdicts if not study or {*row["verdict"].get("studies", ())} & {*study}]
    if as_json:
        print_json({"report": str(path), "store": opened.url, "studies": studies, "claims": claims})
    else:
        drawn = f"{counted(len(claims), 'claim')} and {counted(len(studies), 'study', 'studies')}"
        echo(f"{path}: {drawn} of {opened.url}")
