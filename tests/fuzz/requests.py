"""Bytes of an HTTP connection, read by the explorer's own protocol and application, without a socket."""

import asyncio
import math
import re

import h11
import uvicorn
from uvicorn.server import ServerState

from genscope.explorer import function_room
from genscope.explorer.app import make_app
from genscope.explorer.question_queue import QuestionQueue
from genscope.explorer.server import _Impatient
from genscope.explorer.sessions import Sessions

HOST = b"Host: 127.0.0.1:8000\r\n"
INSIDE = HOST + b"Cookie: genscope=value\r\n"
BODY = b'{"expression": "x0 & x1"}'
ASK = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


class Requests:
    """A server whose secrets are fixed, so that inputs repeat."""

    EXAMPLES = (
        b"GET /?token=token HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /private/function?expression=x0 HTTP/1.1\r\n" + INSIDE + b"Sec-Fetch-Site: same-origin\r\n\r\n",
        b"GET /private/ HTTP/1.1\r\n" + INSIDE + b"\r\n",
        b"GET /static/theme.js HTTP/1.1\r\n" + HOST + b"Origin: http://127.0.0.1:8000\r\n\r\n",
        b"POST /private/api/function/analyse HTTP/1.1\r\n" + INSIDE + ASK,
        b"GET /x HTTP/1.1\r\n" + HOST + b"\r\nGET /y HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
    )
    WORDS = (
        *(b"GET ", b"POST ", b"HEAD ", b"OPTIONS ", b"CONNECT ", b"HTTP/1.0", b"HTTP/1.1", b"\r\n", b"\r\n\r\n"),
        *(b"/private/", b"/static/", b"/api/", b"/files/", b"..", b"%2e", b"%00", b"%ff", b"?token=token", b"&", b"//"),
        *(b"Host: ", b"localhost", b"[::1]", b"evil.example", b"Origin: null\r\n", b"Cookie: genscope=", b"; ", b"="),
        *(b"Sec-Fetch-Site: cross-site\r\n", b"Sec-Fetch-Mode: navigate\r\n", b"Sec-Fetch-Dest: document\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"Content-Length: ", b"Upgrade: websocket\r\nConnection: upgrade\r\n"),
        *(b"Content-Type: application/json\r\n", b"Expect: 100-continue\r\n", b"Range: bytes=0-\r\n"),
    )

    def __init__(self, store: str):
        self._sessions = Sessions()
        self._loop = asyncio.new_event_loop()
        self._queue = QuestionQueue()
        app = make_app(sessions=self._sessions, questions=self._queue, rooms=[function_room.room(store)])
        self._config = uvicorn.Config(
            app, http=_Impatient, ws="none", lifespan="off", log_config=None, access_log=False
        )
        self._config.load()

    def close(self) -> None:
        self._queue.close()
        self._loop.close()

    def read(self, data: bytes) -> None:
        """Answer what the bytes ask; no answer says that we made a mistake."""
        self._sessions.token, self._sessions.root = "token", "/private"
        self._sessions._values.clear()  # those that entered before
        self._sessions._values["value"] = math.inf
        written = self._loop.run_until_complete(self._answers(data))
        if wrong := re.search(rb"HTTP/1\.1 5(?!03)\d\d ", written):  # 503: come again
            raise RuntimeError(wrong[0].decode())

    async def _answers(self, data: bytes) -> bytes:
        state = ServerState()
        made = _Impatient(self._config, state, {}, _loop=self._loop)
        transport = _Transport()
        made.connection_made(transport)
        if data:  # asyncio never gives a protocol nothing; h11 takes that for the end, and uvicorn would wait in a loop
            made.data_received(data)
        if made.conn.their_state is not h11.SEND_BODY:  # else the body is not all there, and the client goes
            await _all(state.tasks)
        made.connection_lost(None)
        await _all(state.tasks)
        return bytes(transport.written)


async def _all(tasks: set) -> None:
    while tasks:  # an answer may begin the next one
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=False), 60)
        await asyncio.sleep(0)


class _Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self):
        super().__init__()
        self.written = bytearray()
        self._closing = False

    def get_extra_info(self, name, default=None):
        return {"sockname": ("127.0.0.1", 8000), "peername": ("127.0.0.1", 9)}.get(name, default)

    def write(self, data):
        self.written += data

    def close(self):
        self._closing = True

    abort = close

    def is_closing(self):
        return self._closing

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass

    def set_protocol(self, protocol):
        pass
