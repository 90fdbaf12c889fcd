"""A question answered live: `python -m genscope.questions.live`, started by the explorer's room Learn.

It reads one JSON object from standard input and writes JSON lines: snapshots of runs as they train, then their results;
or success counts while a threshold is searched, then the answer. It ends when standard input does, so that no training
outlives the server.

Guarantee: exact; a streamed run is a trial like any other, computed by the same programs and stored under the first
seed that is not stored yet.
"""

import contextlib
import dataclasses
import functools
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float

from genscope.jsonable import jsonable
from genscope.lab import Progress, Store, Success, read, run, select
from genscope.lab.execution.cache import use_compilation_cache
from genscope.lab.results.reduction import success
from genscope.measure import cls_attention
from genscope.models import BitClassifier
from genscope.questions.prepared import PreparedQuestion, prepare
from genscope.questions.study import Learning
from genscope.questions.trial import Snapshot
from genscope.refusal import Refusal

INPUTS = 64  # fresh inputs on which attention and influences are averaged
CURVE = 60  # points of a drawn success curve
LAST_SECONDS = 3.0  # to give leases back, before the process ends by force
Emit = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """One request, from standard input to standard output."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    lock, out = threading.Lock(), sys.stdout
    sys.stdout = sys.stderr  # what is printed by accident is no event

    def emit(event: Mapping[str, Any]) -> None:
        with lock:
            out.write(json.dumps(jsonable(event), allow_nan=False) + "\n")
            out.flush()

    use_compilation_cache()
    try:
        with Store(request["store"]) as store:
            (stream_runs if request["kind"] == "run" else stream_threshold)(request, store, emit)
    except Refusal as error:
        emit({"event": "refused", "message": str(error)})
    except Exception as error:
        traceback.print_exc()
        emit({"event": "failed", "message": f"{type(error).__name__}: {error}"})


def _end_with_input() -> None:
    with contextlib.suppress(OSError, ValueError):
        while sys.stdin.readline():
            pass
    threading.Timer(LAST_SECONDS, os._exit, (1,)).start()
    os.kill(os.getpid(), signal.SIGTERM)


def _prepared(request: Mapping[str, Any]) -> PreparedQuestion:
    return prepare(
        request["expression"],
        context_length=request["context_length"],
        network=request["networks"],
        budget="quick",
        noise=request["noise"],
    )


def stream_runs(request: Mapping[str, Any], store: Store, emit: Emit) -> None:
    """One trial of each network, one after the other."""
    asked = _prepared(request)
    for network in request["networks"]:
        observe = functools.partial(_emit_snapshot, emit, network)
        study = dataclasses.replace(asked.study, trial=Learning(asked.question, observe))
        point = {"context_length": request["context_length"], "network": network, "sample_size": request["sample_size"]}
        seed = _first_unused(store, asked, point)
        selected = {name: [value] for name, value in point.items()}
        selection = select(study, "quick", selected, seed=seed, reference=asked.question.text)
        emit({"event": "begins", "network": network, "seed": seed, "study": study.name})
        run(study, selection, store=store)
        [stored] = store.results(selection.trials(point, [seed])).values()
        if stored is None:
            raise Refusal(f"the run of {network} failed; genscope export {study.name} shows why. Choose other sizes.")
        emit({"event": "ends", "network": network, **stored})


def _first_unused(store: Store, asked: PreparedQuestion, point: Mapping[str, Any]) -> int:
    """The first seed of a point of which nothing is stored."""
    frame = store.frame(asked.study.name, asked.study.revision)
    for axis, value in point.items():
        if axis not in frame.columns:
            return 0
        frame = frame.filter(frame[axis] == value)
    used = {*frame["seed"].to_list()}
    return next(seed for seed in range(len(used) + 1) if seed not in used)


def _emit_snapshot(emit: Emit, network: str, snapshot: Snapshot) -> None:
    try:
        emit({"event": "snapshot", "network": network, **_described(snapshot)})
    except Exception:  # whatever is wrong with a snapshot, the run goes on and is stored as it would be
        traceback.print_exc()


def _described(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "steps": snapshot.steps,
        "most": snapshot.learner.recipe.steps,
        "losses": np.round(snapshot.losses.astype(float), 5).tolist(),
        "accuracy": snapshot.held_out.estimate(snapshot.model),
        "support": np.sort(np.asarray(getattr(snapshot.task, "support", ()))).tolist(),
        "weights": np.round(_bit_weights(snapshot).astype(float), 4).tolist(),
        "attention": isinstance(snapshot.model, BitClassifier),
    }


def _bit_weights(snapshot: Snapshot) -> Float[np.ndarray, " T"]:
    """For each bit, the largest attention that a head gives it on average, or its influence on the answers."""
    x = snapshot.task.inputs(jr.key(0), INPUTS)
    if isinstance(snapshot.model, BitClassifier):
        return np.asarray(cls_attention(snapshot.model, x).mean(axis=0).max(axis=0))
    return np.asarray(_influences(snapshot.model, x, predict=snapshot.learner.predict))


@functools.partial(jax.jit, static_argnames="predict")
def _influences(model: Any, x: Bool[Array, "m T"], predict: Callable[..., Array]) -> Float[Array, " T"]:
    """Shares of inputs whose answer changes with each bit."""
    answers = predict(model, x) > 0

    def changed(bit: Array) -> Array:
        return jnp.mean((predict(model, x ^ (jnp.arange(x.shape[1]) == bit)[None]) > 0) != answers)

    return jax.lax.map(changed, jnp.arange(x.shape[1]))


def stream_threshold(request: Mapping[str, Any], store: Store, emit: Emit) -> None:
    """The search for the samples that each network needs, and the answer."""
    asked = _prepared(request)
    told: list[int] = []

    def follow(now: Progress) -> None:
        if told and told[-1] == now.done:
            return
        told.append(now.done)
        _emit_curves(asked, store, now, emit)

    run(asked.study, asked.selection, store=store, progress=follow)
    answer = asked.collect(store)
    emit({"event": "answer", "sentence": answer.sentence, "next": answer.next_step, "study": asked.study.name})


def _emit_curves(asked: PreparedQuestion, store: Store, now: Progress, emit: Emit) -> None:
    [figure] = [each for each in asked.study.figures if isinstance(each, Success)]
    reading = read(store, asked.selection)
    curves = []
    for rates in success(figure, reading) if len(reading.frame) else []:
        found = rates.threshold
        sizes = np.geomspace(min(rates.sizes), max(rates.sizes), CURVE)
        drawn = None if found.curve is None else {"sizes": sizes.tolist(), "shares": found.probability(sizes).tolist()}
        known = {"sizes": rates.sizes, "trials": rates.trials, "shares": rates.shares, "curve": drawn}
        where = {"sample_size": found.size, "low": found.low, "high": found.high, "state": found.state}
        curves.append({"network": rates.name, **known, **where})
    emit({"event": "curves", "done": now.done, "total": now.total, "left": now.seconds_left, "curves": curves})


if __name__ == "__main__":
    main()
