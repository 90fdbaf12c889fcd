"""What the process that writes the store and those that compute say to each other: names and plain data.

An order names a study and lists points and seeds; an answer lists what each trial measured. Both are JSON.

Guarantee: exact; values come back as the trial returned them. A worker with another genscope, or with another text of
what computes a trial, refuses.
"""

import importlib.metadata
import platform
from collections.abc import Sequence
from typing import Any

from genscope.lab import values
from genscope.lab.execution.reference import refer, resolve
from genscope.lab.plans.sources import Sources, sources
from genscope.lab.plans.study import Study, Trial
from genscope.lab.storage.store import Record
from genscope.refusal import Refusal

VERSION = importlib.metadata.version("genscope")

Order = dict[str, Any]
Answer = dict[str, Any]


def heading(study: Study) -> Order:
    """What a worker needs to know of a study; every order of it begins so."""
    return {
        "genscope": VERSION,
        "study": refer(study),
        "name": study.name,
        "revision": study.revision,
        "digest": sources(study).digest,
        "stacked": study.stacked,
        "lanes": study.batch,
    }


def order(heading: Order, batch: Sequence[Trial]) -> Order:
    """What a worker needs to know to compute a batch."""
    return {**heading, "trials": [[dict(trial.point), trial.seed] for trial in batch]}


def named(order: Order) -> tuple[Study, Sources]:
    """The study that an order names, on the worker, and its text; ValueError if it is not the one that was meant."""
    here = f"A worker on {platform.node()}"
    if order["genscope"] != VERSION:
        raise Refusal(
            f"{here} has genscope {VERSION}, but the study is run by genscope {order['genscope']}, and their "
            "results must not be mixed. Install the same version on every machine."
        )
    study = resolve(order["study"])
    found = sources(study)
    meant = (order["name"], order["revision"], order["stacked"], order["lanes"], order["digest"])
    if (study.name, study.revision, study.stacked, study.batch, found.digest) != meant:
        raise Refusal(
            f"{here} finds {study.name!r}, revision {study.revision}, at {order['study']}, but its code, or a setting "
            f"of JAX, differs from that of {order['name']!r}, revision {order['revision']}, where the run was started, "
            "and their results must not be mixed. Copy the same files to every machine, make settings such as "
            "jax_enable_x64 in the study's file or in the environment, and change nothing while the study runs."
        )
    return study, found


def trials(order: Order, study: Study) -> list[Trial]:
    """The trials of an order."""
    return [Trial(study.name, study.revision, point, seed) for point, seed in order["trials"]]


def result(record: Record) -> dict[str, Any]:
    """What a trial measured, as plain data."""
    return {
        "values": values.encode(record.values),
        "error": record.error,
        "seconds": record.seconds,
        "compile_seconds": record.compile_seconds,
        "threads": record.provenance["threads"],
    }


def failure(reason: str, seconds: float = 0.0) -> dict[str, Any]:
    """A trial that has nothing to report, because its process did not survive it."""
    return {"values": "{}", "error": reason, "seconds": seconds, "compile_seconds": 0.0}


def records(batch: Sequence[Trial], answer: Answer) -> list[Record]:
    """The records of a batch, from its answer."""
    if "refused" in answer:
        raise Refusal(answer["refused"])
    return [_record(trial, found, answer["provenance"]) for trial, found in zip(batch, answer["results"], strict=True)]


def _record(trial: Trial, found: dict[str, Any], facts: dict[str, Any]) -> Record:
    if "threads" in found:  # a library that the trial loaded may have brought some
        facts = facts | {"threads": found["threads"]}
    took = found["seconds"], found["compile_seconds"]
    return Record(trial, values.decode(found["values"]), found["error"], *took, facts)
