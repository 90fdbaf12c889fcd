"""`genscope reproduce --budget quick` whole, from an empty cache and an empty store: time, and where it goes.

Wanted on two quiet cores: 180 s (about 330 CPU seconds), a first verdict from trials within 10 s, compiling at most a
quarter of the time that trials take. Then a report and a list of the store that it leaves (3 and 0.7 CPU seconds). CPU
seconds hardly depend on what else runs; a share of compiling does not either, since it is one of the same trials.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._timing import children, show
from genscope.lab import Store

_FROM_TRIALS = re.compile(r"^[ABC]\d+ (holds|fails)\b")  # a claim without quick trials is undecided at once
_SHOWN = 8  # studies that take longest


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "XDG_"))}
        environment |= {"HOME": home, "GENSCOPE_STORE": f"sqlite:///{home}/quick.db"}
        rows = _reproduced(environment, Path(home))
        rows |= _trials(environment["GENSCOPE_STORE"])
        for name, wanted in (("report", 3), ("list", 0.7)):
            _call(name, environment, Path(home))  # the first call fills caches
            rows[f"{name} of that store: CPU seconds (wanted: {wanted})"] = _call(name, environment, Path(home))
    show("reproduce: the quick budget, whole", rows)


def _reproduced(environment: dict[str, str], home: Path) -> dict[str, Any]:
    before, start, first = children(), time.perf_counter(), None
    command = [sys.executable, "-m", "genscope", "reproduce", "--budget", "quick"]
    with subprocess.Popen(
        command, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stderr is not None
        for line in program.stderr:
            if first is None and _FROM_TRIALS.match(line):
                first = time.perf_counter() - start
    if program.returncode:
        raise RuntimeError(f"reproduce ended with status {program.returncode}")
    return {
        "seconds (wanted: 180)": time.perf_counter() - start,
        "CPU seconds": children() - before,
        "seconds to the first verdict from trials (wanted: 10)": first,
        "load of the machine over the last minute": os.getloadavg()[0],
    }


def _trials(url: str) -> dict[str, float]:
    """Where the time of the trials goes, by study."""
    with Store(url, read_only=True) as store:
        frames = {name: store.frame(name) for name in store.counts()}
    spent = {
        name: (float(frame["seconds"].sum()), float(frame["compile_seconds"].sum())) for name, frame in frames.items()
    }
    running, compiling = (sum(column) for column in zip(*spent.values(), strict=True))
    rows = {"compiling, as a share of the trials' time (wanted: 0.25)": compiling / (running + compiling)}
    for name, (run, compiled) in sorted(spent.items(), key=lambda item: -sum(item[1]))[:_SHOWN]:
        rows[f"{name}: share of the trials' time"] = (run + compiled) / (running + compiling)
        rows[f"{name}: of which compiling"] = compiled / (run + compiled)
    return rows


def _call(name: str, environment: dict[str, str], home: Path) -> float:
    before = children()
    subprocess.run([sys.executable, "-m", "genscope", name], env=environment, cwd=home, check=True, capture_output=True)
    return children() - before


if __name__ == "__main__":
    main()
