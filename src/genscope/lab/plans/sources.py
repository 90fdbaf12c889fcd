"""What computes a trial: the source text that its function rests on, across files, as digests that are stored with it.

Beginning at the function, every top-level statement that it names is followed, in its own file and, through imports, in
the user's modules and in genscope's; installed packages are named by their versions instead. So a new point, figure or
docstring of a study changes nothing here, and a constant three modules away does.

Departures: names are looked up in the text, not by running it. Not seen: modules imported under computed names, objects
changed from outside, and data files that a trial reads.
Guarantee: exact in what is followed; comments on lines of their own, docstrings and blank lines are left out.
"""

import ast
import functools
import hashlib
import importlib.util
import inspect
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genscope.lab.plans.settings import settings
from genscope.lab.plans.study import Study

_PACKAGE = Path(__file__).resolve().parents[2]
_INSTALLED = tuple(
    {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_DIGITS = 16
_BLOCKS = (ast.If, ast.Try, ast.For, ast.While, ast.With)


@dataclass(frozen=True)
class Sources:
    """Digests of the text that computes a trial, by file; and of JAX's settings that are not its own."""

    parts: Mapping[str, str]
    packages: frozenset[str] = frozenset()
    """What the user's files among them import."""

    @functools.cached_property
    def digest(self) -> str:
        """One digest of all parts."""
        return _short(json.dumps(self.parts, sort_keys=True))

    def facts(self) -> dict[str, Any]:
        """As provenance holds them."""
        return {"digest": self.digest, "parts": dict(self.parts)}


def sources(study: Study) -> Sources | None:
    """What computes the trials of a study; None for a function without a file, as one that was typed in."""
    found = function_sources(study.trial)
    if found is None:
        return None
    declared = {"paired": sorted(study.paired), "stacked": study.stacked}
    if study.stacked:
        declared |= {"batch": study.batch, "static": sorted(study.static)}
    parts = {**found.parts, f"Study({', '.join(declared)})": _short(json.dumps(declared))}
    parts |= {f"JAX's setting {name}={value}": _short(repr(value)) for name, value in settings().items()}
    return Sources(parts, found.packages)


def function_sources(function: Callable[..., Any]) -> Sources | None:
    """The text that a function rests on."""
    function, bound = _bare(function)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if module is None or file is None or not file.endswith(".py") or not Path(file).is_file():
        return None
    home = _module(module.__name__, Path(file).resolve(), _package_of(module), Path(file).stat().st_mtime_ns)
    traversal = _Traversal()
    name = getattr(function, "__qualname__", "")
    traversal.follow(home, name) if name in home.bindings else traversal.take_all(home)
    while traversal.pending:
        traversal.step()
    parts = {_shown(file, home.file.parent): _short(text) for file, text in traversal.texts().items()}
    if bound:
        parts["bound arguments"] = _short(repr(bound))
    return Sources(parts, frozenset(traversal.packages()))


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The files whose text differs, is new or is gone."""
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def _bare(function: Any) -> tuple[Any, list[Any]]:
    """The function inside wrappers and partial applications, and the arguments that these bind."""
    bound: list[Any] = []
    while True:
        function = inspect.unwrap(function)
        if not isinstance(function, functools.partial):
            return (function if hasattr(function, "__qualname__") else type(function)), bound
        bound += [*function.args, *sorted(function.keywords.items())]
        function = function.func


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _shown(file: Path, directory: Path) -> str:
    """A file's name as it is stored: from genscope's directory, or from that of the study."""
    if file.is_relative_to(_PACKAGE):
        return f"genscope/{file.relative_to(_PACKAGE).as_posix()}"
    return file.relative_to(directory).as_posix() if file.is_relative_to(directory) else file.name


def _package_of(module: Any) -> str:
    spec = getattr(module, "__spec__", None)
    return (spec.parent if spec is not None else getattr(module, "__package__", None)) or ""


Chain = tuple[str, ...]


@dataclass(frozen=True)
class _Import:
    """A name that stands for a module, or for a name inside one."""

    module: str
    name: str | None


@dataclass(frozen=True, eq=False)
class _Module:
    """A file, by its top-level statements."""

    name: str
    package: str
    file: Path
    lines: list[str]
    bindings: dict[str, list[ast.stmt | _Import]]
    effects: list[ast.stmt]
    """Statements that act without being named, such as a setting of JAX."""
    contents: "dict[int, _Content]" = field(default_factory=dict)


@functools.lru_cache(maxsize=1024)
def _module(name: str, file: Path, package: str, _changed: int) -> _Module:
    text = file.read_text(encoding="utf-8")
    found = _Module(name, package, file, text.splitlines(), {}, [])
    for statement in ast.parse(text).body:
        for bound, meaning in _bindings(statement, package):
            found.bindings.setdefault(bound, []).append(meaning)
        if _acts(statement):
            found.effects.append(statement)
    return found


def _bindings(statement: ast.stmt, package: str) -> Iterator[tuple[str, ast.stmt | _Import]]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from _imports(statement, package)
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name, statement
    elif not (isinstance(statement, ast.If) and _is_never_run(statement)):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, statement
            elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
                if root := _root(node):
                    yield root, statement
            elif isinstance(node, ast.FunctionDef | ast.ClassDef) and isinstance(statement, _BLOCKS):
                yield node.name, statement


def _imports(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, _Import]]:
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.asname:
                yield alias.asname, _Import(alias.name, None)
            else:
                yield alias.name.partition(".")[0], _Import(alias.name.partition(".")[0], None)
        return
    module = statement.module or ""
    if statement.level:
        base = package.split(".")[: len(package.split(".")) - statement.level + 1]
        module = ".".join([*base, module] if module else base)
    for alias in statement.names:
        yield alias.asname or alias.name, _Import(module, alias.name)


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    return isinstance(statement, _BLOCKS) and not (isinstance(statement, ast.If) and _is_never_run(statement))


def _is_never_run(statement: ast.If) -> bool:
    """Whether a condition only holds for type checkers, or for a file that is run as a program."""
    names = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(statement.test) if isinstance(node, ast.Attribute)}
    return bool(names & {"TYPE_CHECKING", "__name__"})


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


@dataclass(frozen=True)
class _Content:
    """What matters of a statement: its names with the attributes asked of them, its imports, and its lines."""

    chains: tuple[Chain, ...]
    imports: dict[str, list[_Import]]
    text: str


def _content(module: _Module, statement: ast.stmt) -> _Content:
    if statement.lineno in module.contents:
        return module.contents[statement.lineno]
    chains: set[Chain] = set()
    imports: dict[str, list[_Import]] = {}
    inner: set[int] = set()
    dropped: set[int] = set()
    quoted: set[int] = set()  # inside a long string a line that begins with # is no comment
    for node in ast.walk(statement):  # an attribute comes before what it is an attribute of
        if isinstance(node, ast.Name | ast.Attribute):
            if id(node) in inner:
                continue
            chain: list[str] = []
            root: ast.expr = node
            while isinstance(root, ast.Attribute):
                chain.append(root.attr)
                root = root.value
                inner.add(id(root))
            if isinstance(root, ast.Name):
                chains.add((root.id, *reversed(chain)))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name, meaning in _imports(node, module.package):
                imports.setdefault(name, []).append(meaning)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if ast.get_docstring(node, clean=False):
                dropped.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
            quoted.update(range(node.lineno + 1, (node.end_lineno or 0) + 1))
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    numbers = range(min([statement.lineno, *(each.lineno for each in decorators)]), (statement.end_lineno or 0) + 1)
    lines = [(number, module.lines[number - 1].rstrip()) for number in numbers if number not in dropped]
    kept = [line for number, line in lines if number in quoted or (line and not line.lstrip().startswith("#"))]
    module.contents[statement.lineno] = _Content(tuple(chains), imports, "\n".join(kept))
    return module.contents[statement.lineno]


class _Traversal:
    """Follows names from statement to statement."""

    def __init__(self) -> None:
        self.taken: dict[Path, dict[int, tuple[_Module, ast.stmt]]] = {}
        self.pending: list[tuple[_Module, ast.stmt]] = []
        self._asked: set[tuple[str, Chain]] = set()
        self._find = functools.cache(_find)

    def step(self) -> None:
        module, statement = self.pending.pop()
        content = _content(module, statement)
        for name, *attributes in content.chains:
            for meaning in content.imports.get(name, ()):
                self._import(meaning, tuple(attributes))
            self.follow(module, name, *attributes)

    def follow(self, module: _Module, name: str, *attributes: str) -> None:
        """Take what a name means in a module."""
        for meaning in module.bindings.get(name, ()):
            if isinstance(meaning, _Import):
                self._import(meaning, attributes)
            else:
                self._take(module, meaning)
        for meaning in module.bindings.get("*", ()):
            if isinstance(meaning, _Import) and name not in module.bindings:
                self._ask(meaning.module, (name, *attributes))

    def take_all(self, module: _Module) -> None:
        """Take a whole module."""
        self._touch(module)
        for name in list(module.bindings):
            self.follow(module, name)

    def texts(self) -> dict[Path, str]:
        """The statements that were taken, in their order, by file."""
        return {
            file: "\n".join(_content(*found[line]).text for line in sorted(found)) for file, found in self.taken.items()
        }

    def packages(self) -> Iterator[str]:
        """The first names of what the user's files import."""
        modules = {module for found in self.taken.values() for module, _ in found.values()}
        for module in modules:
            if not module.file.is_relative_to(_PACKAGE):
                imports = [each for meanings in module.bindings.values() for each in meanings]
                yield from (each.module.partition(".")[0] for each in imports if isinstance(each, _Import))

    def _import(self, meaning: _Import, attributes: Chain) -> None:
        self._ask(meaning.module, attributes if meaning.name is None else (meaning.name, *attributes))

    def _ask(self, name: str, chain: Chain) -> None:
        """Take what a chain of names means inside a module, as far as the module is the user's or ours."""
        if (name, chain) in self._asked:
            return
        self._asked.add((name, chain))
        module = self._find(name)
        if module is None:
            return
        if isinstance(module, Path):  # a package without a file of its own
            if chain:
                self._ask(f"{name}.{chain[0]}", chain[1:])
        elif not chain:
            self.take_all(module)
        elif chain[0] in module.bindings:
            self._touch(module)
            self.follow(module, *chain)
        elif self._find(f"{name}.{chain[0]}") is not None:
            self._ask(f"{name}.{chain[0]}", chain[1:])
        else:
            self.follow(module, "__getattr__")
            self.follow(module, *chain)

    def _touch(self, module: _Module) -> None:
        for statement in module.effects:
            self._take(module, statement)

    def _take(self, module: _Module, statement: ast.stmt) -> None:
        found = self.taken.setdefault(module.file, {})
        first = not found
        if statement.lineno not in found:
            found[statement.lineno] = module, statement
            self.pending.append((module, statement))
        if first:
            self._touch(module)


def _find(name: str) -> "_Module | Path | None":
    """A module of the user's or ours; the directory of one that is a package without a file; None for any other."""
    file, is_package = _place(name)
    if file is None or (_is_installed(file) and not file.is_relative_to(_PACKAGE)):
        return None
    if file.is_dir():
        return file
    package = name if is_package else name.rpartition(".")[0]
    return _module(name, file, package, file.stat().st_mtime_ns)


def _is_installed(file: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, of this environment or of one that it borrows."""
    return any(map(file.is_relative_to, _INSTALLED)) or not {"site-packages", "dist-packages"}.isdisjoint(file.parts)


def _place(name: str) -> tuple[Path | None, bool]:
    """Where a module is, found without importing anything; and whether it is a package."""
    parent, _, last = name.rpartition(".")
    if parent:
        file, is_package = _place(parent)
        if file is None or not is_package:
            return None, False
        directory = file if file.is_dir() else file.parent
        candidates = [(directory / last / "__init__.py", True), (directory / f"{last}.py", False)]
        candidates.append((directory / last, True))
        return next(((at, kind) for at, kind in candidates if at.exists() and (at.is_file() or kind)), (None, False))
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # a module that has no specification, such as __main__
        return None, False
    if spec is None:
        return None, False
    directories = list(spec.submodule_search_locations or ())
    if spec.origin is None and directories:
        return Path(directories[0]).resolve(), True
    if spec.origin is None or not spec.origin.endswith(".py"):
        return None, False
    return Path(spec.origin).resolve(), bool(directories)
