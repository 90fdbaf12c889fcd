"""Formulas as MathML, which browsers draw by themselves: no script, no font and no other host.

Guarantee: a formula that cannot be converted is a warning, and the build takes warnings for errors.
"""

import functools

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from genscope.explorer import formulas

LOGGER = logging.getLogger(__name__)


@functools.cache
def mathml(text: str, display: str = "inline") -> str:
    """The MathML of a LaTeX formula; one that stands alone is in a box that scrolls where the screen is narrow."""
    made = formulas.mathml(text, display)
    return f'<div class="formula">{made}</div>' if display == "block" else made


def _visit(translator, node: nodes.math | nodes.math_block, display: str) -> None:
    try:
        translator.body.append(mathml(node.astext(), display))
    except Exception as problem:
        LOGGER.warning("latex2mathml cannot convert %r: %s", node.astext(), problem, location=node)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_html_math_renderer(
        "mathml",
        (lambda self, node: _visit(self, node, "inline"), None),
        (lambda self, node: _visit(self, node, "block"), None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
