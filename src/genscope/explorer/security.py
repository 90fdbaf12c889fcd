"""Who may talk to the explorer: its own pages in the browser of the person who started it, and nobody else.

Four walls, each tested alone. The name in `Host` must be this machine's, so that a foreign name which resolves to
127.0.0.1 (DNS rebinding) reaches nothing. A request that another page made, by `Sec-Fetch-Site` or `Origin`, is
refused; pages of other ports are other pages. The token of the printed address becomes a cookie that scripts cannot
read and other sites cannot send; without it there are only static files. The content security policy lets a page load
from this server alone, and run no script that is written inside a page.

Departures: every page needs the token, not only what writes or is costly: a store may be private on a shared machine.
Guarantee: for browsers that follow the Fetch standard; other programs of the same user are not kept out.
"""

import hmac
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
OPEN = "/static/"  # what everybody may see: the files of the package


class Guard:
    """The application behind its walls; `refuse(status, title, text)` makes the page of a refusal."""

    def __init__(self, app: ASGIApp, token: str, refuse: Callable[[int, str, str], Response]):
        self._app = app
        self._token = token
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or refuse it; every answer carries the headers."""
        if scope["type"] != "http":  # there are no web sockets, and nothing to start or stop
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
                if message["status"] in UNREAD:
                    headers["connection"] = "close"
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name, port = _split(host)
        if name not in NAMES:
            return self._refuse(
                421,
                "This is not the explorer's name",
                f"The request named the host {host[:80]!r}; the explorer answers to 127.0.0.1 and localhost only. "
                "Open the address that genscope serve printed.",
            )
        if _foreign(scope, headers, host):
            return self._refuse(
                403,
                "Another page asked",
                "This request came from another page than the explorer's, which may not use it. Open the address "
                "that genscope serve printed in a tab of its own.",
            )
        if scope["path"].startswith(OPEN):
            return None
        cookie = f"genscope-{port}"  # cookies are shared between ports: each explorer has a name of its own
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for key, value in query if key == "token"]
        if scope["method"] == "GET" and given and self._known(given[0]):
            return self._entrance(scope["path"], [pair for pair in query if pair[0] != "token"], cookie)
        if not self._known(_cookies(headers).get(cookie, "")):
            return self._refuse(
                403,
                "The explorer does not know you yet",
                "Every start of genscope serve has a secret of its own, and this page did not bring it. Open the "
                "address that genscope serve printed, with all of its letters.",
            )
        return None

    def _known(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())

    def _entrance(self, path: str, query: list[tuple[str, str]], cookie: str) -> Response:
        # A path of one slash: two would name another host.
        place = "/" + path.lstrip("/") + ("?" + urlencode(query) if query else "")
        answer = RedirectResponse(place, 303)
        answer.set_cookie(cookie, self._token, httponly=True, samesite="strict", path="/")
        return answer


def _split(host: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "" if parts.netloc == host and "@" not in host else ""), parts.port or 80
    except ValueError:
        return "", 0


def _foreign(scope: Scope, headers: Headers, host: str) -> bool:
    """Whether a page of another origin made the request; following a link to a page is everybody's right."""
    site = headers.get("sec-fetch-site", "none")
    visit = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
    visit = visit and headers.get("sec-fetch-dest") == "document" and not scope["path"].startswith(("/api/", "/files/"))
    if site not in ("none", "same-origin") and not visit:
        return True
    return headers.get("origin", f"http://{host}") != f"http://{host}"


def _cookies(headers: Headers) -> dict[str, str]:
    pairs = (part.strip().partition("=") for line in headers.getlist("cookie") for part in line.split(";"))
    return {name: value for name, _, value in pairs}
