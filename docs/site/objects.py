"""Public modules, classes and functions of the package, read from the source text.

Guarantee: exact; nothing is imported. A name that a package's `__init__` gives to the world is listed under that
package, wherever it is defined; what starts with an underscore is not listed.
"""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "genscope"
HIDDEN = {"cli"}  # commands have a page of their own


@dataclass(frozen=True)
class Thing:
    """A class or function: where it is defined, and the name by which users reach it."""

    canonical: str
    public: str
    node: ast.ClassDef | ast.FunctionDef
    module: "Module"

    @property
    def docstring(self) -> str:
        """Its docstring, or nothing."""
        return ast.get_docstring(self.node) or ""


@dataclass(frozen=True)
class Module:
    """A file of the package."""

    file: Path

    @functools.cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.file.read_text(encoding="utf-8"))

    @property
    def name(self) -> str:
        """Its dotted name."""
        path = self.file.relative_to(SOURCE.parent).with_suffix("")
        return ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)

    @property
    def docstring(self) -> str:
        """Its docstring, or nothing."""
        return ast.get_docstring(self.tree) or ""

    @property
    def private(self) -> bool:
        """Whether its name starts with an underscore."""
        return self.file.stem.startswith("_") and self.file.stem != "__init__"

    @functools.cached_property
    def imports(self) -> dict[str, str]:
        """Where the names come from that it imports from this package or defines itself."""
        found = {name: f"{self.name}.{name}" for name in self.definitions()}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("genscope"):
                found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        return found

    def definitions(self) -> dict[str, ast.ClassDef | ast.FunctionDef]:
        """Public classes and functions by name."""
        found = [node for node in self.tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        return {node.name: node for node in found if node.name[0] != "_"}


@functools.cache
def packages() -> dict[str, list[Module]]:
    """The modules of each package by its dotted name, its `__init__` first; single modules are `genscope` itself."""
    found: dict[str, list[Module]] = {}
    for init in sorted(SOURCE.rglob("__init__.py")):
        if not HIDDEN & set(init.relative_to(SOURCE).parts) and "static" not in init.parts:
            rest = sorted(file for file in init.parent.glob("*.py") if file.stem not in ("__init__", "__main__"))
            found[Module(init).name] = [Module(file) for file in [init, *rest]]
    return found


@functools.cache
def exports() -> dict[str, str]:
    """The public name of what a package's `__init__` imports from its files, by its definition; the shortest wins."""
    found: dict[str, str] = {}
    for package, (init, *_) in sorted(packages().items(), key=lambda each: each[0].count("."), reverse=True):
        for node in ast.walk(init.tree):
            if (
                isinstance(node, ast.ImportFrom)
                and (node.module or "").startswith(f"{package}.")
                and package != "genscope"
            ):
                names = {alias.name: alias.asname or alias.name for alias in node.names}
                found |= {
                    f"{node.module}.{name}": f"{package}.{shown}" for name, shown in names.items() if shown[0] != "_"
                }
    return found


@functools.cache
def things() -> dict[str, list[Thing]]:
    """Public classes and functions by the module under which they are listed."""
    public = exports()
    found: dict[str, list[Thing]] = {}
    for package, modules in packages().items():
        for module in modules:
            for name, node in module.definitions().items():
                canonical = f"{module.name}.{name}"
                if canonical in public or not module.private:
                    home = package if module.private else module.name
                    found.setdefault(home, []).append(Thing(canonical, public.get(canonical, canonical), node, module))
    return found


def fields(node: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign, str]]:
    """Public annotated attributes of a class, each with the docstring that follows it."""
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            told = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            if statement.target.id[0] != "_":
                yield statement, str(told)


def methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Public methods and properties that have a docstring."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name[0] != "_" and ast.get_docstring(statement):
            yield statement


def decorators(node: ast.ClassDef | ast.FunctionDef) -> set[str]:
    """Last names of its decorators."""
    heads = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return {ast.unparse(head).rpartition(".")[2] for head in heads}
