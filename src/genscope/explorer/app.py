"""The explorer as a web application: rooms, their questions and files, behind the walls of `security`.

Guarantee: a question that makes no sense is status 422 with a message for people; bodies are small, complete and in
time, or refused; a mistake of ours is status 500, told on standard error.
"""

import asyncio
import functools
import json
import traceback
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from genscope.explorer import bounds_room, construction_room, function_room, learn_room, studies_room
from genscope.explorer.pages import Pages, Shelf
from genscope.explorer.question_queue import Busy, QuestionQueue, Unwanted
from genscope.explorer.room import Ask, Download, Room
from genscope.explorer.security import Guard
from genscope.explorer.sessions import Sessions
from genscope.fourier.expression import ExpressionError
from genscope.jsonable import jsonable
from genscope.refusal import Refusal

ROOMS: tuple[Callable[[str], Room], ...] = (
    function_room.room,
    construction_room.room,
    bounds_room.room,
    learn_room.room,
    studies_room.room,
)
LARGEST_BODY = 256 * 1024  # bytes
BODY_SECONDS = 10.0  # in which a body must arrive


def make_app(*, sessions: Sessions, questions: QuestionQueue, rooms: Sequence[Room]) -> ASGIApp:
    """The application; whoever runs it closes the questions and the rooms."""
    shelf = Shelf()
    pages = Pages(rooms, shelf)
    routes = [
        Route("/", lambda request: RedirectResponse(f"{_home(request)}{rooms[0].name}"), methods=["GET"]),
        Route("/static/{name:path}", shelf.serve, methods=["GET"]),
    ]
    for room in rooms:
        routes.append(Route(f"/{room.name}", functools.partial(_page, pages, room), methods=["GET"]))
        for name, question in room.questions.items():
            ask = functools.partial(_question, questions, question)
            routes.append(Route(f"/api/{room.name}/{name}", ask, methods=["POST"]))
        for name, download in room.downloads.items():
            fetch = functools.partial(_download, questions, download)
            routes.append(Route(f"/files/{room.name}/{name}", fetch, methods=["GET"]))

    async def missing(request: Request, error: Exception) -> Response:
        text = "The explorer has no such page. Choose one of its rooms above."
        return pages.notice(404, "There is nothing here", text, home=_home(request))

    return Guard(Starlette(routes=routes, exception_handlers={404: missing}), sessions, pages.notice)


async def _page(pages: Pages, room: Room, request: Request) -> Response:
    return pages.room(room, home=_home(request))


def _home(request: Request) -> str:
    return request.scope.get("root_path", "") + "/"


async def _question(questions: QuestionQueue, question: Callable[[Ask], Any], request: Request) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        return _refused(415, f"got a body of type {kind[:40]!r}: questions are application/json. Send JSON.")
    try:
        body = await asyncio.wait_for(_body(request), BODY_SECONDS)
    except TimeoutError:
        return _refused(408, f"the question did not arrive within {BODY_SECONDS:g} seconds. Send it again, faster.")
    except ClientDisconnect:
        return Response(status_code=499)
    if body is None:
        return _refused(413, f"a question has at most {LARGEST_BODY:,} bytes. Send a shorter one.")
    return await _answered(questions, body, question, request, lambda found: JSONResponse(jsonable(found)))


async def _download(questions: QuestionQueue, download: Callable[[Ask], Download], request: Request) -> Response:
    body = request.query_params.get("ask", "{}").encode()
    await request.body()  # none; after it the server tells when the client goes
    return await _answered(questions, body, download, request, _file)


async def _body(request: Request) -> bytes | None:
    """The whole body, or None if it is too large."""
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > LARGEST_BODY:
            return None
    return b"".join(parts)


async def _answered(
    questions: QuestionQueue,
    body: bytes,
    function: Callable[[Ask], Any],
    request: Request,
    respond: Callable[[Any], Response],
) -> Response:
    try:
        ask = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return _refused(400, f"the request is not JSON ({error}): it must be an object such as {{}}. Correct it.")
    if not isinstance(ask, dict):
        return _refused(400, f"got JSON of type {type(ask).__name__}: a question is an object. Send an object.")
    try:
        return await questions.answer(request, lambda: respond(function(ask)))
    except Unwanted:
        return Response(status_code=499)
    except Busy:
        return _refused(503, "the explorer has too many questions to answer. Wait a moment and ask again.")
    except ExpressionError as error:
        return _refused(422, str(error), position=error.position, length=error.length)
    except (Refusal, OSError, UnicodeError) as error:
        return _refused(422, str(error))
    except Exception as error:
        traceback.print_exception(error)
        return _refused(500, "the explorer made a mistake; see the terminal of genscope serve. Please report it.")


def _refused(status: int, message: str, **place: int) -> Response:
    return JSONResponse({"message": message, **place}, status)


def _no_constant(word: str) -> float:
    raise Refusal(f"{word} is not a number in JSON")


def _file(found: Download) -> Response:
    name = f"attachment; filename*=utf-8''{quote(found.name)}"
    headers = {"content-disposition": name}
    if isinstance(found.body, bytes):
        return Response(found.body, media_type=found.media_type, headers=headers)
    return StreamingResponse(found.body, media_type=found.media_type, headers=headers)
