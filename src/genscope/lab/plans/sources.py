"""What computes a trial: the source text that its function rests on, across files, as digests that are stored with it.

Beginning at the function, every top-level statement that it names is followed, in its own file and, through imports, in
the user's modules and in genscope's; installed packages are named by their versions instead. So a new point, figure or
docstring of a study changes nothing here, and a constant three modules away does. Of the user's modules, what acts
while they are imported counts too, named or not: blocks, calls of the user's own functions, what these decorate. Where
such text looks itself up (`globals()`, `eval`, `__subclasses__`, a metaclass), they count whole: too much text asks one
question too many, too little mixes two experiments.

Departures: names are looked up in the text as it is now, not by running it. Not seen: modules imported under computed
names, what installed functions do with the user's (`list(map(register, rules))`), data files that a trial reads,
compiled modules, and that a module was imported before it was edited (workers see that: `execution.loaded`).
Guarantee: exact in what is followed; what of a text counts, `statements` says.
"""

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from genscope.lab.plans.carried import Carried, home, origin
from genscope.lab.plans.settings import settings
from genscope.lab.plans.statements import Import, Module, read_module, short
from genscope.lab.plans.study import Study
from genscope.lab.plans.traversal import Traversal


@dataclass(frozen=True)
class Sources:
    """Digests of the text that computes a trial, by file; and of JAX's settings that are not its own."""

    parts: Mapping[str, str]
    packages: frozenset[str] = frozenset()
    """What the user's files among them import."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Where the modules are that were followed, by name."""

    @functools.cached_property
    def digest(self) -> str:
        """One digest of all parts."""
        return short(json.dumps(self.parts, sort_keys=True))

    def facts(self) -> dict[str, Any]:
        """As provenance holds them."""
        return {"digest": self.digest, "parts": dict(self.parts)}


_LEFT: dict[str, Sources] = {}  # by the digest after a run, what was there before it
_CARRIED, _TYPED = "bound arguments", "what was typed in"  # parts that are no files


def sources(study: Study) -> Sources:
    """What computes the trials of a study; what trials have `left_behind` changes nothing."""
    found = _sources(study)
    return _LEFT.get(found.digest, found)


@contextlib.contextmanager
def left_behind(study: Study) -> Iterator[None]:
    """While trials run: a memo or a counter that they change in this process is no change of the code that counts."""
    before = sources(study)
    try:
        yield
    finally:
        after = _sources(study)
        if set(changed_parts(before.parts, after.parts)) <= {_CARRIED, _TYPED}:
            _LEFT[after.digest] = before


def _sources(study: Study) -> Sources:
    declared = {"paired": sorted(study.paired), "stacked": study.stacked}
    if study.stacked:
        declared |= {"batch": study.batch, "static": sorted(study.static)}
    found = function_sources(study.trial, _holder(study))
    parts = {**found.parts, f"Study({', '.join(declared)})": short(json.dumps(declared))}
    parts |= {f"JAX's setting {name}={value}": short(repr(value)) for name, value in settings().items()}
    return Sources(parts, found.packages, found.files)


def function_sources(function: Callable[..., Any], holder: ModuleType | None = None) -> Sources:
    """The text that a function rests on, and what it carries besides; and what acts in the file of its study."""
    carried = Carried(function)
    traversal = Traversal()
    homes = [_begin(traversal, each) for each in carried.written if origin(each) in ("genscope", "user")]
    if holder is not None:
        traversal.touch(_module(holder))
    parts = traversal.parts(homes[0].file.parent if homes else Path())
    if carried.text:
        typed = [origin(each) for each in carried.written[:1]] == ["typed"]
        parts[_TYPED if typed else _CARRIED] = short(carried.text)
    files = {module.name: module.file for module in traversal.touched}
    return Sources(parts, frozenset(traversal.packages()), files)


def file_sources(file: Path) -> tuple[Sources, list[str]]:
    """The text of the user's modules that a file of theirs imports, without the file itself; and their names."""
    file = file.resolve()
    itself = read_module(file.stem, file, "", file.stat().st_mtime_ns)
    traversal = Traversal(of_users=True)
    sys.path.insert(0, str(file.parent))  # where it will be when the file is run
    try:
        traversal.take_all(itself)
        parts = traversal.parts(file.parent)
    finally:
        sys.path.remove(str(file.parent))
    names = [module.name for module in traversal.touched if module is not itself]
    return Sources({name: text for name, text in parts.items() if name != file.name}), names


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The files whose text differs, is new or is gone."""
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def listed(changed: Sequence[str], most: int = 5) -> str:
    """The first files by name, and how many more there are."""
    return ", ".join(changed[:most]) + (f" and {len(changed) - most} more" if len(changed) > most else "")


def _holder(study: Study) -> ModuleType | None:
    """The module of the user's whose text makes a study; what that does to other modules may reach the trial."""
    first = sys.modules.get(getattr(study.trial, "__module__", None) or "")
    for module in (first, *list(sys.modules.values())):
        names = [name for name, value in list(getattr(module, "__dict__", {}).items()) if value is study]
        if module is None or not names:
            continue
        if origin(module) == "genscope":
            return None
        if origin(module) == "user" and any(
            not isinstance(meaning, Import) for name in names for meaning in _module(module).bindings.get(name, ())
        ):
            return module
    return None


def _module(value: Any) -> Module:
    """The file of a function, a class or a module."""
    facts = home(value)
    file, spec = Path(facts["__file__"]).resolve(), facts.get("__spec__")
    package = (spec.parent if spec is not None else facts.get("__package__")) or ""
    return read_module(facts.get("__name__", file.stem), file, package, file.stat().st_mtime_ns)


def _begin(traversal: Traversal, value: Any) -> Module:
    """Take the text of a function, a class or a module."""
    module = _module(value)
    name = value.__code__.co_qualname if hasattr(value, "__code__") else getattr(value, "__qualname__", "")
    if not module.ours:  # what is defined inside a function or a class belongs to its text
        name = name.partition(".")[0]
    traversal.touch(module)
    traversal.follow(module, name) if name in module.bindings else traversal.take_all(module)
    return module
