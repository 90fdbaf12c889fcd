"""Who computes a study, as `--workers`, `--cluster` and `--time-limit` say.

Source: product.md, Sections 2 and 7.
Departures: `--time-limit` without the others computes in processes, since a thread cannot be ended.
Guarantee: exact; no request is ignored.
"""

import contextlib
from collections.abc import Iterator

from genscope.cli._errors import complain
from genscope.lab import Cluster, Processes
from genscope.lab.design import default_threads
from genscope.lab.pool import Pool


@contextlib.contextmanager
def computing(workers: int | None, cluster: str | None, time_limit: float | None) -> Iterator[Pool | None]:
    """The pool that was asked for, while the block runs; None for threads of this process."""
    if workers is not None and cluster is not None:
        raise ValueError(
            f"run got --workers {workers} and --cluster {cluster}: the first starts processes here, the second uses "
            "those of a cluster, which has as many as you started. Leave one of them out."
        )
    if cluster is not None:
        with Cluster(cluster, time_limit=time_limit) as pool:
            if pool.threads() == 0:
                complain(f"warning: the cluster {cluster} has no workers yet; the study waits for them")
            yield pool
    elif workers is not None or time_limit is not None:
        with Processes(default_threads() if workers is None else workers, time_limit=time_limit) as pool:
            yield pool
    else:
        yield None
