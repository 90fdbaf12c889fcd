"""Signatures as the source text has them, with names of the package's classes in full, so that they lead there."""

import ast
import functools
from collections.abc import Iterator

import objects
from objects import Module


def of_function(node: ast.FunctionDef, module: Module) -> str:
    """Arguments with types and defaults, and what is returned."""
    returned = f" -> {annotation(node.returns, module)}" if node.returns else ""
    return f"({', '.join(_arguments(node.args, module))}){returned}"


def of_class(node: ast.ClassDef, module: Module) -> str:
    """Arguments of `__init__`, or the fields of a dataclass or module."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return f"({', '.join(_arguments(statement.args, module))})"
    made = "dataclass" in objects.decorators(node) or any(ast.unparse(base).endswith("Module") for base in node.bases)
    return f"({', '.join(_field(field, module) for field, _ in objects.fields(node))})" if made else ""


def annotation(node: ast.expr, module: Module) -> str:
    """A type: without remarks (`Annotated[float, Number(...)]` is a float), and with known classes in full."""
    return ast.unparse(_Names(module).visit(ast.parse(ast.unparse(node), mode="eval").body))


@functools.cache
def _public() -> dict[str, str]:
    """The name under which a class is listed, by where it is defined and by every name that leads there."""
    listed = {thing.canonical: thing.public for group in objects.things().values() for thing in group}
    return listed | {public: public for public in listed.values()}


class _Names(ast.NodeTransformer):
    def __init__(self, module: Module) -> None:
        self.module = module

    def visit_Name(self, node: ast.Name) -> ast.expr:
        full = _public().get(self.module.imports.get(node.id, ""))
        return ast.parse(full, mode="eval").body if full else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """A class named in quotes, because it is defined later."""
        if isinstance(node.value, str) and node.value in self.module.imports:
            return self.visit_Name(ast.Name(node.value))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if ast.unparse(node.value) == "Annotated":
            inside = node.slice
            return self.visit(inside.elts[0] if isinstance(inside, ast.Tuple) else inside)
        self.generic_visit(node)
        return node


def _field(field: ast.AnnAssign, module: Module) -> str:
    default = "" if field.value is None else " = " + _default(field.value)
    return f"{ast.unparse(field.target)}: {annotation(field.annotation, module)}{default}"


def _default(value: ast.expr) -> str:
    made = isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field")
    return "..." if made else ast.unparse(value)


def _arguments(arguments: ast.arguments, module: Module) -> Iterator[str]:
    plain = [*arguments.posonlyargs, *arguments.args]
    blanks: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    for argument, default in zip(plain, [*blanks, *arguments.defaults], strict=True):
        if argument.arg not in ("self", "cls"):
            yield _argument(argument, default, module)
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{_argument(arguments.vararg, None, module)}" if arguments.vararg else "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default, module)
    if arguments.kwarg:
        yield f"**{_argument(arguments.kwarg, None, module)}"


def _argument(argument: ast.arg, default: ast.expr | None, module: Module) -> str:
    kind = f": {annotation(argument.annotation, module)}" if argument.annotation else ""
    return f"{argument.arg}{kind}" + ("" if default is None else f" = {ast.unparse(default)}")
