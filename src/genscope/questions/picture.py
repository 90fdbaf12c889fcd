"""The figure of an answer: thresholds against the context length, or success against samples at a single one.

Guarantee: exact; intervals are those of the answer, a threshold that is only bounded is an arrow.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from genscope.estimate import wilson
from genscope.report.svg import MUTED, SERIES, canvas, styled

if TYPE_CHECKING:
    from genscope.questions.answer import Answer

_MARKERS = "osD^vP"
_LOWER = ("information bound", "ideal learner")


@styled
def draw(answer: "Answer") -> Figure:
    """Thresholds where there are several context lengths, success curves where there is one."""
    figure = canvas(400)
    axes = figure.subplots()
    names = list(answer.recipes)
    (_success if len(answer.lengths) == 1 else _thresholds)(axes, answer, names)
    axes.set_title(answer.question.asked)
    figure.legend(loc="outside lower left", ncols=2)
    return figure


def _thresholds(axes: Axes, answer: "Answer", names: list[str]) -> None:
    for number, name in enumerate(names):
        rows = [row for row in answer.rows if row["network"] == name]
        known = [row for row in rows if row["sample_size"] is not None]
        look = _look(number)
        if known:
            x, y = ([row[column] for row in known] for column in ("context_length", "sample_size"))
            reach = [[abs(row["sample_size"] - row[end]) for row in known] for end in ("low", "high")]
            axes.errorbar(x, y, yerr=reach, label=name.partition("@")[0], capsize=3, **look)
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
                    label=None if known else f"{name.partition('@')[0]} (more than shown)",
                    **look,
                )
    for statement, dashes in zip(_LOWER, ((0, (5, 2.5)), (0, (1.5, 2))), strict=True):
        said = [each for each in answer.statements if each.name == statement and each.sample_size]
        if said:
            axes.plot(
                [each.context_length for each in said],
                [each.sample_size or 0.0 for each in said],
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


def _success(axes: Axes, answer: "Answer", names: list[str]) -> None:
    frame = answer.reading.frame
    for number, name in enumerate(names):
        cell = frame.filter((frame["network"] == name) & (frame["status"] == "ok"))
        counts = cell.group_by("sample_size").agg(won=pl.col("success").sum(), tried=pl.len()).sort("sample_size")
        sizes, won, tried = (counts[column].to_numpy() for column in ("sample_size", "won", "tried"))
        look = _look(number)
        share = won / tried
        low, high = np.transpose([wilson(int(w), int(n)) for w, n in zip(won, tried, strict=True)])
        axes.errorbar(
            sizes,
            share,
            yerr=[np.maximum(share - low, 0), np.maximum(high - share, 0)],
            label=name.partition("@")[0],
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


def _look(number: int) -> dict[str, Any]:
    return {"color": SERIES[number % len(SERIES)], "marker": _MARKERS[number % len(_MARKERS)]}
