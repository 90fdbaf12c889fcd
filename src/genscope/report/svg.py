"""Matplotlib figures as SVG inside a page: the colors are the page's variables, the letters the page's font.

Guarantee: exact; the same figure gives the same text, its ids begin with the given name, and it loads nothing.
"""

import io
import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Literal

import matplotlib
import matplotlib.style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import LayoutEngine

# Okabe and Ito's hues, darkened until each stands 4.5 to 1 against white; style.css has the pair for dark pages.
SERIES = ("#0067a5", "#c04a00", "#007a5a", "#9c3f86", "#7d6100", "#4a5568")
INK, MUTED, RULE, PAPER = "#1c2128", "#5f6873", "#dcdfe4", "#fdfdfc"
_VARIABLES = {
    **{colour: f"--series-{number}" for number, colour in enumerate(SERIES, start=1)},
    **{INK: "--ink", MUTED: "--muted", RULE: "--rule", PAPER: "--paper"},
}

# One unit of the drawing is one pixel of the page at full width.
WIDTH, PHONE = 720, 352
STYLE = {
    "figure.dpi": 72,
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.constrained_layout.hspace": 0.06,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 12,
    "axes.titlesize": 12.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 12.5,
    "axes.labelpad": 6,
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.ymargin": 0.1,  # room for arrows
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": 11.5,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.6,
}
styled = matplotlib.style.context(["default", STYLE])

_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def canvas(height: float, width: float = WIDTH, layout: LayoutEngine | None = None) -> Figure:
    """An empty figure of the given size in pixels, laid out by Matplotlib if by nothing else."""
    return Figure(figsize=(width / 72, height / 72), layout=layout)


@styled
def inline(figure: Figure, name: str, label: str) -> str:
    """The figure as an `svg` element called `label` for those who do not see it."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # Only the measuring font lacks the letter; the reader's browser writes the text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        FigureCanvasSVG(figure).print_svg(
            buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    root = ET.fromstring(_writable(buffer.getvalue()))
    _strip(root)
    _rename(root, name)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)  # inside HTML the namespace is understood
        if style := element.get("style"):
            element.set("style", _theme(style))
    frame = {"viewBox": root.get("viewBox", ""), "role": "img", "aria-label": _writable(label)}
    root.attrib.clear()
    root.attrib.update({**frame, "stroke-linejoin": "round"})
    ET.indent(root, "")
    return ET.tostring(root, encoding="unicode")


@styled
def save(figure: Figure, path: Path, kind: str, *, cut: Literal["tight"] | None = None) -> None:
    """The figure as a file on white paper: vectors, or 200 dots per inch; cut "tight", around all that is drawn."""
    stamp = {"Date": None} if kind == "svg" else {"CreationDate": None} if kind == "pdf" else {}
    with warnings.catch_warnings(), matplotlib.rc_context({"pdf.fonttype": 42, "svg.hashsalt": "genscope"}):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(path, format=kind, dpi=200 * 72 / 96, facecolor="white", metadata=stamp, bbox_inches=cut)


def _writable(text: str) -> str:
    """XML has no place for control characters."""
    return _NOT_XML.sub("\ufffd", text)


def _strip(root: ET.Element) -> None:
    """Remove the metadata, and the style sheet that would reach the rest of the page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}defs" and not len(child):
                parent.remove(child)


def _rename(root: ET.Element, name: str) -> None:
    """Ids that are referred to are numbered under `name`; the others go."""
    text = ET.tostring(root, encoding="unicode")
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    names: dict[str, str] = {}
    for element in root.iter():
        if (old := element.attrib.pop("id", "")) in used:
            names[old] = f"{name}-{len(names) + 1}"
            element.set("id", names[old])
    for element in root.iter():
        if target := element.attrib.pop(f"{_XLINK}href", None):
            element.set("href", "#" + names[target[1:]])
        if clip := element.get("clip-path"):
            element.set("clip-path", f"url(#{names[clip[5:-1]]})")


def _theme(style: str) -> str:
    """Known colors become the page's variables, with themselves as what holds outside a page."""
    style = re.sub(r"\s*font-family:[^;]*;?", "", style)
    return re.sub("#[0-9a-f]{6}", lambda m: f"var({_VARIABLES[m[0]]}, {m[0]})" if m[0] in _VARIABLES else m[0], style)
