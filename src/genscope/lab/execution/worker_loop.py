"""What a worker process does: an order comes in, answers go out, trial by trial.

An order is answered by `ready` with the facts of provenance, or by `refused`; then by a result for each trial. Where
files have changed since this process loaded them, `changed` ends the answer, and the rest is for a fresh process.

Guarantee: exact; a study is loaded once and its programs are compiled once, however many orders come, and what computes
has the text that the order's digest is of. Where JAX finds several devices, workers take turns among them, so that what
a trial sees is one device, as it is one thread.
"""

import json
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

import jax

from genscope.lab.execution import protocol
from genscope.lab.execution.compute import CompileClock, Computer
from genscope.lab.execution.loaded import Loaded, Texts, read
from genscope.lab.execution.one_thread import one_thread
from genscope.lab.execution.protocol import Answer, Order
from genscope.refusal import Refusal


class WorkerLoop(AbstractContextManager["WorkerLoop"]):
    """Answers orders, one at a time; `number` is that of the worker among those of its run."""

    def __init__(self, number: int = 0, loaded: Loaded | None = None) -> None:
        self._number = number
        self._loaded = loaded or Loaded()
        self._clock = CompileClock()
        self._ends = ExitStack()
        self._studies: dict[str, tuple[Computer, Texts]] = {}  # by heading; with the texts that its digest is of

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
        heading = json.dumps({name: value for name, value in order.items() if name != "trials"})
        try:
            # A study that is known goes on with what is loaded, whatever its files say by now.
            if heading not in self._studies and (changed := self._loaded.changed() or self._load(heading, order)):
                yield {"changed": changed}
                return
        except Refusal as error:
            yield {"refused": str(error)}
            return
        except (Exception, SystemExit) as error:
            shown = "".join(traceback.format_exception(error)).rstrip()
            yield {"refused": f"A worker could not load {order['study']}. It says:\n{shown}"}
            return
        computer, meant = self._studies[heading]
        yield {"ready": computer.provenance}
        trials = protocol.trials(order, computer.study)
        for group in [trials] if order["stacked"] else [[trial] for trial in trials]:
            records = computer(group)
            if changed := self._loaded.unlike(meant):  # loaded by a trial, or for another study
                yield {"changed": changed}
                return
            for record in records:
                yield protocol.result(record)

    def _load(self, heading: str, order: Order) -> list[str]:
        """Load a study; the files that changed meanwhile."""
        study, found = protocol.named(order)
        meant = read(found.files)
        computer = Computer(study, self._clock)
        if computer.sources.digest != found.digest:
            return [order["study"]]
        self._studies[heading] = computer, meant
        return self._loaded.unlike(meant)
