"""Whether new trials may join stored ones: not silently, where the code that computes them has changed in between.

Guarantee: exact as far as `plans.sources` sees; trials that were stored without a digest, or that failed, keep nobody.
"""

from genscope.lab.plans.sources import changed_parts, sources
from genscope.lab.plans.study import Study
from genscope.lab.storage.store import Store
from genscope.refusal import Refusal

_SHOWN = 5


def check_changes(store: Store, study: Study) -> None:
    """Refuse to add trials to those that other code computed, unless this code has added some already."""
    now = sources(study)
    stored = store.sources(study.name, study.revision)
    if now.digest in stored or not stored:
        return
    number = sum(trials for trials, _ in stored.values())
    _, parts = list(stored.values())[-1]
    changed = changed_parts(parts, now.parts)
    files = ", ".join(changed[:_SHOWN]) + (f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else "")
    ours = any(name.startswith("genscope/studies/") for name in now.parts)
    anew = "use another store" if ours else f"give the study a new revision (now {study.revision}) or use another store"
    raise Refusal(
        f"{study.name} has more trials to run, but {number} stored ones were computed by different code: {files} "
        f"changed since. Pooling them would mix two experiments. To start over, {anew}; to pool them anyway, use "
        "--accept-changes (in Python accept_changes=True): every figure and verdict will then carry a note."
    )
