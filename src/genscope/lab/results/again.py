"""The command that meets a trial again: the same trial, and a failed one where and as long as it was computed.

Guarantee: exact; a trial that ended its process is computed in a process of its own again, and one that took too long
has the same limit. The failure stays stored until its trial has a new outcome.
"""

import re

from genscope.lab.plans.selection import Selection
from genscope.lab.plans.study import Trial
from genscope.lab.storage.store import DIED, MACHINE_FAILED, TOO_LONG

_LIMIT = re.compile(rf"{TOO_LONG}(\S+) s, its limit")
_DEATH = re.compile(rf"{DIED}|{MACHINE_FAILED}: ")


def again(selection: Selection, trial: Trial | None, error: str | None) -> str:
    """What computes it; `selection` knows how its study is called, `error` says why the trial failed if it did.

    All of the selection where the trial is not known, as one that another process is replacing at this moment.
    """
    command = selection.command if trial is None else selection.command_of(trial.point, trial.seed)
    if error is None:
        return command
    limit = _LIMIT.match(error)
    where = f" --workers 1 --time-limit {limit[1]}" if limit else " --workers 1" if _DEATH.match(error) else ""
    return f"{command} --retry failed{where}"
