"""What every number made from trials has to say of them: that some failed, and that they were not computed alike.

Trials that different code computed are not one experiment; different threads, instructions or versions change last
digits, which training amplifies. Where a provenance is lost, that is said.

Guarantee: exact; trials of code that is not known (stored by an older genscope) count as trials of other code.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from genscope.lab.plans.sources import changed_parts, listed
from genscope.lab.results.raised import own_line
from genscope.lab.storage.store import LOST, MACHINE_FAILED


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
    facts = _counted(frame, origins)
    if lost := sum(number for each, number in facts if each == LOST):
        yield provenance_lost(lost)
    yield from codes(frame, origins)
    for name, what in (("xla", "threads"), ("blas", "threads of BLAS")):
        threads = _known(facts, lambda each, name=name: (each.get("threads") or {}).get(name))
        if len(threads) > 1:
            yield f"these trials were computed on different numbers of {what} ({_counts(threads)}): last digits differ"
    vectors = _known(facts, lambda each: each.get("instructions"))
    if len(vectors) > 1:
        yield f"processors with different instructions computed these trials ({_counts(vectors)}): last digits differ"
    devices = _known(facts, lambda each: each.get("device"))
    if len(devices) > 1:
        yield f"different devices computed these trials ({_counts(devices)}): last digits differ"
    versions = _known(facts, _differing([_versions(each) for each, _ in facts]))
    if len(versions) > 1:
        yield f"different versions of libraries computed these trials ({_counts(versions)}): last digits may differ"


def provenance_lost(number: int) -> str:
    """What is said of trials that name a provenance which the store does not hold."""
    return f"the provenance of {number} of these trials is lost: what computed them is not known"


def codes(frame: pl.DataFrame, origins: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence where the trials that count are two experiments: of different code; settings of JAX are part of it."""
    facts = _counted(frame, origins)
    digests = _tally(facts, lambda each: each.get("sources", {}).get("digest"))
    if len(digests) > 1:
        parts = {each["sources"]["digest"]: each["sources"]["parts"] for each, _ in facts if each.get("sources")}
        texts = list(parts.values())
        changed = sorted({name for text in texts[1:] for name in changed_parts(texts[0], text)})
        which = f"; {listed(changed)} changed" if changed else ""
        yield f"different code computed these trials ({_counts(digests)}){which}: they are pooled here all the same"


def _counted(frame: pl.DataFrame, origins: Mapping[str, Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], int]]:
    """The facts of each provenance, and how many of the trials that count have it."""
    counted = frame.filter(pl.col("status") == "ok")["provenance"].value_counts(sort=True).rows()
    return [(origins.get(name, LOST), number) for name, number in counted]


def _versions(facts: Mapping[str, Any]) -> dict[str, str]:
    """Versions by name; that of genscope is left out, whose code counts and not its version."""
    found = {"python": facts.get("python"), **(facts.get("libraries") or {})}
    return {name: version for name, version in found.items() if version and name != "genscope"}


def _differing(versions: list[dict[str, str]]) -> Callable[[Mapping[str, Any]], str | None]:
    """What is told of versions: those of which there are two."""
    known = {name: {each[name] for each in versions if name in each} for every in versions for name in every}
    told = [name for name, found in known.items() if len(found) > 1]

    def tell(facts: Mapping[str, Any]) -> str | None:
        mine = _versions(facts)
        return ", ".join(f"{name} {mine[name]}" for name in told if name in mine) or None

    return tell


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
