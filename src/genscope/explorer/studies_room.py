"""The room Studies: what the store holds and what is arriving, figures, trials and claims. It only reads.

Guarantee: exact; everything is read from the store as it is at that moment, through a connection that cannot write.
"""

import dataclasses
import functools
import hashlib
import io
import shlex
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from genscope.explorer import _progress, _trial_view, asking, question_queue
from genscope.explorer.room import Ask, Download, Room
from genscope.lab import Store
from genscope.lab.frames import flat
from genscope.lab.results import browsing
from genscope.lab.storage import database
from genscope.refusal import Refusal

PAGE = 50  # trials in a table
DRAWN = 200_000  # trials of a study up to which its figures are drawn
OFFERED = 300_000  # trials of one download
_NAME, _FILTER = 200, 2000  # characters
_KEPT = 16  # accounts of studies that are kept for the next visitor

_drawing = threading.Lock()  # Matplotlib's settings are global


def room(store: str) -> Room:
    """The room of a store, which need not exist yet."""
    watch = _progress.Watch()
    bind = functools.partial
    return Room(
        name="studies",
        title="Studies",
        about="What was measured, what is being measured now, and what it says about the papers' claims.",
        questions={
            "overview": lambda ask: overview(store, watch),
            "progress": bind(progress, store),
            "figures": bind(figures, store),
            "trials": bind(trials, store),
            "trial": bind(trial, store),
            "claims": lambda ask: claims(store),
            "claim": bind(claim, store),
        },
        downloads={"trials": bind(download, store)},
        page=lambda: {"size": PAGE},
    )


@contextmanager
def _reading(url: str) -> Iterator[Store]:
    with Store(url, read_only=True) as store:
        yield store


def overview(url: str, watch: _progress.Watch) -> dict[str, Any]:
    """The studies of the store with their counts and rates, and who works on it; or why there is nothing to show."""
    try:
        parts = database.parse(url)
        shown = database.shown(parts)
        if parts.get_backend_name() == "sqlite" and not database.exists(parts):
            return _nothing(shown, "There is no store yet", f"Nothing has been stored in {shown}.")
        with _reading(url) as store:
            manifests, counts = store.manifests(), store.counts()  # in this order: studies only ever come
            rates = watch.rates({name: sum(count.values()) for name, count in counts.items()})
            workers = browsing.holders(store)
            decided = len(store.verdicts())
    except (ValueError, OSError) as error:  # missing, foreign, newer, busy or away: its message says what to do
        return {
            "problem": {
                "title": _TITLES.get(type(error), "The store cannot be read"),
                "text": str(error),
                "command": "",
            }
        }
    if not manifests:
        return _nothing(shown, "Nothing has been run yet", f"The store {shown} is there, and holds no study.")
    studies = [
        {
            "name": name,
            "title": manifest["title"],
            "source": manifest["source"],
            "ok": counts[name]["ok"],
            "failed": counts[name]["failed"],
            "rate": rates[name],
        }
        for name, manifest in manifests.items()
    ]
    held = [{"host": host, "process": process, "batches": number} for host, process, number in workers]
    return {"problem": None, "store": shown, "studies": studies, "workers": held, "claims": decided}


_TITLES: Mapping[type, str] = {
    FileNotFoundError: "There is no store yet",
    TimeoutError: "The store is busy",
    ConnectionError: "The store does not answer",
    PermissionError: "The store may not be read",
}


def _nothing(store: str, title: str, text: str) -> dict[str, Any]:
    more = "This page fills as soon as trials arrive. To decide all claims in a few minutes:"
    command = f"genscope reproduce --budget quick --store {shlex.quote(store)}"
    return {"problem": {"title": title, "text": f"{text} {more}", "command": command}}


