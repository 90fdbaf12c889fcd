"""What every number made from trials has to say of them: that some failed, and that they were not computed alike.

Trials that different code computed are not one experiment; different threads, instructions or versions change last
digits, which training amplifies.

Guarantee: exact; trials of code that is not known (stored by an older genscope) count as trials of other code.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from genscope.lab.plans.sources import changed_parts
from genscope.lab.results.raised import own_line
from genscope.lab.storage.store import MACHINE_FAILED

_VERSIONED = ("jax", "jaxlib", "numpy", "scipy")


def failed_trials(frame: pl.DataFrame) -> pl.DataFrame:
    """The trials that raised an exception."""
    return frame.filter(pl.col("status") == "failed")


def failures(frame: pl.DataFrame) -> Iterator[str]:
    """How many trials failed, of which every number beside them knows nothing."""
    failed = failed_trials(frame)
    if len(failed):
        said = own_line(failed["error"][0] or "")
        lost = failed["error"].str.starts_with(MACHINE_FAILED).sum()
        whose = f", {lost} of them because the machine failed" if lost else ""
        yield (
            f"{len(failed)} of {len(frame)} trials raised an exception{whose}, and nothing here counts them; "
            f"the first says: {said}"
        )


def mixtures(frame: pl.DataFrame, origins: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One sentence for each way in which the trials that count were not computed alike."""
    counted = frame.filter(pl.col("status") == "ok")["provenance"].value_counts(sort=True).rows()
    facts = [(origins.get(name, {}), number) for name, number in counted]
    codes = _tally(facts, lambda each: each.get("sources", {}).get("digest"))
    if len(codes) > 1:
        parts = {each["sources"]["digest"]: each["sources"]["parts"] for each, _ in facts if each.get("sources")}
        texts = list(parts.values())
        changed = sorted({name for text in texts[1:] for name in changed_parts(texts[0], text)})
        which = f"; {', '.join(changed[:5])}{' and others' if len(changed) > 5 else ''} changed" if changed else ""
        yield f"different code computed these trials ({_counts(codes)}){which}: they are pooled here all the same"
    threads = _known(facts, lambda each: (each.get("threads") or {}).get("xla"))
    if len(threads) > 1:
        yield f"these trials were computed on different numbers of threads ({_counts(threads)}): last digits differ"
    vectors = _known(facts, lambda each: each.get("instructions"))
    if len(vectors) > 1:
        yield f"processors with different instructions computed these trials ({_counts(vectors)}): last digits differ"
    versions = _known(facts, lambda each: _versions(each.get("libraries") or {}))
    if len(versions) > 1:
        yield f"different versions of libraries computed these trials ({_counts(versions)}): last digits may differ"


def _versions(libraries: Mapping[str, str]) -> str | None:
    return ", ".join(f"{name} {libraries[name]}" for name in _VERSIONED if libraries.get(name)) or None


def _tally(facts: list[tuple[Mapping[str, Any], int]], fact: Any) -> Counter[Any]:
    tally: Counter[Any] = Counter()
    for each, number in facts:
        tally[fact(each)] += number
    return tally


def _known(facts: list[tuple[Mapping[str, Any], int]], fact: Any) -> Counter[Any]:
    """What is known of a fact; only of the code does it matter that it is not known."""
    return Counter({name: number for name, number in _tally(facts, fact).items() if name is not None})


def _counts(tally: Counter[Any]) -> str:
    return "; ".join(f"{number} by {'unknown' if name is None else name}" for name, number in tally.most_common())
