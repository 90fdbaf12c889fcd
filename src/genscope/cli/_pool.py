"""Who computes a study, as `--workers`, `--cluster` and `--time-limit` say.

Departures: `--time-limit` without the others computes in processes, since a thread cannot be ended.
Guarantee: exact; no request is ignored, and rows do not depend on who computes.
"""

import contextlib
from collections.abc import Iterator

from genscope.cli._errors import complain
from genscope.lab import Cluster, Preview, Processes
from genscope.lab.execution.cores import cores
from genscope.lab.execution.pool import Pool
from genscope.lab.execution.threads import Threads
from genscope.refusal import Refusal

_LITTLE_SECONDS = 5.0  # worker processes take two seconds to start


@contextlib.contextmanager
def computing(workers: int | None, cluster: str | None, time_limit: float | None) -> Iterator[Pool | None]:
    """The pool that was asked for, while the block runs; None where none was."""
    if workers is not None and cluster is not None:
        raise Refusal(
            f"got --workers {workers} and --cluster {cluster}: --workers starts processes on this machine, "
            "--cluster uses the workers of a cluster. Leave one of them out."
        )
    if cluster is not None:
        with Cluster(cluster, time_limit=time_limit) as pool:
            if pool.threads() == 0:
                complain(f"warning: the cluster {cluster} has no workers yet; the study waits for them")
            yield pool
    elif workers is not None or time_limit is not None:
        with Processes(cores() if workers is None else workers, time_limit=time_limit) as pool:
            yield pool
    else:
        yield None


def fitting(expected: Preview, *, retried: bool = False) -> Threads | Processes:
    """A process per core, or this one for little work; `expected` is what the run would do on one worker.

    It counts failures as stored; where several of them may be `retried`, nobody knows how much there is.
    """
    return Threads() if _is_little(expected) and not retried else Processes(cores())


def _is_little(expected: Preview) -> bool:
    missing = expected.trials - expected.stored
    if not missing:
        return expected.exact
    return (
        expected.seconds is not None
        and expected.seconds / missing * (expected.most - expected.stored) < _LITTLE_SECONDS
    )
