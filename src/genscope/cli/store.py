"""`genscope store copy`: results from one database to another.

Guarantee: the target keeps what it has; a trial is stored once.
"""

from typing import Annotated

import typer

import genscope
from genscope.cli._options import AsJson
from genscope.refusal import Refusal


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="URL of the store to read.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="URL of the store to write; made if it is not there.")],
    as_json: AsJson = False,
) -> None:
    """Copy all results of one store into another.

    Example: genscope store copy sqlite:///genscope.db postgresql+psycopg://me@server/results
    """
    from genscope.cli._output import print_json
    from genscope.lab import Store
    from genscope.lab.storage import database

    if database.parse(source) == database.parse(target):
        raise Refusal("store copy got the same store twice: results go from one store to another. Name two.")
    with Store(source, read_only=True) as old, Store(target) as new:
        before = _trials(new)
        old.copy_to(new)
        facts = {"from": old.url, "to": new.url, "trials": _trials(old), "new_trials": _trials(new) - before}
    if as_json:
        print_json(facts)
    else:
        typer.echo(f"{facts['to']}: {facts['new_trials']} of the {facts['trials']} trials of {facts['from']} were new")


def _trials(store: "genscope.Store") -> int:
    return sum(number for counts in store.counts().values() for number in counts.values())
