"""Studies, claims and bounds of this version of genscope, without the two seconds that loading them with JAX takes.

What is found the first time is kept in the user's cache directory, with sizes and times of the source files it came
from; Python trusts its own compiled files on the same grounds.

Guarantee: exact; what was kept is used only while every source file is the one that it came from.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import platformdirs

from genscope.files import draft

PACKAGE = Path(__file__).parent


def listing() -> dict[str, Any]:
    """Studies with the selections of their budgets, claims and bounds, as plain JSON."""
    if "genscope.studies" in sys.modules:  # there they are
        return _made()
    file = Path(platformdirs.user_cache_dir("genscope")) / "listing.json"
    state = _state()
    with contextlib.suppress(OSError, ValueError, KeyError):
        kept = json.loads(file.read_bytes())
        if kept["state"] == state:
            return kept["listing"]
    made = _made()
    with contextlib.suppress(OSError):  # the next call takes as long
        file.parent.mkdir(parents=True, exist_ok=True)
        with draft(file) as new:
            new.write_text(json.dumps({"state": state, "listing": made}))
    return made


def rules() -> dict[str, dict[str, Any]]:
    """Each claim's rule as it is now, by the claim's id: its words as `rule`, and its `rule_digest`."""
    return {claim["id"]: claim for claim in listing()["claims"]}


def _state() -> str:
    """A digest of the names, sizes and times of all source files, and of Python's version."""
    whole = hashlib.sha256(sys.version.encode())
    for entry in sorted(_sources(str(PACKAGE)), key=lambda entry: entry.path):
        facts = entry.stat()
        whole.update(f"{entry.path}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    return whole.hexdigest()


def _sources(directory: str) -> "Iterator[os.DirEntry[str]]":
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _sources(entry.path)
            elif entry.name.endswith(".py"):
                yield entry


def _made() -> dict[str, Any]:
    from genscope import bounds, claims, studies
    from genscope.lab import select
    from genscope.lab.plans.study import BUDGETS

    return {
        "studies": [
            {
                "name": study.name,
                "title": study.title,
                "source": study.source,
                "revision": study.revision,
                "budgets": {budget: select(study, budget).facts() for budget in BUDGETS},
            }
            for study in studies.ALL
        ],
        "claims": [
            {name: getattr(claim, name) for name in ("id", "statement", "source", "rule", "rule_digest")}
            for claim in claims.ALL
        ],
        "bounds": [
            {"name": name, "bounds": (function.__doc__ or "").partition("\n")[0]}
            for name, function in bounds.ALL.items()
        ],
    }
