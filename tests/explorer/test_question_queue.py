"""The questions: answers, a full queue, and pages that go before they are answered."""

import asyncio
import socket
import threading

import pytest
from starlette.requests import Request

from genscope.explorer import question_queue
from genscope.explorer.question_queue import Busy, QuestionQueue, Unwanted
from genscope.explorer.room import Room
from tests.explorer.visiting import cookie_of, entered, running


@pytest.fixture
def questions():
    questions = QuestionQueue(threads=1, waiting=2)
    yield questions
    questions.close()


def visitor():
    """A request, and the event that its client has gone."""
    gone = asyncio.Event()

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http"}, receive), gone


def test_an_answer_and_an_error_come_back(questions):
    async def main():
        assert await questions.answer(visitor()[0], lambda: 3) == 3
        with pytest.raises(ZeroDivisionError):
            await questions.answer(visitor()[0], lambda: 1 / 0)

    asyncio.run(main())


def test_work_that_waits_is_dropped_when_its_page_has_gone(questions):
    async def main():
        begun, free, done = threading.Event(), threading.Event(), []
        first = asyncio.create_task(questions.answer(visitor()[0], lambda: (begun.set(), free.wait(30))))
        await asyncio.to_thread(begun.wait, 30)
        request, gone = visitor()
        second = asyncio.create_task(questions.answer(request, lambda: done.append("computed for nobody")))
        await asyncio.sleep(0)
        gone.set()
        with pytest.raises(Unwanted):
            await second
        free.set()
        await first
        assert await questions.answer(visitor()[0], lambda: "next") == "next"  # the queue has passed the dropped one
        assert done == []

    asyncio.run(main())


def test_work_that_runs_ends_at_its_next_check(questions):
    async def main():
        begun, went_on, ended = threading.Event(), threading.Event(), threading.Event()

        def steps():
            begun.set()
            try:
                while True:
                    question_queue.check()
            except Unwanted:
                ended.set()
                raise
            went_on.set()

        request, gone = visitor()
        running = asyncio.create_task(questions.answer(request, steps))
        await asyncio.to_thread(begun.wait, 30)
        gone.set()
        with pytest.raises(Unwanted):
            await running
        assert await asyncio.to_thread(ended.wait, 30)
        assert not went_on.is_set()

    asyncio.run(main())


def test_a_full_desk_says_so(questions):
    async def main():
        free = threading.Event()
        both = [asyncio.create_task(questions.answer(visitor()[0], lambda: free.wait(30))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await questions.answer(visitor()[0], lambda: None)
        free.set()
        await asyncio.gather(*both)
        assert await questions.answer(visitor()[0], lambda: "again") == "again"

    asyncio.run(main())


def test_check_outside_of_the_desk_does_nothing():
    question_queue.check()


def test_a_client_that_closes_its_connection_is_noticed():
    begun, dropped = threading.Event(), threading.Event()

    def patient(ask):
        begun.set()
        try:
            while True:
                question_queue.check()
        except Unwanted:
            dropped.set()
            raise

    rooms = [lambda store: Room("patient", "Patient", "", {"wait": patient})]
    with running("sqlite:///none.db", rooms=rooms) as server, entered(server) as client:
        place = f"{client.base_url.path}api/patient/wait"
        head = f"POST {place} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookie_of(client)}\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall((head + "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}").encode())
            assert begun.wait(30)
        assert dropped.wait(30)
