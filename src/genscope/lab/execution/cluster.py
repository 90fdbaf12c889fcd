"""Batches on a Dask cluster, whose scheduler hands out orders and collects the answers.

A Dask worker only passes an order on to a worker process beside it (`execution.processes`), so that a trial that hangs,
crashes or runs out of memory costs that process and not the worker, and compilation never keeps Dask's threads
from answering. Orders and answers are JSON; Dask itself sends pickles, so its ports are for trusted machines.

Guarantee: as `Processes`; the batch of a Dask worker that dies is computed by another, up to four times. Only the
process that runs the study knows the store.
"""

import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from genscope.extras import need
from genscope.lab.execution import protocol
from genscope.lab.execution.pool import Submit
from genscope.lab.execution.processes import Worker, check_time_limit, refuse_inside_worker
from genscope.lab.plans.study import Study, Trial
from genscope.lab.storage.store import MACHINE_FAILED, Record
from genscope.refusal import Refusal

if TYPE_CHECKING:
    import distributed

_LOOK_SECONDS = 2.0  # between two looks at how many workers there are

_idle: list[Worker] = []  # on a Dask worker: one per thread of it, once it has computed something


def compute(order: str, time_limit: float | None) -> str:
    """Answer an order, on a Dask worker."""
    try:
        worker = _idle.pop()
    except IndexError:
        worker = Worker()
    try:
        return json.dumps(worker.compute(json.loads(order), time_limit))
    finally:
        _idle.append(worker)


_ADDRESS = re.compile(r"([a-z]+://)?[^\s/]+:\d+/?")


class Cluster(AbstractContextManager["Cluster"]):
    """The workers of a Dask scheduler; a pool for `run`. `time_limit` is in seconds and for one trial.

    Certificates for a `tls://` address, and all else about the connection, come from Dask's own configuration.
    """

    def __init__(self, address: str, *, time_limit: float | None = None):
        check_time_limit(time_limit)
        refuse_inside_worker()
        need("cluster", given=f"got the cluster {address}")
        import distributed

        self._address, self._time_limit = address, time_limit
        self._killed = distributed.KilledWorker
        try:
            if not _ADDRESS.fullmatch(address):  # of which Dask would leave half a client, and a traceback at its end
                raise ValueError("no port")
            self._client = distributed.Client(address, set_as_default=False, name="genscope")
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise Refusal(
                f"got the cluster {address}, where no Dask scheduler answers ({error}): an address looks like "
                "tcp://host:8786 or tls://host:8786. Start `dask scheduler` there, or correct the address."
            ) from error
        self._threads, self._looked = 0, -_LOOK_SECONDS

    def threads(self) -> int:
        """How many threads the workers of this moment have; each computes one trial at a time."""
        if time.monotonic() >= self._looked + _LOOK_SECONDS:
            try:
                found = self._client.nthreads()
            except (OSError, RuntimeError) as error:
                raise self._lost(error) from error
            self._threads = sum(found.values())  # pyright: ignore[reportAttributeAccessIssue]  # not asynchronous
            self._looked = time.monotonic()
        return self._threads

    def slots(self) -> int:
        """How many batches may be under way; while there are no workers, one waits for them."""
        return max(self.threads(), 1)

    def open(self, study: Study) -> Submit:
        """How batches of a study are given to the scheduler."""
        heading = protocol.heading(study)
        return lambda batch: self._submit(protocol.order(heading, batch), batch)

    def _submit(self, order: protocol.Order, batch: Sequence[Trial]) -> "Future[list[Record]]":
        promise: Future[list[Record]] = Future()
        task = self._client.submit(compute, json.dumps(order), self._time_limit, pure=False)

        async def pass_on() -> None:
            try:
                promise.set_result(protocol.records(batch, await self._answer(task, batch)))
            except Exception as error:
                promise.set_exception(error)

        # On the client's own loop, which ends with it. Dask runs done-callbacks on one thread for all clients of a
        # process: a client that closes while its callback asks for a result blocks that thread for ever.
        self._client.loop.add_callback(pass_on)  # pyright: ignore[reportOptionalMemberAccess]  # it is connected
        return promise

    async def _answer(self, task: "distributed.Future", batch: Sequence[Trial]) -> protocol.Answer:
        try:
            return json.loads(await task)
        except Exception as error:
            return self._failed(error, batch)

    def _failed(self, error: BaseException, batch: Sequence[Trial]) -> protocol.Answer:
        """The answer where a batch brought workers down; any other failure is the cluster's, and ends the run."""
        if isinstance(error, self._killed):
            return {"provenance": {}, "results": [protocol.failure(f"{MACHINE_FAILED}: {error}\n")] * len(batch)}
        if isinstance(error, CancelledError):
            raise self._lost(error)
        raise Refusal(
            f"got the cluster {self._address}, whose workers cannot compute: {error!r}. They need the same Python and "
            f"genscope {protocol.VERSION}. Install these on every machine."
        )

    def _lost(self, error: BaseException) -> ConnectionError:
        return ConnectionError(
            f"The Dask scheduler at {self._address} is gone, or dropped our work ({error}). Every finished trial is "
            "stored: restart the scheduler and its workers, and then run the same study again."
        )

    def __exit__(self, *_: object) -> None:
        self._client.close()
