"""The explorer's server: on this machine alone, on a port that is free, patient but not endlessly so.

Guarantee: it listens on 127.0.0.1 only. A connection that has not sent the head of a request within `HEAD_SECONDS`, or
not taken any of its answer within `TAKE_SECONDS`, is closed: slow clients hold a socket for so long, and no more.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from genscope.explorer import browser as browsers
from genscope.explorer.app import ROOMS, make_app
from genscope.explorer.question_queue import QuestionQueue
from genscope.explorer.room import Room
from genscope.explorer.sessions import Sessions

ADDRESS = "127.0.0.1"
HEAD_SECONDS = 10.0  # for the head of a request
TAKE_SECONDS = 30.0  # for the next part of an answer
IDLE_SECONDS = 30  # that a connection is kept for the next request


class Server:
    """A server that listens as soon as it is made; `run` answers until `stop` or Ctrl-C."""

    def __init__(self, store: str, port: int = 0, rooms: Iterable[Callable[[str], Room]] = ROOMS):
        self._socket = _listen(port)
        self.port: int = self._socket.getsockname()[1]
        self._sessions = Sessions()
        self.address = self._opened_by(self._sessions.token)
        self._desk = QuestionQueue()
        self._rooms = [make(store) for make in rooms]
        config = uvicorn.Config(
            make_app(sessions=self._sessions, questions=self._desk, rooms=self._rooms),
            http=_Impatient,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)

    def address_for_once(self) -> str:
        """An address that opens the explorer once, within minutes."""
        return self._opened_by(self._sessions.ticket())

    def _opened_by(self, secret: str) -> str:
        return f"http://{ADDRESS}:{self.port}/?token={secret}"

    def run(self) -> None:
        """Answer requests until it is stopped."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            for room in self._rooms:
                room.close()
            self._desk.close()
            self._socket.close()

    def stop(self) -> None:
        """End `run` soon, from any thread."""
        self._server.should_exit = True


def serve(store: str, *, port: int = 0, browser: bool = True, tell: Callable[[str], None] = print) -> None:
    """Run the explorer of a store until Ctrl-C; `tell` gets its address, with the token."""
    server = Server(store, port)
    tell(server.address)
    with browsers.opened(server.address_for_once()) if browser else contextlib.nullcontext():
        server.run()


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((ADDRESS, port), backlog=128)
    except (OSError, OverflowError) as error:
        raise OSError(
            f"the explorer got port {port}, where it cannot listen ({error}): a port is a number from 1024 to 65535 "
            "that no other program uses, or 0 for any free one. Choose another --port, or leave it out."
        ) from error


class _Impatient(H11Protocol):
    """Uvicorn's protocol, which by itself waits for ever for the end of a head, and for a client to read."""

    _head: asyncio.TimerHandle | None = None
    _take: asyncio.TimerHandle | None = None

    # Uvicorn itself narrows the transport that asyncio declares; the server has no other kind.
    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._head = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._head = _stopped(self._head)
        elif self._head is None:  # the first part of a later head
            self._head = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._take = self.loop.call_later(TAKE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._take = _stopped(self._take)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head, self._take = _stopped(self._head), _stopped(self._take)
        super().connection_lost(exc)


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