def progress(url: str, ask: Ask) -> dict[str, Any]:
    """How far one study is."""
    with _reading(url) as store:
        manifest = _manifest(store, ask)
        counts = store.counts()[manifest["name"]]
        total = sum(counts.values())
        few = total <= _progress.COUNTED
        finished = store.last_finished(manifest["name"], manifest["revision"]) if few else None
        plans = _progress.plans(store, manifest, total)
    return {**counts, "finished": finished, "plans": plans}


def figures(url: str, ask: Ask) -> dict[str, Any]:
    """The figures of a selection of a study with their tables, as the report has them."""
    with _reading(url) as store:
        manifest = _manifest(store, ask)
        counts = store.counts()[manifest["name"]]
        selections = store.selections(manifest["name"])
    chosen = asking.choice(ask, "selection", ["", *(each.id for each in selections)], default="")
    total = sum(counts.values())
    if total > DRAWN:
        raise Refusal(
            f"{manifest['name']} has {total:,} trials: the explorer draws studies of up to {DRAWN:,}. Use genscope "
            "report for this one."
        )
    question_queue.check()
    known = tuple(each.id for each in selections)
    found = _shown(url, manifest["name"], chosen, known, counts["ok"], counts["failed"])
    return found | {"selections": [[each.id, each.title] for each in reversed(selections)]}


@functools.lru_cache(maxsize=_KEPT)
def _shown(url: str, name: str, chosen: str, known: tuple[str, ...], ok: int, failed: int) -> dict[str, Any]:
    """The report's view of a study; what is known and counted tells a later state of the store from an earlier one."""
    from genscope.lab.results.reading import largest
    from genscope.report.study import show

    with _reading(url) as store:
        selections = store.selections(name)
        manifest = store.manifests()[name]
        selection, reading = largest(store, [each for each in selections if each.id == chosen] or selections)
    # A page holds the figures of several studies and states: marks with the same id would be taken for each other.
    state = hashlib.sha256(repr((name, selection.id, ok, failed)).encode()).hexdigest()[:8]
    with _drawing:
        question_queue.check()
        made = show(manifest, selection, reading, others=(), anchor=f"s{state}")
    return dataclasses.asdict(made) | {"trials": ok + failed, "shown": reading.frame.height, "selected": selection.id}


def trials(url: str, ask: Ask) -> dict[str, Any]:
    """A page of the trials that a filter leaves."""
    with _reading(url) as store:
        chosen = _chosen(store, ask)
        order = asking.text(ask, "order", longest=_NAME, default="id")
        first = asking.whole(ask, "first", least=0, most=10**9, default=0)
        total = chosen.count(store)
        question_queue.check()
        rows = chosen.page(
            store, order=order, descending=ask.get("descending") is True, first=min(first, total), size=PAGE
        )
    shown = [each for each in chosen.columns.values() if each.name not in ("compile_seconds", "error")]
    return {
        "total": total,
        "first": min(first, total),
        "columns": [{"name": each.name, "kind": each.kind} for each in shown if each.name != "id"],
        "rows": [
            {"id": row["id"], "cells": [_cell(row.get(each.name)) for each in shown if each.name != "id"]}
            for row in rows
        ],
    }


def _cell(value: Any) -> Any:
    """A list is shown by its length, what is no number by its name."""
    if isinstance(value, list):
        return f"{len(value)} values"
    return (
        str(value) if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))) else value
    )


def trial(url: str, ask: Ask) -> dict[str, Any]:
    """One trial."""
    identity = asking.text(ask, "id", longest=64)
    with _reading(url) as store:
        row = browsing.trial(store, identity)
        if row is None:
            raise Refusal(f"the store has no trial {identity[:40]!r}. Choose one from the table.")
        manifest, selections = store.manifests()[row["study"]], store.selections(row["study"])
    return _trial_view.facts(row, manifest, selections[-1])


