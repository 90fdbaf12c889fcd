"""Figures of a study, declared and not drawn: which records, reduced how, against what.

Guarantee: exact; a figure and its manifest determine each other, and the manifest is plain JSON.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from genscope.refusal import Refusal

LAWS = ("log", "power", "linear")  # those of lab.scaling
_TYPE = "$type"  # no axis and no record value can be called so: they are Python names


@dataclass(frozen=True)
class Mean:
    """Mean of a value over the trials of a point, with its 95 % interval.

    Student's interval for numbers, Wilson's for truth values. On a logarithmic axis the mean of positive numbers is
    geometric, with Student's interval of the logarithms. Fewer than four trials have no interval: each is drawn. A
    trial whose `reached` is false counts with its budget, and the mean is then drawn as a lower limit.
    """

    value: str
    reached: str | None = None


@dataclass(frozen=True)
class Median:
    """Median of a value over the trials of a point, with the 95 % interval from order statistics.

    A trial whose `reached` is false lies above everything; the median is known while fewer than half do.
    """

    value: str
    reached: str | None = None


@dataclass(frozen=True)
class Smallest:
    """Smallest value of `axis` at which a share `level` of trials has the `outcome`: the papers' reading of a grid."""

    axis: str
    outcome: str
    level: float = 0.8


@dataclass(frozen=True)
class Crossing:
    """Where the success curve along `axis` crosses `level` (0.8, or "0.8 of plateau"), with its interval.

    The outcome is true or false, or the share of several runs of a trial that are, which need not be independent.
    """

    axis: str
    outcome: str
    level: float | str = 0.8


@dataclass(frozen=True)
class Plateau:
    """The success rate that the curve along `axis` tends to, with its interval."""

    axis: str
    outcome: str


Reduction = Mean | Median | Smallest | Crossing | Plateau


@dataclass(frozen=True)
class Reference:
    """A curve to compare with, computed by the study: an ideal learner, an information bound."""

    name: str
    x: Sequence[float]
    y: Sequence[float]

    def __post_init__(self) -> None:
        _freeze(self)
        if len(self.x) != len(self.y):
            raise Refusal(
                f"Reference {self.name!r} got {len(self.x)} values of x and {len(self.y)} of y: a curve needs equally "
                "many. Compute y at every x."
            )


@dataclass(frozen=True)
class Published:
    """A value read from a paper, drawn beside the measured ones, in the color of its series if `by` names one."""

    x: float
    y: float
    label: str
    by: str = ""


