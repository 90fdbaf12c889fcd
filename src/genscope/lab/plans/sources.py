"""What computes a trial: the source text that its function rests on, across files, as digests that are stored with it.

Beginning at the function, every top-level statement that it names is followed, in its own file and, through imports, in
the user's modules and in genscope's; installed packages are named by their versions instead. So a new point, figure or
docstring of a study changes nothing here, and a constant three modules away does. Of the user's modules, what acts
while they are imported counts too, named or not: blocks, calls of the user's own functions, what these decorate. Where
such text looks itself up (`globals()`, `eval`, `__subclasses__`, a metaclass), they count whole: too much text asks one
question too many, too little mixes two experiments.

Departures: names are looked up in the text as it is now, not by running it. Not seen: modules imported under computed
names, what installed functions do with the user's (`list(map(register, rules))`), data files that a trial reads,
compiled modules, and that a module was imported before it was edited.
Guarantee: exact in what is followed; comments on lines of their own, docstrings and blank lines are left out. Of a file
that this Python cannot parse, all bytes count.
"""

import ast
import builtins
import functools
import hashlib
import importlib.util
import json
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genscope.lab.plans.carried import PACKAGE, Carried, home, is_installed, origin
from genscope.lab.plans.settings import settings
from genscope.lab.plans.study import Study

_DIGITS = 16
_BLOCKS = (ast.If, ast.Try, ast.TryStar, ast.For, ast.While, ast.With, ast.Match)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNSAFE = {"exec", "eval", "setattr", "delattr", "__import__"}  # builtins that may change what a name means


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


def sources(study: Study) -> Sources:
    """What computes the trials of a study."""
    declared = {"paired": sorted(study.paired), "stacked": study.stacked}
    if study.stacked:
        declared |= {"batch": study.batch, "static": sorted(study.static)}
    found = function_sources(study.trial)
    parts = {**found.parts, f"Study({', '.join(declared)})": _short(json.dumps(declared))}
    parts |= {f"JAX's setting {name}={value}": _short(repr(value)) for name, value in settings().items()}
    return Sources(parts, found.packages)


def function_sources(function: Callable[..., Any]) -> Sources:
    """The text that a function rests on, and what it carries besides."""
    carried = Carried(function)
    traversal = _Traversal()
    homes = [_begin(traversal, each) for each in carried.written if origin(each) in ("genscope", "user")]
    parts = traversal.parts(homes[0].file.parent if homes else Path())
    if carried.text:
        typed = [origin(each) for each in carried.written[:1]] == ["typed"]
        parts["what was typed in" if typed else "bound arguments"] = _short(carried.text)
    return Sources(parts, frozenset(traversal.packages()))


def file_sources(file: Path) -> tuple[Sources, list[str]]:
    """The text of the user's modules that a file of theirs imports, without the file itself; and their names."""
    file = file.resolve()
    itself = _module(file.stem, file, "", file.stat().st_mtime_ns)
    traversal = _Traversal(of_users=True)
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


def _begin(traversal: "_Traversal", value: Any) -> "_Module":
    """Take the text of a function, a class or a module."""
    facts = home(value)
    file, spec = Path(facts["__file__"]).resolve(), facts.get("__spec__")
    package = (spec.parent if spec is not None else facts.get("__package__")) or ""
    module = _module(facts.get("__name__", file.stem), file, package, file.stat().st_mtime_ns)
    name = value.__code__.co_qualname if hasattr(value, "__code__") else getattr(value, "__qualname__", "")
    if not module.ours:  # what is defined inside a function or a class belongs to its text
        name = name.partition(".")[0]
    traversal.touch(module)
    traversal.follow(module, name) if name in module.bindings else traversal.take_all(module)
    return module


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _shown(module: "_Module", directory: Path) -> str:
    """A file's name as it is stored: from genscope's directory, from that of the study, or as it is imported."""
    if module.ours:
        return f"genscope/{module.file.relative_to(PACKAGE).as_posix()}"
    if module.file.is_relative_to(directory):
        return module.file.relative_to(directory).as_posix()
    parents = (module.name if module.file.name == "__init__.py" else module.name.rpartition(".")[0]).split(".")
    return "/".join([*filter(None, parents), module.file.name])


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
    statements: list[ast.stmt] = field(default_factory=list)
    bindings: dict[str, list[ast.stmt | _Import]] = field(default_factory=dict)
    contents: "dict[ast.AST, _Content]" = field(default_factory=dict)

    @functools.cached_property
    def ours(self) -> bool:
        """Whether it is genscope's."""
        return self.file.is_relative_to(PACKAGE)