def claims(url: str) -> dict[str, Any]:
    """The newest verdict on each claim in a line."""
    from genscope.report import verdicts

    with _reading(url) as store:
        listed = verdicts.verdicts(store.verdicts())
    kept = ("id", "statement", "verdict", "budget", "source", "reasons")
    return {
        "tally": verdicts.tally(listed),
        "claims": [{name: getattr(each, name) for name in kept} for each in listed],
    }


def claim(url: str, ask: Ask) -> dict[str, Any]:
    """One claim: its rule, the numbers that decided, its figures, its studies, the planted fault and the erratum."""
    from genscope.listing import rules
    from genscope.papers import PAPERS
    from genscope.report import verdicts, words

    wanted = asking.text(ask, "id", longest=_NAME)
    with _reading(url) as store:
        listed = verdicts.verdicts(store.verdicts(), rules())
        manifests, counts = store.manifests(), store.counts()
    found = [each for each in listed if each.id == wanted]
    if not found:
        known = ", ".join(each.id for each in listed) or "none yet"
        raise Refusal(f"got the claim {wanted[:40]!r}: the store has verdicts on {known}. Choose one of these.")
    verdict = found[-1]
    errata = {anchor: text for paper in PAPERS for anchor, text in verdicts.errata(paper)}
    held = [name for name in verdict.studies if name in manifests]
    return verdict.as_dict() | {
        "studies": [{"name": name, "title": manifests[name]["title"], **counts[name]} for name in held],
        "figures": _evidence(url, verdict.id, [name for name in held if sum(counts[name].values()) <= DRAWN], counts),
        "parts": [vars(part) | {"numbers": verdicts.numbers(part.numbers)} for part in verdict.parts],
        "remark": "" if verdict.remark is None else verdict.remark.text,
        "time": "" if verdict.seconds is None else words.duration(verdict.seconds),
        "erratum": errata.get(verdicts.erratum(verdict)),
        "command": f"genscope reproduce --only {verdict.id} --budget {verdict.budget}",
    }


def _evidence(url: str, claim: str, studies: list[str], counts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The figures that name the claim; where none does, the first of each study."""
    drawn = []
    for name in studies:
        with _reading(url) as store:
            known = tuple(each.id for each in store.selections(name))
        question_queue.check()
        shown = _shown(url, name, "", known, counts[name]["ok"], counts[name]["failed"])
        drawn.append([each for each in shown["figures"] if each["svg"] is not None])
    named = [each for figures in drawn for each in figures if claim in each["claims"]]
    return named or [figures[0] for figures in drawn if figures]


def download(url: str, ask: Ask) -> Download:
    """The trials that a filter leaves, as genscope export would write them."""
    kind = asking.choice(ask, "format", ["csv", "parquet"])
    with _reading(url) as store:
        chosen = _chosen(store, ask)
        total = chosen.count(store)
        if total > OFFERED:
            raise Refusal(
                f"there are {total:,} trials here, and the explorer offers up to {OFFERED:,} for download. Filter "
                f"them, or use genscope export {chosen.study}."
            )
        question_queue.check()
        frame = chosen.frame(store)
    file = io.BytesIO()
    if kind == "csv":
        flat(frame).write_csv(file)
    else:
        frame.write_parquet(file)
    media = "text/csv" if kind == "csv" else "application/vnd.apache.parquet"
    return Download(f"{chosen.study}.{kind}", media, file.getvalue())


def _chosen(store: Store, ask: Ask) -> browsing.Trials:
    """The trials that a filter leaves."""
    manifest = _manifest(store, ask)
    every = browsing.trials(store, manifest["name"], manifest["axes"], manifest["revision"])
    return every.where(asking.text(ask, "filter", longest=_FILTER, default=""))


def _manifest(store: Store, ask: Ask) -> dict[str, Any]:
    name = asking.text(ask, "study", longest=_NAME)
    manifests = store.manifests()
    if name not in manifests:
        raise Refusal(
            f"got the study {name[:60]!r}: the store holds {', '.join(manifests) or 'none yet'}. Choose one of these."
        )
    return manifests[name]
