"""The walk from a function's text to all that it rests on, statement by statement, through imports.

Guarantee: exact in what is followed; `sources` says what that is.
"""

import ast
import builtins
import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from genscope.lab.plans.carried import PACKAGE, is_installed
from genscope.lab.plans.statements import (
    BLOCKS,
    DEFINITIONS,
    Chain,
    Import,
    Module,
    calls_in,
    content_of,
    is_never_run,
    loaded_by,
    read_module,
    root_of,
    short,
)

_BEGINNINGS = {"run", "run_all", "learn"}  # functions of genscope's that compute trials
_UNSAFE = {"exec", "eval", "setattr", "delattr", "__import__"}  # builtins that may change what a name means
# What makes digests computes no trial.
_MAKERS = {f"genscope.lab.plans.{name}" for name in ("sources", "statements", "traversal")}

_Position = tuple[int, int]


class Traversal:
    """Follows names from statement to statement."""

    def __init__(self, *, of_users: bool = False) -> None:
        self._taken: dict[Module, dict[_Position, ast.stmt | ast.expr]] = {}
        self._pending: list[tuple[Module, ast.stmt | ast.expr]] = []
        self.touched: dict[Module, None] = {}
        self._asked: set[tuple[str, Chain]] = set()
        self._reflects = False
        self._is_users = functools.cache(_is_users)
        self._find = functools.cache(lambda name: None if of_users and not self._is_users(name) else _find(name))

    def follow(self, module: Module, name: str, *attributes: str) -> None:
        """Take what a name means in a module."""
        for meaning in module.bindings.get(name, ()):
            if isinstance(meaning, Import):
                self._import(meaning, attributes)
            else:
                self._take(module, meaning)
        for meaning in module.bindings.get("*", ()):
            if isinstance(meaning, Import) and (name not in module.bindings or not module.ours):
                self._ask(meaning.module, (name, *attributes))

    def take_all(self, module: Module) -> None:
        """Take a whole module."""
        self.touch(module)
        for name in list(module.bindings):
            self.follow(module, name)

    def touch(self, module: Module) -> None:
        """Take what acts in a module without being named; of the user's, also what it loads."""
        if module in self.touched:
            return
        self.touched[module] = None
        began = False
        for statement in module.statements:
            began = began or self._begins(module, statement)
            for acting in self._acting(module, statement) if not began else self._acting_later(module, statement):
                self._take(module, acting)
        if module.ours:
            return
        self._load(module.name.rpartition(".")[0])
        for statement in module.statements:
            if not is_never_run(statement) and not isinstance(statement, DEFINITIONS):
                for node in ast.walk(statement):
                    for name in loaded_by(node, module.package):
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
            told = "\n".join(content_of(module, found[position]).text for position in sorted(found))
            texts.setdefault(_shown(module, directory), []).append(told)
        return {name: short("\n".join(told)) for name, told in texts.items()}

    def packages(self) -> Iterator[str]:
        """The first names of what the user's files import."""
        for module in self.touched:
            if not module.ours:
                imports = [each for meanings in module.bindings.values() for each in meanings]
                yield from (each.module.partition(".")[0] for each in imports if isinstance(each, Import))

    def _finish(self) -> None:
        while self._pending:
            module, statement = self._pending.pop()
            content = content_of(module, statement)
            for name, *attributes in content.chains:
                for meaning in content.imports.get(name, ()):
                    self._import(meaning, tuple(attributes))
                self.follow(module, name, *attributes)
            if not module.ours:
                self._reflects |= content.reflects
                for name in content.loads:
                    self._load(name)
                for name in content.named:
                    self._ask(name, ())

    def _begins(self, module: Module, statement: ast.stmt) -> bool:
        """Whether a statement of a program of the user's lets genscope compute trials."""
        if module.ours or is_never_run(statement):
            return False
        return any(self._name(module, call.func) in _BEGINNINGS for call in calls_in(statement))

    def _name(self, module: Module, called: ast.expr) -> str | None:
        """The last part of the name that something of genscope's has there."""
        root, last = root_of(called), called.attr if isinstance(called, ast.Attribute) else None
        for meaning in module.bindings.get(root or "", ()):
            if isinstance(meaning, Import) and meaning.module.partition(".")[0] == "genscope":
                return last or meaning.name
        return None

    def _acting_later(self, module: Module, statement: ast.stmt) -> Iterator[ast.stmt | ast.expr]:
        """What may still matter once trials have been computed, to further ones; what is done with results does not."""
        if isinstance(statement, DEFINITIONS) or is_never_run(statement):
            return
        yield from (call for call in calls_in(statement) if self._is_own(module, call.func))
        for node in ast.walk(statement):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and any(
                isinstance(meaning, Import)
                for target in targets
                if isinstance(target, ast.Attribute | ast.Subscript)
                for meaning in module.bindings.get(root_of(target) or "", ())
            ):
                yield node

    def _acting(self, module: Module, statement: ast.stmt) -> Iterator[ast.stmt | ast.expr]:
        """What acts in a statement of the top level though it may never be named, such as a setting of JAX."""
        if isinstance(statement, ast.Expr):
            if _prints(module, statement.value):
                yield from (call for call in calls_in(statement) if self._is_own(module, call.func))
            elif not isinstance(statement.value, ast.Constant):
                yield statement
        elif isinstance(statement, BLOCKS):
            if not is_never_run(statement):
                yield statement
        elif module.ours or isinstance(statement, ast.Import | ast.ImportFrom):
            return
        elif isinstance(statement, DEFINITIONS):
            self._reflects |= isinstance(statement, ast.ClassDef) and self._makes_classes(module, statement)
            body = statement.body if isinstance(statement, ast.ClassDef) else []
            inside = [node for node in body if isinstance(node, DEFINITIONS)]
            names = {node.name for node in inside}  # of properties, whose setters decorate
            called = [each for node in (statement, *inside) for each in node.decorator_list]
            called += [call.func for call in calls_in(statement)]
            if any(root_of(each) not in names and self._is_own(module, each) for each in called):
                yield statement
        elif isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            own = [call for call in calls_in(statement) if self._is_own(module, call.func)]
            if any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
                yield statement
            elif own:  # of a declared study, a new title is no change: only what its calls rest on may be one
                yield from own if self._declares(module, statement.value) else [statement]
        else:
            yield statement

    def _is_own(self, module: Module, called: ast.expr) -> bool:
        """Whether what is called is the user's; other functions are trusted to change nothing of theirs."""
        while isinstance(called, ast.Attribute | ast.Subscript):
            called = called.value
        if not isinstance(called, ast.Name):
            return not isinstance(called, ast.Call | ast.Constant | ast.JoinedStr)
        meanings = module.bindings.get(called.id)
        if meanings is None:
            return called.id in _UNSAFE or not hasattr(builtins, called.id)
        return any(not isinstance(meaning, Import) or self._is_users(meaning.module) for meaning in meanings)

    def _declares(self, module: Module, value: ast.expr | None) -> bool:
        """Whether a value is made by something of genscope's, as a study is."""
        root = root_of(value.func) if isinstance(value, ast.Call) else None
        meanings = module.bindings.get(root or "", [])
        return any(isinstance(each, Import) and each.module.partition(".")[0] == "genscope" for each in meanings)

    def _makes_classes(self, module: Module, statement: ast.ClassDef) -> bool:
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
            if isinstance(found, Module):
                self.touch(found)

    def _import(self, meaning: Import, attributes: Chain) -> None:
        self._ask(meaning.module, attributes if meaning.name is None else (meaning.name, *attributes))

    def _ask(self, name: str, chain: Chain) -> None:
        """Take what a chain of names means inside a module, as far as the module is the user's or ours."""
        if (name, chain) in self._asked or name in _MAKERS:
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
            if Import(name, chain[0]) in module.bindings[chain[0]]:  # a package that imports a part of its own
                self._ask(f"{name}.{chain[0]}", chain[1:])
        elif self._find(f"{name}.{chain[0]}") is not None:
            self._ask(f"{name}.{chain[0]}", chain[1:])
        else:
            self.follow(module, "__getattr__")
            self.follow(module, *chain)

    def _take(self, module: Module, statement: ast.stmt | ast.expr) -> None:
        found = self._taken.setdefault(module, {})
        position = statement.lineno, statement.col_offset
        if position not in found:
            found[position] = statement
            self._pending.append((module, statement))
        self.touch(module)


def _prints(module: Module, value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id == "print"
        and "print" not in module.bindings
    )


def _is_users(name: str) -> bool:
    file, _ = _place(name.partition(".")[0])
    return file is not None and not is_installed(file) and not file.is_relative_to(PACKAGE)


def _find(name: str) -> Module | Path | None:
    """A module of the user's or ours; the directory of one that is a package without a file; None for any other."""
    file, is_package = _place(name)
    if file is None or (is_installed(file) and not file.is_relative_to(PACKAGE)):
        return None
    if file.is_dir():
        return file
    package = name if is_package else name.rpartition(".")[0]
    return read_module(name, file, package, file.stat().st_mtime_ns)


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


def _shown(module: Module, directory: Path) -> str:
    """A file's name as it is stored: from genscope's directory, from that of the study, or as it is imported."""
    if module.ours:
        return f"genscope/{module.file.relative_to(PACKAGE).as_posix()}"
    if module.file.is_relative_to(directory):
        return module.file.relative_to(directory).as_posix()
    parents = (module.name if module.file.name == "__init__.py" else module.name.rpartition(".")[0]).split(".")
    return "/".join([*filter(None, parents), module.file.name])
