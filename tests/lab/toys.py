"""Cheap studies for tests of the machinery, and the programs that tests start and kill."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr

from genscope.lab import Cluster, Plan, Processes, Progress, Store, Study, Summary, grid, run
from genscope.lab.execution.threads import Threads
from genscope.lab.statistics import estimation, threshold


@dataclass(frozen=True)
class ToySearch(threshold.Search):
    """A search whose rounds are easy to foresee; `next_round` below is its policy."""

    axis: str = "sample_size"
    outcome: str = "solved"
    trials: int = 40


_next_round = getattr(estimation, "next_round", None)


def next_round(search: Any, counts: Mapping[int, tuple[int, int]]) -> dict[int, int] | None:
    """Three sizes, then two and three trials at a time around the middle, 40 in all: rounds that split batches."""
    if not isinstance(search, ToySearch):
        return _next_round(search, counts)
    if not counts:
        return {4: 4, 16: 4, 64: 4}
    if sum(trials for _, trials in counts.values()) >= search.trials:
        return None
    middle = min((size for size, (good, trials) in counts.items() if 2 * good >= trials), default=64)
    return {middle: 2, max(1, 3 * middle // 4): 3}


estimation.next_round = next_round


def draw(key: Any, **point: Any) -> dict[str, Any]:
    """A uniform number, and the point it was asked for."""
    return {"number": jr.uniform(key), "asked": sum(v for v in point.values() if not isinstance(v, str))}


def placed_sum(key: Any) -> dict[str, Any]:
    """A sum of random numbers, and the device that computed it."""
    total = jnp.sum(jr.normal(key, (1000,)))
    [device] = total.devices()
    return {"number": total, "device": device.id}


def slow_draw(key: Any, **point: Any) -> dict[str, Any]:
    time.sleep(0.02)
    return draw(key, **point)


def slow_success(key: Any, context_length: int, sample_size: int) -> dict[str, Any]:
    """Succeeds the more often, the larger the sample; the middle lies at four times the context."""
    time.sleep(0.02)
    chance = sample_size**3 / (sample_size**3 + (4 * context_length) ** 3)
    return {"solved": bool(jr.uniform(key) < chance), "chance": chance}


def walk(key: Any, steps: Any, kind: str) -> dict[str, Any]:
    """A random walk with a traced number of steps."""
    start = {"zero": 0.0, "one": 1.0}[kind]

    def step(i: Any, state: Any) -> Any:
        return state + jr.normal(jr.fold_in(key, i))

    end = jax.lax.fori_loop(0, steps, step, jnp.float32(start))
    return {"end": end, "positive": end > 0, "steps_taken": steps, "path": jnp.stack([end, -end])}


def slow_walk(key: Any, steps: Any, kind: str) -> dict[str, Any]:
    """The walk behind a pause, so that a stacked batch is long enough to be killed inside."""
    pause = jax.pure_callback(
        lambda _: (time.sleep(0.01), jnp.float32(0).__array__())[1],
        jax.ShapeDtypeStruct((), jnp.float32),
        jr.uniform(key),
        vmap_method="sequential",
    )
    out = walk(key, steps, kind)
    return out | {"end": out["end"] + pause}


fixed = Study(
    name="toy-fixed",
    title="Uniform numbers",
    source="tests",
    trial=draw,
    points=grid(size=[1, 2, 3], kind=["a", "b"]),
    seeds=5,
    paired=frozenset({"kind"}),
    budgets={"quick": Plan(grid(size=[1], kind=["a"]), seeds=2)},
)

placed = Study(name="toy-placed", title="Sums", source="tests", trial=placed_sum, points=({},), seeds=12, batch=1)

slow = fixed.replace(name="toy-slow", trial=slow_draw, points=grid(size=[1, 2, 3]), seeds=30, paired=frozenset())

search = Study(
    name="toy-search",
    title="Where a curve crosses",
    source="tests",
    trial=slow_success,
    points=grid(context_length=[3, 8]),
    search=ToySearch(),
)

stacked = Study(
    name="toy-stacked",
    title="Random walks",
    source="tests",
    trial=walk,
    points=grid(steps=[1, 7], kind=["zero", "one"]),
    seeds=6,
    stacked=True,
)

slow_stacked = stacked.replace(
    name="toy-slow-stacked", trial=slow_walk, points=grid(steps=[1, 7], kind=["zero"]), seeds=24
)


def run_on_threads(number: int, study: Study, **options: Any) -> Summary:
    with Threads(number) as pool:
        return run(study, pool=pool, **options)


STUDIES = {study.name: study for study in (fixed, slow, search, stacked, slow_stacked)}


def rows(store: Store, study: Study) -> Any:
    """Identities and values of all trials: what must not depend on how they were computed."""
    frame = store.frame(study.name)
    return frame.drop("seconds", "compile_seconds", "finished", "provenance")


def tell(now: Progress) -> None:
    print(f"done {now.done}", flush=True)


def main() -> None:
    """Run a toy study as a process of its own: `python -m tests.lab.toys NAME URL [processes or a cluster's address]`.

    Leases are long: a process that dies must not be waited for.
    """
    name, url, *computing = sys.argv[1:]
    made = Threads(2) if not computing else Processes(2) if computing == ["processes"] else Cluster(computing[0])
    with Store(url, lease_seconds=600.0) as store, made as pool:
        print("open", flush=True)
        input()  # until told to begin
        summary = run(STUDIES[name], store=store, pool=pool, progress=tell)
        print(f"computed {summary.computed}", flush=True)


if __name__ == "__main__":
    main()
