"""Picture: curves, points with intervals and bars as data, drawn by matplotlib or plotly as the caller wishes.

Guarantee: exact; both show the same numbers. `save` writes vectors to .svg and .pdf, with text that stays text.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genscope.extras import need
from genscope.files import draft, picture_kind
from genscope.refusal import Refusal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's hues, darkened until each stands out against white; told apart by markers in print without colors.
COLOURS = ("#0067a5", "#c04a00", "#007a5a", "#9c3f86", "#7d6100", "#4a5568")
MARKERS = ("o", "s", "D", "^", "v", "P")
PLOTLY_MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
_LEVEL_LETTERS = 24  # in the names of bars, which fit side by side into a column
WIDTHS = {"column": 3.25, "text": 6.75}
"""Inches of a column and of the text in the usual styles of conferences."""
PAPER = {
    "font.family": "serif",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 9,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "mathtext.fontset": "cm",  # the letters of LaTeX
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "errorbar.capsize": 2,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,  # TrueType, which publishers take
    "svg.fonttype": "none",
}


@dataclass(frozen=True)
class Series:
    """One curve, set of points or set of bars; `low` and `high` are the ends of the intervals."""

    name: str
    x: Sequence[Any]
    y: Sequence[float]
    kind: Literal["line", "points", "bars"] = "line"
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False


@dataclass(frozen=True)
class Picture:
    """What is drawn; a notebook shows it, `matplotlib` and `plotly` give it to you, `save` writes it for a paper."""

    title: str
    x: str
    """What the horizontal axis shows."""
    y: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    levels: dict[str, float] = field(default_factory=dict)
    """Horizontal lines by name."""

    def matplotlib(self, axes: "Axes | None" = None) -> "Axes":
        """Draw on the axes given, or on those of a new figure, and return them to be restyled."""
        need("report", given="plot")
        from matplotlib.figure import Figure

        axes = Figure(layout="constrained").subplots() if axes is None else axes
        for number, each in enumerate(self.series):
            look: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "label": each.name}
            if each.kind == "bars":
                names = [str(x) for x in each.x]
                axes.bar(names, each.y, **look)
                if sum(map(len, names)) > _LEVEL_LETTERS:
                    axes.tick_params(axis="x", rotation=90)
            elif each.kind == "line":
                axes.plot(each.x, each.y, linestyle="--" if each.dashed else "-", **look)
            else:
                marker = MARKERS[number % len(MARKERS)]
                axes.errorbar(each.x, each.y, yerr=_reach(each), linestyle="none", marker=marker, **look)
        for name, level in self.levels.items():
            axes.axhline(level, color="#5f6873", linestyle=":", label=name)
        for name, is_log in (("x", self.log_x), ("y", self.log_y)):
            if is_log:
                axes.set(**{f"{name}scale": "log"})
                _log_ticks(axes.xaxis if name == "x" else axes.yaxis)
        axes.set(title=self.title, xlabel=self.x, ylabel=self.y)
        if len(self.series) + len(self.levels) > 1:
            axes.legend()
        return axes

    def plotly(self) -> Any:
        """A `plotly.graph_objects.Figure`, for pages."""
        need("explorer", given="plot")
        import plotly.graph_objects as go

        figure = go.Figure()
        for number, each in enumerate(self.series):
            colour = COLOURS[number % len(COLOURS)]
            given: dict[str, Any] = {"x": list(each.x), "y": list(each.y), "name": each.name}
            if each.kind == "bars":
                figure.add_trace(go.Bar(**given | {"x": [str(x) for x in each.x]}, marker_color=colour))
            elif each.kind == "line":
                line = {"color": colour, "dash": "dash" if each.dashed else "solid"}
                figure.add_trace(go.Scatter(**given, mode="lines", line=line))
            else:
                marker = {"color": colour, "symbol": PLOTLY_MARKERS[number % len(PLOTLY_MARKERS)]}
                reach = _reach(each)
                bars = None if reach is None else {"type": "data", "arrayminus": reach[0], "array": reach[1]}
                figure.add_trace(go.Scatter(**given, mode="markers", marker=marker, error_y=bars))
        for name, level in self.levels.items():
            figure.add_hline(y=level, line_dash="dot", annotation_text=name)
        figure.update_layout(title=self.title, xaxis_title=self.x, yaxis_title=self.y, template="simple_white")
        figure.update_xaxes(type="log" if self.log_x else None)
        figure.update_yaxes(type="log" if self.log_y else None)
        return figure

    def figure(self, width: str | float = "column", height: float | None = None) -> "Figure":
        """A figure of matplotlib in the style of a paper: `width` is "column", "text" or inches."""
        need("report", given="plot")
        from matplotlib.figure import Figure

        inches = _inches(width)
        with paper():
            figure = Figure(figsize=(inches, height or 0.68 * inches), layout="constrained")
            self.matplotlib(figure.subplots())
        return figure

    def save(self, path: str | Path, width: str | float = "column", height: float | None = None) -> None:
        """Write the figure to a file: .pdf and .svg hold vectors, .png pixels."""
        kind = picture_kind(Path(path))
        figure = self.figure(width, height)
        with paper(), draft(Path(path)) as beside:
            figure.savefig(beside, format=kind, dpi=300)

    def _repr_svg_(self) -> str:
        buffer = io.StringIO()
        figure = self.figure(4.8, 3.2)  # its letters can still be read on a phone
        with paper():
            figure.savefig(buffer, format="svg")
        return buffer.getvalue()


@contextmanager
def paper() -> Iterator[None]:
    """Matplotlib as a paper wants it: small serif letters that fit LaTeX, thin lines, text that stays text."""
    need("report", given="plot.paper")
    import matplotlib.style

    with matplotlib.style.context(["default", PAPER]):
        yield


def _log_ticks(axis: "Axis") -> None:
    """Ticks at 1, 2, 5, 10, ... in plain numbers, closer on a short axis, where it has less than two powers of ten."""
    from matplotlib import ticker

    low, high = sorted(axis.get_view_interval())
    if low > 0 and high < 100 * low:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high > 8 * low else (1, 1.5, 2, 3, 5, 7)))
        axis.set_major_formatter(lambda value, _: f"{value:,.6g}")
        axis.set_minor_locator(ticker.NullLocator())


def _inches(width: str | float) -> float:
    inches = WIDTHS.get(width, 0.0) if isinstance(width, str) else float(width)
    if not 0 < inches < 100:
        raise Refusal(
            f"got width={width!r}: the width must be 'column', 'text', or a number of inches below 100. Change it."
        )
    return inches


def _reach(each: Series) -> list[list[float]] | None:
    """Distances from the points to the ends of their intervals."""
    if each.low is None or each.high is None:
        return None
    below = [max(y - low, 0.0) for y, low in zip(each.y, each.low, strict=True)]
    return [below, [max(high - y, 0.0) for y, high in zip(each.y, each.high, strict=True)]]
