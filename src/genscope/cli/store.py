"""`genscope store`: check what a database of results holds, and copy it to another.

Guarantee: a check changes nothing; of a copy the target keeps what it has, but for failed trials that succeeded in the
other store, and a trial is stored once.
"""

from typing import Annotated, Any

import typer

from genscope.cli._errors import complain
from genscope.cli._flags import PlainGroup
from genscope.cli._help import add
from genscope.cli._options import DEFAULT_STORE, AsJson
from genscope.refusal import Refusal


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="URL of the store to read.")],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="URL of the store to write; created if it does not exist.")
    ],
    as_json: AsJson = False,
) -> None:
    """Copy all results of one store into another; of a damaged one, whatever is intact.

    What is there stays, but a trial that failed there and succeeded in the other store is replaced. Both
    stores may be in use meanwhile, so a copy can serve as a backup.

    Example: genscope store copy sqlite:///genscope.db postgresql+psycopg://me@server/results
    """
    from genscope.cli._output import counted, echo, print_json
    from genscope.lab import Store
    from genscope.lab.results.mixtures import provenance_lost
    from genscope.lab.storage import database
    from genscope.lab.storage.failures import Damaged

    if database.parse(source) == database.parse(target):
        raise Refusal(
            "store copy got the same store twice: results are copied from one store to another. Name two different "
            "stores."
        )
    try:
        with Store(source, read_only=True) as old, Store(target) as new:
            copied = old.copy_to(new)
            facts = {"from": old.url, "to": new.url, "trials": copied.trials}
            facts |= {"new_trials": copied.new, "replaced_trials": copied.replaced}
            facts["trials_without_provenance"] = copied.lost
        if copied.lost:
            complain(f"warning: {provenance_lost(copied.lost)}")
    except Damaged as error:
        complain(f"warning: {error}")
        facts = _rescue(source, target)
    if as_json:
        print_json(facts)
    elif "left" not in facts:
        share = f"{facts['new_trials']} of the {facts['trials']} trials of {facts['from']} were new"
        replaced = facts["replaced_trials"]
        echo(f"{facts['to']}: {share}{f', and {replaced} replaced failed ones' if replaced else ''}")
    else:
        copied = counted(facts["copied"]["trial"], "sound trial")
        left = counted(sum(facts["left"].values()), "unsound row")
        echo(
            f"{facts['to']}: {copied} copied from {facts['from']}, {left} left behind; what could not be read is lost. "
            "`genscope run` computes again what is missing."
        )
    if "left" in facts:
        raise typer.Exit(1)


def _rescue(source: str, target: str) -> dict[str, Any]:
    from genscope.lab import Store
    from genscope.lab.storage import database
    from genscope.lab.storage.rescue import copy_sound

    with Store(target) as new:
        rescued = copy_sound(source, new)
        place = new.url
    shown = database.shown(database.parse(source))
    return {"from": shown, "to": place, "copied": rescued.copied, "left": rescued.left}


def check(
    store: Annotated[str, typer.Argument(metavar="URL", help="URL of the store to check.")] = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Read everything in a store and compare it with what was written; the status is 1 if something is damaged.

    Example: genscope store check sqlite:///results.db
    """
    from genscope.cli._output import counted, echo, print_json
    from genscope.lab import check_store

    found = check_store(store)
    if as_json:
        print_json(found.as_dict())
    else:
        rows = ", ".join(f"{number} of {name}" for name, number in found.rows.items()) or "none"
        echo(f"{found.store}: {'sound' if found.sound else 'damaged'}; version {found.version}; rows: {rows}")
        for problem in found.problems:
            echo(f"- {problem}")
        held, gone = counted(found.leases, "batch", "batches"), counted(found.orphaned, "lease")
        echo(f"{held} in progress, {gone} of processes that are gone (the next run takes these over)")
        if not found.sound:
            echo(f"What is sound can be copied: genscope store copy {found.store} sqlite:///sound.db")
    if not found.sound:
        raise typer.Exit(1)


app = typer.Typer(
    cls=PlainGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Check a database of results, and copy it.",
)
add(app, "check", check)
add(app, "copy", copy)
