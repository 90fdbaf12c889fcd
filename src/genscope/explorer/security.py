"""Who may talk to the explorer: its own pages in the browser of the person who started it, and nobody else.

Four walls, each tested alone. The name in `Host` must be this machine's, so that a foreign name which resolves to
127.0.0.1 (DNS rebinding) reaches nothing. A request that another page made, by `Sec-Fetch-Site` or `Origin`, is
refused; pages of other ports are other pages. Whoever shows the token gets a cookie (`sessions`) that scripts cannot
read, other sites cannot send and other ports are not sent; without it there are only static files. The content security
policy lets a page load from this server alone, and run no script that is written inside a page.

Departures: every page needs the token, not only what writes or is costly: a store may be private on a shared machine.
Guarantee: for browsers that follow the Fetch standard; other programs of the same user are not kept out.
"""

import asyncio
import contextlib
import html
from collections.abc import Callable
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genscope.explorer.sessions import COOKIE, IDLE_SECONDS, Sessions

NAMES = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
UNREAD = (403, 408, 413, 415, 421)  # refusals that leave a body unread: the connection ends, and the body with it
DRAINED, DRAIN_SECONDS = 2**16, 1.0  # bytes of a refused request's body that are read, and for how long
OPEN = "/static/"  # what everybody may see: the files of the package


class Guard:
    """The application behind its walls, below the private path, which it finds as `root_path` in the scope.

    `refuse(status, title, text)` makes the page of a refusal.
    """

    def __init__(self, app: ASGIApp, sessions: Sessions, refuse: Callable[[int, str, str], Response]):
        self._app = app
        self._sessions = sessions
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or refuse it; every answer carries the headers."""
        if scope["type"] != "http":  # there are no web sockets, and nothing to start or stop
            return
        headers = Headers(scope=scope)
        answer, inside = self._refusal(scope, headers), None
        if answer is None and not scope["path"].startswith(OPEN):
            inside = self._sessions.admit(_cookies(headers))
            scope = dict(scope, root_path=self._sessions.root)
            answer = None if inside else self._unknown()

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                sent.update(HEADERS)
                sent.setdefault("cache-control", "no-store")
                if message["status"] in UNREAD:
                    sent["connection"] = "close"
                if inside:
                    sent.append("set-cookie", self._cookie(inside))  # its time begins again
            await send(message)

        if answer:
            await _drain(headers, receive)
        await (answer or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that the application may not see, whoever sends it; else None."""
        host = headers.get("host", "")
        if _name(host) not in NAMES:
            return self._refuse(
                421,
                "This is not the explorer's name",
                f"The request named the host {host[:80]!r}; the explorer answers to 127.0.0.1 and localhost only. "
                "Open the address that genscope serve printed.",
            )
        path = _below(scope["path"], self._sessions.root)
        if _foreign(scope["method"], path, headers, host):
            return self._refuse(
                403,
                "Another page asked",
                "This request came from another page than the explorer's, which may not use it. Open the address "
                "that genscope serve printed in a tab of its own.",
            )
        if scope["path"].startswith(OPEN):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for key, value in query if key == "token"]
        if scope["method"] == "GET" and given and (value := self._sessions.enter(given[0])):
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            inner = scope["path"] if path is None else path
            place = self._sessions.root + "/" + quote(inner.lstrip("/")) + ("?" + rest if rest else "")
            return self._entrance(place, value, headers)
        return self._unknown() if path is None else None

    def _unknown(self) -> Response:
        return self._refuse(
            403,
            "The explorer does not know you yet",
            "Every start of genscope serve has a secret of its own, and this page did not bring it, or not for two "
            "hours. Open the address that genscope serve printed, with all of its letters.",
        )

    def _entrance(self, place: str, value: str, headers: Headers) -> Response:
        # Where another page, such as the file that opened the browser, led here, the browser would follow a redirection
        # without the new cookie. A page of ours may send it on.
        if headers.get("sec-fetch-site", "none") == "none":
            answer: Response = RedirectResponse(place, 303)
        else:
            answer = HTMLResponse(_ONWARD.format(place=html.escape(place)))
        answer.headers["set-cookie"] = self._cookie(value)
        return answer

    def _cookie(self, value: str) -> str:
        return f"{COOKIE}={value}; Path={self._sessions.root}; Max-Age={IDLE_SECONDS}; HttpOnly; SameSite=Strict"


async def _drain(headers: Headers, receive: Receive) -> None:
    """Read the body of a refused request if it is small: to end a connection amid a body resets it, answer and all."""
    length = headers.get("content-length", "")
    if not (length.isdigit() and 0 < int(length) <= DRAINED):
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while (await receive()).get("more_body"):
                pass


_ONWARD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>genscope</title>
<meta http-equiv="refresh" content="0; url={place}"></head>
<body><p><a href="{place}">To the explorer</a></p></body></html>
"""


def _below(path: str, root: str) -> str | None:
    """The rest of a path below the private one; None elsewhere."""
    return path.removeprefix(root) if path == root or path.startswith(root + "/") else None


def _name(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # a port that is no number makes the name none
        return parts.hostname or "" if parts.netloc == host and "@" not in host else ""
    except ValueError:
        return ""


def _foreign(method: str, path: str | None, headers: Headers, host: str) -> bool:
    """Whether a page of another origin made the request; following a link to a page is everybody's right."""
    site = headers.get("sec-fetch-site", "none")
    visit = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    visit = visit and headers.get("sec-fetch-dest") == "document" and not (path or "").startswith(("/api/", "/files/"))
    if site not in ("none", "same-origin") and not visit:
        return True
    return headers.get("origin", f"http://{host}") != f"http://{host}"


def _cookies(headers: Headers) -> list[str]:
    pairs = (part.strip().partition("=") for line in headers.getlist("cookie") for part in line.split(";"))
    return [value for name, _, value in pairs if name == COOKIE]
