"""Whether new trials may join stored ones: not silently, where the code that computes them has changed in between.

Where nothing is added, a sentence says that what is stored is of other code.

Guarantee: exact as far as `plans.sources` sees; trials that were stored without a digest, or that failed, keep nobody.
"""

from genscope.lab.plans.sources import changed_parts, listed, sources
from genscope.lab.plans.study import Study
from genscope.lab.storage.store import Store
from genscope.refusal import Refusal


def check_changes(store: Store, study: Study) -> None:
    """Refuse to add trials to those that other code computed, unless this code has added some already."""
    if said := _said(store, study):
        different, anew = said
        raise Refusal(
            f"{study.name} has more trials to run, but {different}. Pooling them would mix two experiments. To start "
            f"over, {anew}; to pool them anyway, use --accept-changes (in Python accept_changes=True): every figure "
            "and verdict will then carry a note."
        )


def outdated(store: Store, study: Study) -> str | None:
    """A sentence where all trials are stored, and other code computed them."""
    if said := _said(store, study):
        different, anew = said
        return f"{different}, and none of them was run again. To measure with the code as it is now, {anew}"
    return None


def _said(store: Store, study: Study) -> tuple[str, str] | None:
    """What other code computed, and how to start over."""
    now = sources(study)
    stored = store.sources(study.name, study.revision)
    if now.digest in stored or not stored:
        return None
    number = sum(trials for trials, _ in stored.values())
    _, parts = list(stored.values())[-1]
    changed = changed_parts(parts, now.parts)
    ours = all(name.startswith(("genscope/", "Study(", "JAX's setting ")) for name in now.parts)
    anew = "use another store" if ours else f"give the study a new revision (now {study.revision}) or use another store"
    return f"{number} stored trials were computed by different code or settings: {listed(changed)} changed since", anew
