"""The reference: every public module, class and function of the package by layer, from its docstrings.

Guarantee: exact; read from the source text without importing it, so that it needs nothing installed.

    python docs/make_reference.py
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "genscope"
LAYERS = {  # top to bottom; docs/architecture.md says who may import whom
    "explorer": "the pages of `genscope serve`",
    "questions": "a question of a user as a study, with theory beside",
    "report": "one HTML file from a store",
    "claims": "published statements, rules, verdicts",
    "studies": "figures of the papers as definitions",
    "measure": "what a model does",
    "constructions": "explicit weights",
    "checkpoints": "norms of real models",
    "train": "losses and training loops",
    "tasks": "what is learned",
    "models": "what learns",
    "bounds": "theorems as arithmetic",
    "lab": "machinery of experiments",
    "probe": "black-box testers",
    "fourier": "functions on the Boolean cube",
}
SINGLE = {"foundations": ("random", "estimate", "papers", "precision")}


def pages() -> dict[str, str]:
    """The text of each page by its name, the index first."""
    found = {name: _page(name, about, sorted((SOURCE / name).rglob("*.py"))) for name, about in LAYERS.items()}
    for name, modules in SINGLE.items():
        found[name] = _page(name, "what everything rests on", [SOURCE / f"{module}.py" for module in modules])
    lines = [f"- [{name}]({name}.md): {about}" for name, about in (LAYERS | {"foundations": "the rest"}).items()]
    index = [
        "# Reference",
        "By layer, the highest first. `python docs/make_reference.py` writes these pages from the docstrings; commands "
        "are in `genscope --help`.",
        "\n".join(lines),
    ]
    return {"README": "\n\n".join(index) + "\n", **found}


def _page(name: str, about: str, files: list[Path]) -> str:
    modules = [_module(file) for file in files if not file.name.startswith("_")]
    return "\n\n".join([f"# {name}", f"{about[0].upper()}{about[1:]}. [All layers](README.md).", *modules]) + "\n"


def _module(file: Path) -> str:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    path = file.relative_to(SOURCE.parent).with_suffix("")
    head, *rest = _paragraphs(tree)
    facts = [line for part in rest for line in part.split("\n") if line.startswith(("Source:", "Guarantee:"))]
    return "\n".join(
        [f"## {'.'.join(path.parts)}", "", head, *(f"\n*{fact}*" for fact in facts), "", *_members(tree.body)]
    )


def _members(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            words = _paragraphs(node)[0]
            yield f"- `{_signature(node)}`{': ' if words else ''}{words}"
            if isinstance(node, ast.ClassDef):
                yield from (f"  {line}" for line in _members([each for each in node.body if _told(each)]))


def _told(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and bool(ast.get_docstring(node))


def _signature(node: ast.ClassDef | ast.FunctionDef) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    arguments = ", ".join(_names(node.args))
    return f"{node.name}({arguments})"


def _names(arguments: ast.arguments) -> Iterator[str]:
    """Names alone, with their defaults: types are in the source."""
    plain = [*arguments.posonlyargs, *arguments.args]
    blanks: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    for argument, default in zip(plain, [*blanks, *arguments.defaults], strict=True):
        if argument.arg not in ("self", "cls"):
            yield _named(argument, default)
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{arguments.vararg.arg}" if arguments.vararg else "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _named(argument, default)
    if arguments.kwarg:
        yield f"**{arguments.kwarg.arg}"


def _named(argument: ast.arg, default: ast.expr | None) -> str:
    return argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"


def _paragraphs(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> list[str]:
    """Paragraphs of a docstring; every fact of a module on a line of its own, all else on one line."""
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    return ["\n".join(_joined(part.splitlines())) for part in text.split("\n\n")]


def _joined(lines: list[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        if not found or line.startswith(("Source:", "Departures:", "Guarantee:")):
            found.append(line)
        else:
            found[-1] += " " + line
    return found


if __name__ == "__main__":
    (DOCS / "reference").mkdir(exist_ok=True)
    for name, text in pages().items():
        (DOCS / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
