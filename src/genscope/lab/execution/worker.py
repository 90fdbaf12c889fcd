"""A process that computes what it is told to, one trial at a time: `python -m genscope.lab.execution.worker`.

It reads lines of JSON, first how it is to be set up and then orders, and writes the answers as lines.

Guarantee: it ends with the process that started it, however that ends.
"""

import json
import os
import signal
import sys
import threading
from queue import SimpleQueue

IS_WORKER = "GENSCOPE_WORKER"  # set in the environment of workers, which must not start workers of their own


def main() -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started us
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a study prints goes to standard error
    setup = json.loads(sys.stdin.readline())
    if setup["core"] is not None:
        os.sched_setaffinity(0, {setup["core"]})
    sys.path[:] = setup["path"] or sys.path
    from genscope.lab.execution.loaded import Loaded

    loaded = Loaded()
    sys.meta_path.insert(0, loaded)
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    from genscope.lab.execution.cache import use_compilation_cache

    use_compilation_cache()
    from genscope.lab.execution.worker_loop import WorkerLoop

    with WorkerLoop(setup["number"], loaded) as loop:
        while True:
            for answer in loop.answers(json.loads(lines.get())):
                print(json.dumps(answer), file=answers, flush=True)


def _listen(lines: "SimpleQueue[str]") -> None:
    """Pass on what comes; the end of it ends the process, in the middle of a trial as well."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