@functools.lru_cache(maxsize=1024)
def _module(name: str, file: Path, package: str, _changed: int) -> _Module:
    try:
        with tokenize.open(file) as opened:
            text = opened.read()
        parsed = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        whole = ast.Expr(ast.Name(""), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
        return _Module(name, package, file, [hashlib.sha256(file.read_bytes()).hexdigest()], [whole])
    found = _Module(name, package, file, text.split("\n"), parsed.body)
    for statement in parsed.body:
        for bound, meaning in _bindings(statement, package):
            found.bindings.setdefault(bound, []).append(meaning)
    return found


def _bindings(statement: ast.stmt, package: str) -> Iterator[tuple[str, ast.stmt | _Import]]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from _imports(statement, package)
    elif isinstance(statement, _DEFINITIONS):
        yield statement.name, statement
    elif not _is_never_run(statement):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, statement
            elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
                if root := _root(node):
                    yield root, statement
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for name, meaning in _imports(node, package):
                    yield name, meaning
                    yield name, statement
            elif isinstance(node, (*_DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
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


def _loads(node: ast.AST, package: str) -> Iterator[str]:
    """The modules that an import loads; some of the names may be none."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        for _, meaning in _imports(node, package):
            yield f"{meaning.module}.{meaning.name}"


def _is_never_run(statement: ast.stmt) -> bool:
    """Whether it is only for type checkers, or for a file that is run as a program."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return ast.unparse(statement.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'")


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls that happen when a statement is run, not inside functions that it defines."""
    left: list[ast.AST | None] = [statement]
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            left += [*node.args.defaults, *node.args.kw_defaults, *getattr(node, "decorator_list", [])]
        elif node is not None:
            left += ast.iter_child_nodes(node)
            if isinstance(node, ast.Call):
                yield node


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


@dataclass(frozen=True)
class _Content:
    """What matters of a statement: its names with the attributes asked of them, its imports, and its lines."""

    chains: tuple[Chain, ...]
    imports: dict[str, list[_Import]]
    loads: tuple[str, ...]
    text: str
    reflects: bool


def _content(module: _Module, statement: ast.stmt | ast.expr) -> _Content:
    if statement in module.contents:
        return module.contents[statement]
    chains: set[Chain] = set()
    imports: dict[str, list[_Import]] = {}
    loads: list[str] = []
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
            loads += _loads(node, module.package)
            for name, meaning in _imports(node, module.package):
                imports.setdefault(name, []).append(meaning)
        elif isinstance(node, _DEFINITIONS):
            if ast.get_docstring(node, clean=False) and _is_alone(module, node.body[0]):
                dropped.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
            quoted.update(range(node.lineno + 1, (node.end_lineno or 0) + 1))
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    numbers = range(min([statement.lineno, *(each.lineno for each in decorators)]), (statement.end_lineno or 0) + 1)
    lines = [(number, module.lines[number - 1].rstrip()) for number in numbers if number not in dropped]
    kept = [line for number, line in lines if number in quoted or (line and not line.lstrip().startswith("#"))]
    text = ast.unparse(statement) if isinstance(statement, ast.expr) else "\n".join(kept)
    module.contents[statement] = _Content(tuple(chains), imports, tuple(loads), text, _reflects(statement))
    return module.contents[statement]


def _reflects(statement: ast.AST) -> bool:
    """Whether what a statement uses may be named by none of its words."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id in ("globals", "vars", "eval", "exec"):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("__dict__", "__subclasses__"):
            return True
        if isinstance(node, ast.Attribute) and node.attr == "modules" and _root(node) == "sys":
            return True
    return False


def _is_alone(module: _Module, statement: ast.stmt) -> bool:
    """Whether nothing but a comment shares the lines of a statement."""
    before = module.lines[statement.lineno - 1].encode()[: statement.col_offset]
    after = module.lines[(statement.end_lineno or 0) - 1].encode()[statement.end_col_offset :]
    return not before.strip() and (not after.strip() or after.lstrip().startswith(b"#"))


_Place = tuple[int, int]


class _Traversal:
    """Follows names from statement to statement."""

    def __init__(self, *, of_users: bool = False) -> None:
        self._taken: dict[_Module, dict[_Place, ast.stmt | ast.expr]] = {}
        self._pending: list[tuple[_Module, ast.stmt | ast.expr]] = []
        self.touched: dict[_Module, None] = {}
        self._asked: set[tuple[str, Chain]] = set()
        self._reflects = False
        self._is_users = functools.cache(_is_users)
        self._find = functools.cache(lambda name: None if of_users and not self._is_users(name) else _find(name))

    def follow(self, module: _Module, name: str, *attributes: str) -> None:
        """Take what a name means in a module."""
        for meaning in module.bindings.get(name, ()):
            if isinstance(meaning, _Import):
                self._import(meaning, attributes)
            else:
                self._take(module, meaning)
        for meaning in module.bindings.get("*", ()):
            if isinstance(meaning, _Import) and (name not in module.bindings or not module.ours):
                self._ask(meaning.module, (name, *attributes))

    def take_all(self, module: _Module) -> None:
        """Take a whole module."""
        self.touch(module)
        for name in list(module.bindings):
            self.follow(module, name)

    def touch(self, module: _Module) -> None:
        """Take what acts in a module without being named; of the user's, also what it loads."""
        if module in self.touched:
            return
        self.touched[module] = None
        for statement in module.statements:
            for acting in self._acting(module, statement):
                self._take(module, acting)
        if module.ours:
            return
        self._load(module.name.rpartition(".")[0])
        for statement in module.statements:
            if not _is_never_run(statement) and not isinstance(statement, _DEFINITIONS):
                for node in ast.walk(statement):
                    for name in _loads(node, module.package):
                        self._load(name)

    def parts(self, directory: Path) -> dict[str, str]:
        """Digests of all that is to be taken, by file; names of the user's files begin at the directory."""
        self._finish()
        if self._reflects:
            for module in [module for module in self.touched if not module.ours]:
                self.take_all(module)
            self._finish()
        texts: dict[str, list[str]] = {}
        for module, found in sorted(self._taken.items(), key=lambda each: each[0].file):
            told = "\n".join(_content(module, found[place]).text for place in sorted(found))
            texts.setdefault(_shown(module, directory), []).append(told)
        return {name: _short("\n".join(told)) for name, told in texts.items()}

    def _finish(self) -> None:
        while self._pending:
            module, statement = self._pending.pop()
            content = _content(module, statement)
            for name, *attributes in content.chains:
                for meaning in content.imports.get(name, ()):
                    self._import(meaning, tuple(attributes))
                self.follow(module, name, *attributes)
            if not module.ours:
                self._reflects |= content.reflects
                for name in content.loads:
                    self._load(name)

    def _acting(self, module: _Module, statement: ast.stmt) -> Iterator[ast.stmt | ast.expr]:
        """What acts in a statement of the top level though it may never be named, such as a setting of JAX."""
        if isinstance(statement, ast.Expr):
            if not isinstance(statement.value, ast.Constant):
                yield statement
        elif isinstance(statement, _BLOCKS):
            if not _is_never_run(statement):
                yield statement
        elif module.ours or isinstance(statement, ast.Import | ast.ImportFrom):
            return
        elif isinstance(statement, _DEFINITIONS):
            self._reflects |= isinstance(statement, ast.ClassDef) and self._makes_classes(module, statement)
            body = statement.body if isinstance(statement, ast.ClassDef) else []
            inside = [node for node in body if isinstance(node, _DEFINITIONS)]
            names = {node.name for node in inside}  # of properties, whose setters decorate
            called = [each for node in (statement, *inside) for each in node.decorator_list]
            called += [call.func for call in _calls(statement)]
            if any(_root(each) not in names and self._is_own(module, each) for each in called):
                yield statement
        elif isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            own = [call for call in _calls(statement) if self._is_own(module, call.func)]
            if any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
                yield statement
            elif own:  # of a declared study, a new title is no change: only what its calls rest on may be one
                yield from own if self._declares(module, statement.value) else [statement]
        else:
            yield statement

    def _is_own(self, module: _Module, called: ast.expr) -> bool:
        """Whether what is called is the user's; other functions are trusted to change nothing of theirs."""
        while isinstance(called, ast.Attribute | ast.Subscript):
            called = called.value
        if not isinstance(called, ast.Name):
            return not isinstance(called, ast.Call | ast.Constant | ast.JoinedStr)
        meanings = module.bindings.get(called.id)
        if meanings is None:
            return called.id in _UNSAFE or not hasattr(builtins, called.id)
        return any(not isinstance(meaning, _Import) or self._is_users(meaning.module) for meaning in meanings)

    def _declares(self, module: _Module, value: ast.expr | None) -> bool:
        """Whether a value is made by something of genscope's, as a study is."""
        root = _root(value.func) if isinstance(value, ast.Call) else None
        meanings = module.bindings.get(root or "", [])
        return any(isinstance(each, _Import) and each.module.partition(".")[0] == "genscope" for each in meanings)

    def _makes_classes(self, module: _Module, statement: ast.ClassDef) -> bool:
        """Whether a class acts on its subclasses when they are defined."""
        return any(getattr(each, "name", "") == "__init_subclass__" for each in statement.body) or any(
            each.arg == "metaclass" and self._is_own(module, each.value) for each in statement.keywords
        )

    def _load(self, name: str) -> None:
        """Touch a module of the user's and the packages that it is in, as importing it does."""
        if not self._is_users(name):
            return
        parts = name.split(".")
        for number in range(1, len(parts) + 1):
            found = self._find(".".join(parts[:number]))
            if isinstance(found, _Module):
                self.touch(found)

    def packages(self) -> Iterator[str]:
        """The first names of what the user's files import."""
        for module in self.touched:
            if not module.ours:
                imports = [each for meanings in module.bindings.values() for each in meanings]
                yield from (each.module.partition(".")[0] for each in imports if isinstance(each, _Import))

    def _import(self, meaning: _Import, attributes: Chain) -> None:
        self._ask(meaning.module, attributes if meaning.name is None else (meaning.name, *attributes))

    def _ask(self, name: str, chain: Chain) -> None:
        """Take what a chain of names means inside a module, as far as the module is the user's or ours."""
        if (name, chain) in self._asked or name == __name__:  # what makes digests computes no trial
            return
        self._asked.add((name, chain))
        module = self._find(name)
        if module is None:
            return
        if isinstance(module, Path):  # a package without a file of its own
            if chain:
                self._ask(f"{name}.{chain[0]}", chain[1:])
            return
        if not module.ours:
            self.touch(module)
        if not chain:
            self.take_all(module)
        elif chain[0] in module.bindings:
            self.touch(module)
            self.follow(module, *chain)
        elif self._find(f"{name}.{chain[0]}") is not None:
            self._ask(f"{name}.{chain[0]}", chain[1:])
        else:
            self.follow(module, "__getattr__")
            self.follow(module, *chain)

    def _take(self, module: _Module, statement: ast.stmt | ast.expr) -> None:
        found = self._taken.setdefault(module, {})
        place = statement.lineno, statement.col_offset
        if place not in found:
            found[place] = statement
            self._pending.append((module, statement))
        self.touch(module)


def _is_users(name: str) -> bool:
    file, _ = _place(name.partition(".")[0])
    return file is not None and not is_installed(file) and not file.is_relative_to(PACKAGE)


def _find(name: str) -> "_Module | Path | None":
    """A module of the user's or ours; the directory of one that is a package without a file; None for any other."""
    file, is_package = _place(name)
    if file is None or (is_installed(file) and not file.is_relative_to(PACKAGE)):
        return None
    if file.is_dir():
        return file
    package = name if is_package else name.rpartition(".")[0]
    return _module(name, file, package, file.stat().st_mtime_ns)


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
