"""Who computes: threads of this process, processes of this machine, or a cluster."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol, runtime_checkable

from genscope.lab.plans.study import Study, Trial
from genscope.lab.storage.store import Record

Submit = Callable[[Sequence[Trial]], "Future[list[Record]]"]


@runtime_checkable  # for the type checker of the tests
class Pool(Protocol):
    """What the runner asks of those who compute; they know nothing of the store."""

    def slots(self) -> int:
        """How many batches may be under way now; workers may come and go."""
        ...

    def open(self, study: Study) -> Submit:
        """How batches of a study are given to the workers; ValueError for a study that they could not find."""
        ...