@dataclass(frozen=True)
class Level:
    """A horizontal line with a name, such as the loss of guessing."""

    y: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What every figure says: a title, a caption (what one sees, how it was obtained), its source, names in words.

    `labels` maps columns of the store's frame to words with the paper's letter; `where` keeps the records with that
    value, or one of those values, of a column. Source and labels that a figure does not give are those of its study.
    `answer` is a heading that states what was found, with fields such as `{ratio ffn/transformer}` that
    `lab.results.answers` fills. A figure that is `folded` only checks the code. One with an `opening` is a panel of the
    report's first picture, under these words. `claims` names claims that it illustrates.
    """

    title: str
    caption: str = ""
    source: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    answer: str = ""
    folded: bool = False
    opening: str = ""
    claims: Sequence[str] = ()

    def __post_init__(self) -> None:
        _freeze(self)

    def of_study(self, source: str, labels: Mapping[str, str]) -> Self:
        """The figure with what it shares with the others of its study."""
        return replace(self, source=self.source or source, labels={**labels, **self.labels})

    def label(self, column: str) -> str:
        """The column in words."""
        return self.labels.get(column, column.replace("_", " "))

    def manifest(self) -> dict[str, Any]:
        """The figure as plain JSON."""
        return _plain(self)

    @staticmethod
    def from_manifest(manifest: Mapping[str, Any]) -> "Figure":
        """The figure of a manifest."""
        try:
            figure = _thaw(manifest)
        except (TypeError, Refusal):  # fields of a later version
            figure = None
        if not isinstance(figure, Figure):
            raise Refusal(
                f"Figure.from_manifest got {_TYPE}={manifest.get(_TYPE)!r} with fields {', '.join(manifest)}: this "
                "version of genscope knows "
                f"{', '.join(name for name, kind in _KINDS.items() if issubclass(kind, Figure))} with the fields of "
                "their classes. Read the store with the version that wrote it, or a newer one."
            )
        return figure


@dataclass(frozen=True)
class Line(Figure):
    """A reduction of the records against an axis, one line per value of `by`.

    With `laws`, those scaling laws are fitted to the reduced points and drawn with the verdict between them.
    `levels` are horizontal lines with names.
    `vacuous` names a Boolean record: a trial's bound says no more than is known without it. What is known without it
    is `trivial`, drawn as a line with everything above it shaded.
    With `runs`, every trial is a dot beside the mean, however many there are.
    """

    x: str
    y: Reduction
    by: str | None = None
    vacuous: str | None = None
    trivial: Level | None = None
    log_x: bool = False
    log_y: bool = False
    laws: Sequence[str] = ()
    references: Sequence[Reference] = ()
    levels: Sequence[Level] = ()
    published: Sequence[Published] = ()
    runs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.y, Reduction):
            raise Refusal(
                f"Line {self.title!r} got y={self.y!r}: y must be a reduction of the records (Mean, Median, Smallest, "
                "Crossing or Plateau). Write y=Mean('value') for the mean of a value."
            )
        if self.laws and not (isinstance(self.y, Crossing) and {*self.laws} <= {*LAWS}):
            raise Refusal(
                f"Line {self.title!r} got laws={self.laws} for y={self.y!r}: only {', '.join(LAWS)} can be fitted, and "
                "only to thresholds. Choose among these laws with a Crossing as y, or leave the laws out."
            )


@dataclass(frozen=True)
class Success(Figure):
    """Share of successful trials along the axis of a crossing, with the fitted curve, the level and the threshold.

    One panel per value of `panel`, one color per value of `by`.
    """

    crossing: Crossing
    panel: str | None = None
    by: str | None = None
    log_x: bool = False


@dataclass(frozen=True)
class Curves(Figure):
    """Array-valued records of every trial, thin, and, unless `median` is false, their median over trials, bold.

    Where runs jump at different times, a median lies between two of them and shows steps that no run has.
    `x` names the array of steps, or, with `every`, only the horizontal axis: entry i was taken at step `every` * i.
    Several values in `y`, or one value and `by`, give the colors; `facet` gives one panel per value of an axis;
    `quantity` says in words what the vertical axis measures.
    """

    x: str
    y: Sequence[str]
    quantity: str
    by: str | None = None
    facet: str | None = None
    every: float | None = None
    log_x: bool = False
    median: bool = True
    levels: Sequence[Level] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.y, str) or not self.y or (len(self.y) > 1 and self.by is not None):
            raise Refusal(
                f"Curves {self.title!r} got y={self.y!r} and by={self.by!r}: color shows either several values, or one "
                "value along an axis. Give a list of names, and for several values `facet` instead of `by`."
            )


@dataclass(frozen=True)
class Panel:
    """One matrix of a heat map: a matrix-valued record and what it is called."""

    value: str
    label: str


@dataclass(frozen=True)
class Blocks:
    """Parts of a matrix with names and sizes; those without a size share what the others leave.

    With `outlined`, the block of that row and column part has a frame and these words.
    """

    names: Sequence[str]
    sizes: Sequence[int | None]
    outlined: Sequence[int] = ()
    label: str = ""

    def __post_init__(self) -> None:
        _freeze(self)
        if len(self.names) != len(self.sizes):
            raise Refusal(
                f"Blocks got {len(self.names)} names and {len(self.sizes)} sizes: every block needs both. Give equally "
                "many, with None for a size that follows from the rest."
            )

    def edges(self, size: int) -> list[int]:
        """Where the parts of a side of this length begin and end.

        >>> Blocks(("token", "own", "asked for"), (4, None, None)).edges(10)
        [0, 4, 7, 10]
        """
        rest, open_ = size - sum(each or 0 for each in self.sizes), self.sizes.count(None)
        lengths = [rest // open_ if each is None else each for each in self.sizes]
        return [sum(lengths[:number]) for number in range(len(lengths) + 1)]


@dataclass(frozen=True)
class Heatmap(Figure):
    """Matrix-valued records of one trial: that of `seed`, or the first in the store, among those that fit `where`.

    `marked` names an integer-valued record whose entries are columns to be pointed out, such as the relevant bits.
    With `blocks`, cells are square and rows and columns are named by their part.
    """

    panels: Sequence[Panel]
    rows: str
    columns: str
    seed: int | None = None
    marked: str | None = None
    blocks: Blocks | None = None


@dataclass(frozen=True)
class Scatter(Figure):
    """One point per trial; `sem` names the record that holds the standard error of y.

    With `diagonal`, the line of equal coordinates is drawn, for two measures of one thing.
    """

    x: str
    y: str
    by: str | None = None
    sem: str | None = None
    log_x: bool = False
    log_y: bool = False
    diagonal: bool = False


@dataclass(frozen=True)
class Group(Figure):
    """Lines and scatters that belong together, side by side where there is room, each under its own title."""

    panels: Sequence[Line | Scatter]

    def of_study(self, source: str, labels: Mapping[str, str]) -> Self:
        """The panels share it too."""
        panels = [panel.of_study(source, labels) for panel in self.panels]
        return replace(super().of_study(source, labels), panels=panels)


_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(Mean, Median, Smallest, Crossing, Plateau),
        *(Reference, Published, Level, Panel, Blocks),
        *(Line, Success, Curves, Heatmap, Scatter, Group),
    )
}


def _freeze(instance: object) -> None:
    """Sequences become tuples, so that a figure equals the one read back from its manifest."""
    for each in dataclasses.fields(instance):  # pyright: ignore[reportArgumentType]  # every figure is a dataclass
        object.__setattr__(instance, each.name, _tuples(getattr(instance, each.name)))


def _tuples(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value  # NumPy arrays and numbers
    if isinstance(value, Mapping):
        return {name: _tuples(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_tuples(part) for part in value)
    return value


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        fields = {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return {_TYPE: type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise Refusal(f"a figure holds {value}: JSON only has finite numbers. Leave the point out of the figure.")
    return value


def _thaw(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = {name: _thaw(part) for name, part in value.items() if name != _TYPE}
        kind = _KINDS.get(value.get(_TYPE, ""))
        return kind(**fields) if kind else fields
    if isinstance(value, list | tuple):
        return tuple(_thaw(part) for part in value)
    return value
