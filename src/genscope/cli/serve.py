"""`genscope serve`: the explorer, a local web page with four rooms.

Guarantee: the server listens on 127.0.0.1 only; Ctrl-C is its ordinary end.
"""

from typing import Annotated

import typer

from genscope.cli._options import DEFAULT_STORE, StoreUrl
from genscope.extras import need
from genscope.refusal import Refusal


def serve(
    store: StoreUrl = DEFAULT_STORE,
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port to listen on. Default: a free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
) -> None:
    """Open the explorer in a browser: functions, constructions, bounds, training and studies.

    The address holds a secret that lets your browser in. The page works offline. Only the Learn room trains networks,
    in a separate process, and stores the runs.

    Example: genscope serve --store sqlite:///genscope.db
    """
    if port and not 1024 <= port <= 65535:
        raise Refusal(
            f"serve got --port {port}: a port must be from 1024 to 65535. Choose one, or leave the option out to use "
            "any free port."
        )
    need("explorer", given="genscope serve")
    from genscope.explorer import serve as run
    from genscope.lab.storage import database

    database.parse(store)  # an address that makes no sense is refused before anything listens
    try:
        run(store, port=port, browser=not no_browser, tell=_print_address)
    except KeyboardInterrupt:
        typer.echo("The explorer has ended.", err=True)


def _print_address(address: str) -> None:
    from genscope.cli._output import echo

    echo(address)
    typer.echo("The explorer runs at this address, for this machine only. Ctrl-C ends it.", err=True)
