"""Studies on several processes, each of which computes one trial at a time on a core of its own.

A process is started afresh (JAX has threads, which a fork would lose), gets names of studies through a pipe, and
answers with its progress and then a summary or a failure, as JSON. Results go to the store, whose leases let processes
share a study.

Source: product.md, Sections 1 and 6.
Departures: None.
Guarantee: a process that dies is noticed, and its place taken by a new one; at the end of the block none is left, and
at most the batches that were being computed are lost.
"""

import json
import multiprocessing
import os
import signal
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from genscope.lab import Store, Study
from genscope.lab.reference import refer, resolve
from genscope.lab.runner import Progress, Summary, run

_GRACE_SECONDS = 10.0  # for storing what is computed and giving back leases


@dataclass(frozen=True)
class Failure:
    """A study that a process did not finish, and why."""

    study: str
    reason: str
    store_lost: str | None = None
    """Why the store could not be used, so that no other study can go on either."""


Message = Progress | Summary | Failure


@dataclass
class _Member:
    process: BaseProcess
    pipe: Connection
    core: int | None
    study: str | None = None


class Crew(AbstractContextManager["Crew"]):
    """So many processes that run studies of one budget into one store."""

    def __init__(self, size: int, *, url: str, budget: str):
        self._url, self._budget = url, budget
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]
        self._free = [cores[number % len(cores)] for number in range(size)]
        self._members: list[_Member] = []

    @property
    def idle(self) -> bool:
        """Whether a process has nothing to do."""
        return bool(self._free) or any(member.study is None for member in self._members)

    @property
    def studies(self) -> list[str]:
        """What the processes work on; a study that two share is listed twice."""
        return [member.study for member in self._members if member.study is not None]

    def give(self, study: Study) -> None:
        """Let a process that has nothing to do run what is missing of a study."""
        member = next((member for member in self._members if member.study is None), None) or self._start()
        member.study = study.name
        try:
            member.pipe.send_bytes(refer(study).encode())
        except OSError:  # it died while it had nothing to do
            self._bury(member)
            self.give(study)

    def messages(self) -> Iterator[Message]:
        """Wait until processes say something, and tell what; the last word on a study is a Summary or a Failure."""
        ready = wait([member.pipe for member in self._members if member.study is not None])
        for member in [member for member in self._members if member.pipe in ready]:
            try:
                message = _read(member.pipe.recv_bytes())
            except (EOFError, OSError):
                message = self._bury(member)
            if not isinstance(message, Progress):
                member.study = None
            yield message

    def _start(self) -> _Member:
        context = multiprocessing.get_context("spawn")
        core = self._free.pop(0)
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._url, self._budget, core), daemon=True)
        process.start()
        theirs.close()  # so that its death shows as the end of the pipe
        self._members.append(_Member(process, ours, core))
        return self._members[-1]

    def _bury(self, member: _Member) -> Failure:
        member.process.join()
        self._members.remove(member)
        self._free.append(member.core)
        return Failure(member.study or "", f"its process ended with status {member.process.exitcode}")

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.process.terminate()
        for member in self._members:
            member.process.join(_GRACE_SECONDS)
            if member.process.is_alive():
                member.process.kill()
                member.process.join()
            member.pipe.close()


def _serve(pipe: Connection, url: str, budget: str, core: int | None) -> None:
    """The life of a process: run the studies that come through the pipe, until it is told to end or left alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; who started us decides
    if core is not None:
        os.sched_setaffinity(0, {core})  # before JAX counts the cores: one thread for one trial
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    try:
        with Store(url) as store:
            while True:
                pipe.send_bytes(_written(_answer(resolve(pipe.recv_bytes().decode()), store, budget, pipe)))
    except (EOFError, OSError, SystemExit):
        # Told to end, or nobody listens any more. Leases are given back; a thread inside a trial is not waited for.
        os._exit(1)


def _answer(study: Study, store: Store, budget: str, pipe: Connection) -> Summary | Failure:
    try:
        return run(study, store=store, budget=budget, threads=1, progress=lambda now: pipe.send_bytes(_written(now)))
    except Exception as error:
        reason = "".join(traceback.format_exception(error))
        return Failure(study.name, reason, str(error) if isinstance(error, OSError) else None)


def _written(message: Message) -> bytes:
    return json.dumps([type(message).__name__, asdict(message)]).encode()


def _read(text: bytes) -> Message:
    kind, fields = json.loads(text)
    if kind == "Summary":
        return Summary(**{**fields, "stopped": tuple(fields["stopped"])})
    return Progress(**fields) if kind == "Progress" else Failure(**fields)
