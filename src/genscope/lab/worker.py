"""A process that computes what it is told to, one trial at a time: `python -m genscope.lab.worker`.

It reads lines of JSON and answers with lines of JSON: first how it is to be set up, then orders. An order is answered
by `ready` with the facts of provenance, or `refused`, and then by one line for each trial, as soon as it is known.

Source: product.md, Section 7.
Departures: None.
Guarantee: it ends with the process that started it, however that ends.
"""

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from genscope.lab.compute import Computer

IS_WORKER = "GENSCOPE_WORKER"  # set in the environment of workers, which must not start workers of their own


def main() -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started us
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a study prints goes to standard error
    setup = json.loads(sys.stdin.readline())
    if setup["core"] is not None:
        os.sched_setaffinity(0, {setup["core"]})  # before JAX counts the cores
    sys.path[:] = setup["path"] or sys.path
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    desk = Desk()
    while True:
        for answer in desk.answers(json.loads(lines.get())):
            print(json.dumps(answer), file=answers, flush=True)


def _listen(lines: "SimpleQueue[str]") -> None:
    """Pass on what comes; the end of it ends the process, in the middle of a trial as well."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


class Desk:
    """Answers orders; a study is loaded once, and its programs are compiled once."""

    def __init__(self) -> None:
        from genscope.lab import use_compilation_cache, xla

        xla.one_thread_per_trial()
        use_compilation_cache()
        from genscope.lab.compute import CompileClock

        self._clock = CompileClock().__enter__()  # for the life of the process
        self._computers: dict[str, Computer] = {}

    def answers(self, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The lines that answer an order."""
        from genscope.lab import orders

        try:
            computer = self._computer(order)
        except ValueError as error:
            yield {"refused": str(error)}
            return
        except (Exception, SystemExit) as error:
            yield {"refused": f"A worker could not load {order['study']}. It says:\n{_shown(error)}"}
            return
        yield {"ready": computer.provenance}
        trials = orders.trials(order, computer.study)
        for group in [trials] if order["stacked"] else [[trial] for trial in trials]:
            for record in computer(group):
                yield orders.result(record)

    def _computer(self, order: dict[str, Any]) -> "Computer":
        from genscope.lab import orders
        from genscope.lab.compute import Computer

        heading = json.dumps({name: value for name, value in order.items() if name != "trials"})
        if heading not in self._computers:
            self._computers[heading] = Computer(orders.named(order), self._clock)
        return self._computers[heading]


def _shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


if __name__ == "__main__":
    main()
