"""Names of the package in running text lead to the reference: `bounds.linear_cover`, a module, a study.

Guarantee: a name that could mean two things is left as it is.
"""

import functools
from collections import defaultdict

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

LABEL = "study-"


class ExactPythonDomain(PythonDomain):
    """Names in signatures are whole: a class of the same name elsewhere is not what is meant."""

    def find_obj(self, env, modname, classname, name, type, searchmode=0):  # noqa: D102
        return super().find_obj(env, modname, classname, name, type, 0)


class Crosslinks(SphinxPostTransform):
    """Inline code that is the name of something becomes a link to it."""

    default_priority = 700

    def run(self, **kwargs) -> None:
        """Replace the nodes."""
        known = _known(self.app)
        for node in list(self.document.findall(nodes.literal)):
            text = node.astext().removesuffix("()")
            if text in known and isinstance(node.parent, nodes.TextElement) and not _linked(node):
                page, anchor = known[text]
                builder = self.app.builder
                node.replace_self(make_refnode(builder, self.env.docname, page, anchor, node.deepcopy(), text))


def _linked(node: nodes.Node) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, nodes.reference | nodes.title):
            return True
        parent = parent.parent
    return False


@functools.cache
def _known(app: Sphinx) -> dict[str, tuple[str, str]]:
    """Page and anchor of each name, by all its endings that begin with a package's name."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for name, entry in app.env.domains.python_domain.objects.items():
        place = (entry.docname, entry.node_id)
        parts = name.split(".")
        shorter = [".".join(parts[start:]) for start in range(len(parts) - 1)]
        for each in shorter or [name]:
            found[each].add(place)
        if len(parts) > 1 and parts[-1][:1].isupper():
            found[parts[-1]].add(place)
    labels = app.env.domains.standard_domain.anonlabels
    for label, (page, anchor) in labels.items():
        if label.startswith(LABEL):
            found[label.removeprefix(LABEL)].add((page, anchor))
    return {name: next(iter(places)) for name, places in found.items() if len(places) == 1}


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_domain(ExactPythonDomain, override=True)
    app.add_post_transform(Crosslinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
