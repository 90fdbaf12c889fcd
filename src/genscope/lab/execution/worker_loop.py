"""What a worker process does: an order comes in, answers go out, trial by trial.

An order is answered by `ready` with the facts of provenance, or by `refused`; then by a result for each trial.

Guarantee: exact; a study is loaded once and its programs are compiled once, however many orders come. Where JAX finds
several devices, workers take turns among them, so that what a trial sees is one device, as it is one thread.
"""

import json
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

import jax

from genscope.lab.execution import protocol
from genscope.lab.execution.compute import CompileClock, Computer
from genscope.lab.execution.one_thread import one_thread
from genscope.lab.execution.protocol import Answer, Order
from genscope.refusal import Refusal


class WorkerLoop(AbstractContextManager["WorkerLoop"]):
    """Answers orders, one at a time; `number` is that of the worker among those of its run."""

    def __init__(self, number: int = 0) -> None:
        self._number = number
        self._clock = CompileClock()
        self._ends = ExitStack()
        self._computers: dict[str, Computer] = {}

    def __enter__(self) -> "WorkerLoop":
        self._ends.enter_context(one_thread())
        devices = jax.devices()
        if len(devices) > 1:  # of the process, since a trial may compile in threads of its own
            jax.config.update("jax_default_device", devices[self._number % len(devices)])
        self._ends.enter_context(self._clock)
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def answers(self, order: Order) -> Iterator[Answer]:
        """The answers to an order, each as soon as it is known."""
        try:
            computer = self._computer(order)
        except Refusal as error:
            yield {"refused": str(error)}
            return
        except (Exception, SystemExit) as error:
            shown = "".join(traceback.format_exception(error)).rstrip()
            yield {"refused": f"A worker could not load {order['study']}. It says:\n{shown}"}
            return
        yield {"ready": computer.provenance}
        trials = protocol.trials(order, computer.study)
        for group in [trials] if order["stacked"] else [[trial] for trial in trials]:
            for record in computer(group):
                yield protocol.result(record)

    def _computer(self, order: Order) -> Computer:
        heading = json.dumps({name: value for name, value in order.items() if name != "trials"})
        if heading not in self._computers:
            self._computers[heading] = Computer(protocol.named(order), self._clock)
        return self._computers[heading]
