"""Trials per second of the sparse-AND study: two local workers against one process on one core (wanted: 1.7 times).

Both run the same trials into an empty store, after a first run that fills the compilation cache. Each worker has a core
of its own, so the ratio needs two cores that nobody else uses; the ratio of CPU times beside it does not, and says how
much more work two workers do for the same trials.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._timing import children, show
from genscope.lab import Store

STUDY, LENGTH, SIZES, SEEDS = "edelman2022-and", 300, (70, 100), 100
WARM = 4  # repetitions of the run that fills the cache


def measured(workers: int | None, directory: Path, *, seeds: int = SEEDS) -> dict[str, float]:
    """A run on so many workers, or with None in one process on one core."""
    where = (f"context_length={LENGTH}", f"sample_size={','.join(map(str, SIZES))}", "preset=tuned")
    url = f"sqlite:///{directory}/{workers}-{seeds}.db"
    command = [sys.executable, "-m", "genscope", "run", STUDY, "--seeds", str(seeds), "--store", url]
    command += [word for text in where for word in ("--where", text)]
    command += [] if workers is None else ["--workers", str(workers)]
    one_core = {min(os.sched_getaffinity(0))}

    def pin() -> None:
        if workers is None:
            os.sched_setaffinity(0, one_core)

    before, start = children(), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, preexec_fn=pin)
    whole, cpu = time.perf_counter() - start, children() - before
    with Store(url, read_only=True) as store:
        finished = store.frame(STUDY)["finished"].sort()
    between = (finished[-1] - finished[0]).total_seconds()
    return {"whole": len(finished) / whole, "running": (len(finished) - 1) / between, "cpu": cpu}


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        measured(None, Path(directory), seeds=WARM)
        one = measured(None, Path(directory))
        two = measured(2, Path(directory))
    rows: dict[str, Any] = {
        "trials per second, one process on one core": one["whole"],
        "trials per second, two workers": two["whole"],
        "two workers over one process, start included": two["whole"] / one["whole"],
        "two workers over one process, from the first stored trial on": two["running"] / one["running"],
        "CPU time of two workers over that of one process": two["cpu"] / one["cpu"],
        "load of the machine over the last minute": os.getloadavg()[0],
    }
    show(f"workers: sparse AND, T = {LENGTH}, {SEEDS * len(SIZES)} trials", rows)


if __name__ == "__main__":
    main()
