"""Who has entered the explorer: the secrets that open it, and the one that a browser keeps.

The token of the printed address opens as often as it is shown; a ticket, which goes into the file that the browser is
given, opens once and soon. A browser keeps neither: it gets a value of its own, for a short while, as a cookie.
Browsers send a cookie to every port of a machine, but only to addresses below its path. So everything private lies
below a path that is drawn anew at every start, and servers on other ports, which do not know it, are not sent the
cookie.

Guarantee: the secrets have 144 bits or more and are compared in constant time; all of them end with the process.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Iterable

COOKIE = "genscope"
IDLE_SECONDS = 2 * 3600  # without a request, after which a browser must enter again
TICKET_SECONDS = 300  # a browser that starts cold on a busy machine takes its time


class Sessions:
    """The secrets of one server; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.token = secrets.token_urlsafe(24)
        self.root = "/" + secrets.token_urlsafe(18)  # of all private paths
        self._clock = clock
        self._tickets: dict[str, float] = {}  # with their ends
        self._values: dict[str, float] = {}

    def ticket(self) -> str:
        """A secret that opens the explorer once."""
        made = secrets.token_urlsafe(24)
        self._tickets[made] = self._clock() + TICKET_SECONDS
        return made

    def enter(self, secret: str) -> str | None:
        """A new value for the cookie of a browser that shows the token or a ticket; None for any other secret."""
        ticket = self._find(self._tickets, secret)
        if ticket is None and not _same(secret, self.token):
            return None
        self._tickets.pop(ticket or "", None)
        made = secrets.token_urlsafe(24)
        self._values[made] = self._clock() + IDLE_SECONDS
        return made

    def admit(self, values: Iterable[str]) -> str | None:
        """The first of these values that belongs to a browser inside, whose time begins again; or None.

        There may be several: a server on another port can give the browser cookies of the same name.
        """
        found = next((found for value in values if (found := self._find(self._values, value))), None)
        if found is not None:
            self._values[found] = self._clock() + IDLE_SECONDS
        return found

    def _find(self, table: dict[str, float], secret: str) -> str | None:
        now = self._clock()
        for ended in [each for each, end in table.items() if end <= now]:
            del table[ended]
        return next((each for each in table if _same(secret, each)), None)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())
