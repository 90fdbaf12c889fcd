"""What the explorer sends to a browser: pages from templates, and static files by a fixed table.

Guarantee: no path of a request reaches the file system; an address of a static file names its content, so that it may
be kept for ever.
"""

import hashlib
import importlib.metadata
import importlib.resources
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from genscope.explorer.glossary import GLOSSARY
from genscope.explorer.room import Room
from genscope.report.environment import environment

_KEPT = "public, max-age=31536000, immutable"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_TEMPLATES = environment("genscope.explorer")


def _help(name: str) -> Markup:
    """The question mark of a word in the glossary; `frame.html` holds what it opens."""
    button = '<button type="button" class="help" popovertarget="help-{}" aria-label="What is {}?">?</button>'
    return Markup(button).format(name.replace(" ", "-"), GLOSSARY[name].word.lower())


_TEMPLATES.globals["help"] = _help


class Shelf:
    """The scripts and styles of the package, and Plotly's script from its own."""

    def __init__(self) -> None:
        here = importlib.resources.files("genscope.explorer") / "static"
        files = {file.name: file.read_bytes() for file in sorted(here.iterdir(), key=lambda file: file.name)}
        digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]
        self.base = f"/static/{digest}"
        self.plotly = f"/static/plotly-{importlib.metadata.version('plotly')}.min.js"
        self._table = {f"{self.base}/{name}": (body, _TYPES[Path(name).suffix]) for name, body in files.items()}

    def serve(self, request: Request) -> Response:
        """The file of an address that is in the table."""
        path = "/static/" + request.path_params["name"]
        if path == self.plotly:
            return FileResponse(_plotly(), media_type="text/javascript", headers={"cache-control": _KEPT})
        if path not in self._table:
            return Response("There is no such file.", 404, media_type="text/plain")
        body, media_type = self._table[path]
        return Response(body, media_type=media_type, headers={"cache-control": _KEPT})


class Pages:
    """Templates with what all of them need."""

    def __init__(self, rooms: Sequence[Room], shelf: Shelf):
        self._shared = {
            "rooms": rooms,
            "base": shelf.base,
            "plotly": shelf.plotly,
            "glossary": GLOSSARY,
            "version": importlib.metadata.version("genscope"),
        }

    def room(self, room: Room, *, home: str) -> Response:
        """The page of a room; `home` is the private path."""
        return self._html(f"{room.name}.html", 200, room=room, home=home, **room.page())

    def notice(self, status: int, title: str, text: str, *, home: str = "") -> Response:
        """A page that says why there is no page; who is not inside is not told the private path."""
        return self._html("notice.html", status, room=None, home=home, title=title, text=text)

    def _html(self, template: str, status: int, **values: Any) -> Response:
        return HTMLResponse(_TEMPLATES.get_template(template).render(self._shared | values), status)


def _plotly() -> Path:
    found = importlib.util.find_spec("plotly")  # importing it would take longer than serving it
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("plotly")
    return Path(found.submodule_search_locations[0]) / "package_data" / "plotly.min.js"
