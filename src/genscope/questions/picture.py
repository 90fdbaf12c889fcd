"""The figure of an answer: thresholds against the context length, or success against samples at a single one.

Guarantee: exact; intervals are those of the answer, a threshold that is only bounded is an arrow.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from genscope.estimate import wilson
from genscope.report.looks import Look, looks, said
from genscope.report.svg import MUTED, canvas, styled

if TYPE_CHECKING:
    from genscope.questions.answer import Answer

_LOWER = ("information bound", "ideal learner")


@styled
def draw(answer: "Answer") -> Figure:
    """Thresholds where there are several context lengths, success curves where there is one."""
    figure = canvas(400)
    axes = figure.subplots()
    (_success if len(answer.lengths) == 1 else _thresholds)(axes, answer, _looks(list(answer.recipes)))
    axes.set_title(answer.question.asked)
    figure.legend(loc="outside lower left", ncols=2)
    return figure


def _looks(names: list[str]) -> dict[str, Look]:
    """The looks that the report gives these networks; the same network with two recipes has two."""
    plain = [_plain(name) for name in names]
    if len({*plain}) < len(names):
        return looks(None, names)
    return dict(zip(names, looks("network", plain).values(), strict=True))


def _plain(name: str) -> str:
    return name.partition("@")[0]


def _thresholds(axes: Axes, answer: "Answer", names: dict[str, Look]) -> None:
    for name, chosen in names.items():
        rows = [row for row in answer.rows if row["network"] == name]
        known = [row for row in rows if row["sample_size"] is not None]
        look = _style(chosen)
        if known:
            x, y = ([row[column] for row in known] for column in ("context_length", "sample_size"))
            reach = [[abs(row["sample_size"] - row[end]) for row in known] for end in ("low", "high")]
            axes.errorbar(x, y, yerr=reach, label=said(_plain(name)), capsize=3, **look)
        for row in rows:
            if row["state"] == "above":
                axes.annotate(
                    "",
                    (row["context_length"], 1.5 * row["low"]),
                    (row["context_length"], row["low"]),
                    arrowprops={"arrowstyle": "->", "color": look["color"]},
                )
                axes.plot(
                    [row["context_length"]],
                    [row["low"]],
                    label=None if known else f"{said(_plain(name))} (more than shown)",
                    **look,
                )
    for statement, dashes in zip(_LOWER, ((0, (5, 2.5)), (0, (1.5, 2))), strict=True):
        stated = [each for each in answer.statements if each.name == statement and each.sample_size]
        if stated:
            axes.plot(
                [each.context_length for each in stated],
                [each.sample_size or 0.0 for each in stated],
                color=MUTED,
                linestyle=dashes,
                label=statement,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(answer.lengths, [f"{length:,}" for length in answer.lengths], minor=False)
    axes.minorticks_off()
    axes.set_xlabel("context length T")
    axes.set_ylabel(f"samples at which {100 * answer.question.success:g} % succeed")


def _success(axes: Axes, answer: "Answer", names: dict[str, Look]) -> None:
    frame = answer.reading.frame
    for name, chosen in names.items():
        cell = frame.filter((frame["network"] == name) & (frame["status"] == "ok"))
        counts = cell.group_by("sample_size").agg(won=pl.col("success").sum(), tried=pl.len()).sort("sample_size")
        sizes, won, tried = (counts[column].to_numpy() for column in ("sample_size", "won", "tried"))
        look = _style(chosen)
        share = won / tried
        low, high = np.transpose([wilson(int(w), int(n)) for w, n in zip(won, tried, strict=True)])
        axes.errorbar(
            sizes,
            share,
            yerr=[np.maximum(share - low, 0), np.maximum(high - share, 0)],
            label=said(_plain(name)),
            linestyle="none",
            capsize=2,
            color=look["color"],
            marker=look["marker"],
        )
        found = next(found for point, found in answer.reading.thresholds if point["network"] == name)
        if len(sizes) > 1:
            fine = np.geomspace(sizes.min(), sizes.max(), 200)
            axes.plot(fine, found.probability(fine), color=look["color"])
    axes.axhline(
        answer.question.success, color=MUTED, linestyle=(0, (5, 2.5)), label=f"{100 * answer.question.success:g} %"
    )
    axes.set_xscale("log")
    axes.set_xlabel("samples m")
    axes.set_ylabel("share of trials that succeed")


def _style(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "marker": look.marker}
