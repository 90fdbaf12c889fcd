"""Opening the explorer in a browser with no secret on a command line, which every user of a machine can read.

The browser is given a file that this user alone can read, and the file sends it on with a ticket that opens once.

Guarantee: the file is gone when the explorer ends. A browser that may not read temporary files (a confined package)
shows that it cannot; the printed address works in every browser.
"""

import contextlib
import html
import os
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>genscope</title>
<meta http-equiv="refresh" content="0; url={address}"></head>
<body><p><a href="{address}">To the explorer</a></p></body></html>
"""


@contextlib.contextmanager
def opened(address: str) -> Iterator[None]:
    """Open an address that holds a ticket, while the block runs."""
    with tempfile.TemporaryDirectory(prefix="genscope-") as directory:  # for its owner alone, like the file
        path = Path(directory) / "open.html"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(_PAGE.format(address=html.escape(address)))
        threading.Thread(target=webbrowser.open, args=[path.as_uri()], daemon=True).start()
        yield
