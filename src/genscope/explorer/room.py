"""A room of the explorer: a page, the questions it asks, and the files it offers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Ask = Mapping[str, Any]  # the JSON object that a page sent


@dataclass(frozen=True)
class Download:
    """A file for the visitor to keep; a body that is long comes in pieces."""

    name: str
    media_type: str
    body: bytes | Iterable[bytes]


@dataclass(frozen=True)
class Room:
    """The page `/name`, made from `templates/name.html` and `static/name.js`.

    A question is answered at POST /api/name/question, a download at GET /files/name/download?ask=JSON. `page` gives
    the variables of the template, anew for every visit; `close` is called when the explorer ends.
    """

    name: str
    title: str
    about: str
    questions: Mapping[str, Callable[[Ask], Any]]
    downloads: Mapping[str, Callable[[Ask], Download]] = field(default_factory=dict)
    page: Callable[[], Mapping[str, Any]] = dict
    close: Callable[[], None] = lambda: None
