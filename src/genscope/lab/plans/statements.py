"""A file of Python by its top-level statements: what each binds, names and loads, and its text without the words.

Guarantee: exact; comments on lines of their own, docstrings and blank lines are left out. Of a file that this Python
cannot parse, all bytes count.
"""

import ast
import functools
import hashlib
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from genscope.lab.plans.carried import PACKAGE

Chain = tuple[str, ...]  # a name and its attributes
_DIGITS = 16
BLOCKS = (ast.If, ast.Try, ast.TryStar, ast.For, ast.While, ast.With, ast.Match)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def short(text: str) -> str:
    """A digest of a text, short enough to be read."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True)
class Import:
    """A name that stands for a module, or for a name inside one."""

    module: str
    name: str | None


@dataclass(frozen=True, eq=False)
class Module:
    """A file, by its top-level statements."""

    name: str
    package: str
    file: Path
    lines: list[str]
    statements: list[ast.stmt] = field(default_factory=list)
    bindings: dict[str, list[ast.stmt | Import]] = field(default_factory=dict)
    contents: "dict[ast.AST, Content]" = field(default_factory=dict)

    @functools.cached_property
    def ours(self) -> bool:
        """Whether it is genscope's."""
        return self.file.is_relative_to(PACKAGE)


@functools.lru_cache(maxsize=1024)
def read_module(name: str, file: Path, package: str, _changed: int) -> Module:
    """The statements of a file as it was when it was last changed."""
    try:
        with tokenize.open(file) as opened:
            text = opened.read()
        parsed = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        whole = ast.Expr(ast.Name(""), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
        return Module(name, package, file, [hashlib.sha256(file.read_bytes()).hexdigest()], [whole])
    found = Module(name, package, file, text.split("\n"), parsed.body)
    for statement in parsed.body:
        for bound, meaning in _bindings(statement, package):
            found.bindings.setdefault(bound, []).append(meaning)
    return found


def _bindings(statement: ast.stmt, package: str) -> Iterator[tuple[str, ast.stmt | Import]]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from _imports(statement, package)
    elif isinstance(statement, DEFINITIONS):
        yield statement.name, statement
    elif not is_never_run(statement):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, statement
            elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
                if root := root_of(node):
                    yield root, statement
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for name, meaning in _imports(node, package):
                    yield name, meaning
                    yield name, statement
            elif isinstance(node, (*DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
                yield node.name, statement


def _imports(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, Import]]:
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.asname:
                yield alias.asname, Import(alias.name, None)
            else:
                yield alias.name.partition(".")[0], Import(alias.name.partition(".")[0], None)
        return
    module = statement.module or ""
    if statement.level:
        base = package.split(".")[: len(package.split(".")) - statement.level + 1]
        module = ".".join([*base, module] if module else base)
    for alias in statement.names:
        yield alias.asname or alias.name, Import(module, alias.name)


def loaded_by(node: ast.AST, package: str) -> Iterator[str]:
    """The modules that an import loads; some of the names may be none."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        for _, meaning in _imports(node, package):
            yield f"{meaning.module}.{meaning.name}"


def is_never_run(statement: ast.stmt) -> bool:
    """Whether it is only for type checkers, or for a file that is run as a program."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return ast.unparse(statement.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'")


def calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
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


def root_of(node: ast.expr) -> str | None:
    """The name that a chain of attributes and subscripts begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


@dataclass(frozen=True)
class Content:
    """What matters of a statement: its names with the attributes asked of them, its imports, and its lines.

    `loads` may be modules, `named` are imported whole by a function that is given their names.
    """

    chains: tuple[Chain, ...]
    imports: dict[str, list[Import]]
    loads: tuple[str, ...]
    named: tuple[str, ...]
    text: str
    reflects: bool


def content_of(module: Module, statement: ast.stmt | ast.expr) -> Content:
    """What matters of a statement, looked at once."""
    if statement in module.contents:
        return module.contents[statement]
    chains: set[Chain] = set()
    imports: dict[str, list[Import]] = {}
    loads: list[str] = []
    named: list[str] = []
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
            loads += loaded_by(node, module.package)
            for name, meaning in _imports(node, module.package):
                imports.setdefault(name, []).append(meaning)
        elif isinstance(node, ast.Call) and (name := _imported_by_name(node)):
            named.append(name)
        elif isinstance(node, DEFINITIONS):
            if ast.get_docstring(node, clean=False) and _is_alone(module, node.body[0]):
                dropped.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
            quoted.update(range(node.lineno + 1, (node.end_lineno or 0) + 1))
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    numbers = range(min([statement.lineno, *(each.lineno for each in decorators)]), (statement.end_lineno or 0) + 1)
    lines = [(number, module.lines[number - 1].rstrip()) for number in numbers if number not in dropped]
    kept = [line for number, line in lines if number in quoted or (line and not line.lstrip().startswith("#"))]
    text = ast.unparse(statement) if isinstance(statement, ast.expr) else "\n".join(kept)
    module.contents[statement] = Content(tuple(chains), imports, tuple(loads), tuple(named), text, _reflects(statement))
    return module.contents[statement]


def _imported_by_name(call: ast.Call) -> str | None:
    """The module that `importlib.import_module` or `__import__` is asked for in so many words."""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    given = call.args[0] if call.args else None
    if last in ("import_module", "__import__") and isinstance(given, ast.Constant) and isinstance(given.value, str):
        return given.value
    return None


def _reflects(statement: ast.AST) -> bool:
    """Whether what a statement uses may be named by none of its words."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id in ("globals", "vars", "eval", "exec"):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("__dict__", "__subclasses__"):
            return True
        if isinstance(node, ast.Attribute) and node.attr == "modules" and root_of(node) == "sys":
            return True
    return False


def _is_alone(module: Module, statement: ast.stmt) -> bool:
    """Whether nothing but a comment shares the lines of a statement."""
    before = module.lines[statement.lineno - 1].encode()[: statement.col_offset]
    after = module.lines[(statement.end_lineno or 0) - 1].encode()[statement.end_col_offset :]
    return not before.strip() and (not after.strip() or after.lstrip().startswith(b"#"))
