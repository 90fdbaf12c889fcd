"""The reference: every public module, class and function with its types, its parameters, its sources and what tests it.

Guarantee: signatures are those of the source text; what the parameters of a bound mean and which values they take is
asked of the function itself.
"""

import ast
from collections.abc import Iterator, Mapping

import lean
import objects
import signatures
from docstrings import markdown, summary
from objects import Module, Thing
from statements import SHORT, Statement, cited, source_of, statements

from genscope.bounds import ALL as BOUNDS
from genscope.bounds._parameters import Choice, parameters

LAYERS = {  # top to bottom; docs/architecture.md says who may import whom
    "explorer": "the pages of `genscope serve`",
    "questions": "a question of a user as a study, with theory beside",
    "report": "one HTML file from a store",
    "plot": "curves to restyle for a paper",
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
REST = {"genscope": "what everything rests on"}


def pages() -> dict[str, str]:
    """The text of each page by its name, the index first."""
    modules, listed, known = objects.packages(), objects.things(), statements()
    names = {name.removeprefix("genscope."): name for name in modules}
    order = [name for layer in [*LAYERS, *REST] for name in names if name == layer or name.startswith(f"{layer}.")]
    found = {name: _page(names[name], modules[names[name]], listed, known) for name in order}
    lines = [f"- [{name}]({name}.md): {summary(modules[names[name]][0].docstring) or _about(name)}" for name in order]
    index = [
        "# Reference",
        "By layer, the highest first: a package imports from those below it only. Names are those to import; "
        "signatures carry types, and arrays their shapes (jaxtyping). Formulas follow the letters of the paper cited "
        "([notation](../notation.md)). "
        "Commands have [their own page](commands.md).",
        "\n".join(lines),
    ]
    return {"index": "\n\n".join(index) + "\n", **found}


def _about(name: str) -> str:
    words = (LAYERS | REST).get(name, "")
    return words[:1].upper() + words[1:] + "."


def _page(
    package: str,
    modules: list[Module],
    listed: Mapping[str, list[Thing]],
    known: Mapping[tuple[str, str, str], Statement],
) -> str:
    public = [module for module in modules[1:] if not module.private]
    parts = [f"# {package}", f":::{{py:module}} {package}\n:::", markdown(modules[0].docstring)]
    parts += ["\n".join(_contents(package, public, listed))]
    parts += [_thing(thing) for thing in listed.get(package, ())]
    for module in public:
        parts += [
            f"## {module.name.removeprefix(package + '.')}",
            _place(module, listed),
            markdown(module.docstring),
            _tested(module, known),
            *(_thing(thing) for thing in listed.get(module.name, ())),
        ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _contents(package: str, modules: list[Module], listed: Mapping[str, list[Thing]]) -> Iterator[str]:
    """A line for each module, with the names that it has."""
    for name in [package, *(module.name for module in modules)]:
        if names := [
            f"{{py:obj}}`{thing.public.rpartition('.')[2]} <{thing.public}>`" for thing in listed.get(name, ())
        ]:
            yield f"- {name.removeprefix(package + '.')}: {', '.join(names)}"


def _place(module: Module, listed: Mapping[str, list[Thing]]) -> str:
    """The module as a target of links, unless a function of its package has taken the name."""
    taken = {thing.public for group in listed.values() for thing in group}
    return "" if module.name in taken else f":::{{py:module}} {module.name}\n:::"


def _tested(module: Module, known: Mapping[tuple[str, str, str], Statement]) -> str:
    """Statements, claims and studies that share the module's sources."""
    own = [known[key] for key in dict.fromkeys(cited(source_of(module))) if key in known]
    own = [each for each in own if each.kind not in ("Section", "Appendix")]
    if not own:
        return ""
    places = ", ".join(f"[{SHORT[each.paper]}, {each.label}](../statements.md#{each.anchor})" for each in own)
    claims = dict.fromkeys(claim for each in own for claim in each.claims)
    studies = dict.fromkeys(study for each in own for study in each.studies)
    told = [f"**Statements:** {places}"]
    if claims:
        told.append("**Claims:** " + ", ".join(f"[{name}](../statements.md#claim-{name.lower()})" for name in claims))
    if studies:
        told.append("**Figures:** " + ", ".join(f"[{name}](../statements.md#study-{name})" for name in studies))
    return " · ".join(told)


def _thing(thing: Thing) -> str:
    module, _, name = thing.public.rpartition(".")
    options = [f":module: {module}"]
    if thing.canonical != thing.public:
        options.append(f":canonical: {thing.canonical}")
    if isinstance(thing.node, ast.FunctionDef):
        body = [markdown(thing.docstring), lean.beside(thing.public), *_parameters(thing)]
        return _directive("function", name + signatures.of_function(thing.node, thing.module), body, options)
    body = [markdown(thing.docstring), *_members(thing.node, thing.module)]
    return _directive("class", name + signatures.of_class(thing.node, thing.module), body, options, colons=4)


def _directive(kind: str, head: str, body: list[str], options: list[str], colons: int = 3) -> str:
    fence = ":" * colons
    return "\n".join([f"{fence}{{py:{kind}}} {head}", *options, "", "\n\n".join(filter(None, body)), fence])


def _members(node: ast.ClassDef, module: Module) -> Iterator[str]:
    for field, told in objects.fields(node):
        options = [f":type: {signatures.annotation(field.annotation, module)}"]
        yield _directive("attribute", ast.unparse(field.target), [markdown(_dedented(told))], options)
    for method in objects.methods(node):
        marks = objects.decorators(method)
        body = [markdown(ast.get_docstring(method) or "")]
        if marks & {"property", "cached_property"}:
            options = [f":type: {signatures.annotation(method.returns, module)}"] if method.returns else []
            yield _directive("property", method.name, body, options)
        else:
            options = [f":{mark}:" for mark in ("classmethod", "staticmethod") if mark in marks]
            yield _directive("method", method.name + signatures.of_function(method, module), body, options)


def _dedented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def _parameters(thing: Thing) -> Iterator[str]:
    """A table of what the parameters of a bound mean, and how the command line spells the bound."""
    name = next((name for name, each in BOUNDS.items() if f"genscope.bounds.{each.__name__}" == thing.public), None)
    if name is None:
        return
    rows = ["| Parameter | Meaning | Allowed | Default |", "|---|---|---|---|"]
    for parameter, about in parameters(BOUNDS[name]).items():
        allowed = _choices(about.plain) if isinstance(about.about, Choice) else about.about.allowed
        default = "" if about.required else f"`{about.default!r}`"
        meaning = about.about.meaning.replace("|", "\\|")
        rows.append(f"| `{parameter}` | {meaning} | {allowed} | {default} |")
    yield "\n".join(rows)
    yield f"On the command line: `genscope bound {name}`."


def _choices(plain) -> str:
    return "yes or no" if plain is bool else ", ".join(map(str, getattr(plain, "__args__", ())))
