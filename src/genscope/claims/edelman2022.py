"""Claims A4 to A7: the experiments of EGKZ22.

Source: edelman2022, Figures 2 to 4.
Departures: each claim names its own.
Guarantee: rules as in docs/claims.md, fixed before the data; intervals at 95 % after Bonferroni correction over the
parts of a claim that rest on intervals.
"""

import functools
from collections.abc import Sequence

import polars as pl

from genscope.claims._base import Claim, Decision, Part, above
from genscope.estimate import clopper_pearson
from genscope.lab import Reading, Threshold
from genscope.lab.statistics.scaling import Fits, fit_laws, measured
from genscope.studies import (
    edelman2022_and,
    edelman2022_and_long,
    edelman2022_attention,
    edelman2022_curves,
    edelman2022_parity,
)

AHEAD = 3.0  # in log-likelihood
PUBLISHED = 70.0  # samples at T = 300, which the caption of Figure 3 reads off Figure 2
FACTOR = 1.5


def _a4(readings: Sequence[Reading]) -> list[Part]:
    found = [
        (int(point["context_length"]), threshold)
        for reading in readings
        for point, threshold in reading.at(0.8)
        if point["preset"] == "tuned"
    ]
    found.sort(key=lambda pair: pair[0])
    lengths, thresholds = [length for length, _ in found], [threshold for _, threshold in found]
    size, low, high = fit_laws(lengths, thresholds).predict("log", 300) or (None, None, None)
    return [
        *law_leads(lengths, thresholds),
        Part(
            "about 70 samples at T = 300",
            _within(low, high, PUBLISHED / FACTOR, PUBLISHED * FACTOR),
            {"threshold at T = 300 (log law)": size, "interval": [low, high], **_published_leads()},
        ),
    ]


def law_leads(lengths: Sequence[int], thresholds: Sequence[Threshold], *, decided: bool = True) -> list[Part]:
    """Whether the log law is ahead of the line, and of the power law; undecided where the design cannot tell."""
    fit = fit_laws(lengths, thresholds)
    parts = []
    for rival in ("linear", "power"):
        lead = fit.lead("log", rival)
        known = decided and lead is not None and abs(lead) >= AHEAD
        parts.append(
            Part(
                f"a logarithm fits better than a {'line' if rival == 'linear' else 'power'}",
                above(lead, lead, AHEAD) if known else "undecided",
                {f"log-likelihood of log over {rival}": lead},
            )
        )
    return parts


def _published_leads() -> dict[str, float | None]:
    """The same numbers for the paper's own points, shown beside: they were known before the rule and decide nothing."""
    fit = published_fits()
    names = {"linear": "line", "power": "power law"}
    leads = {f"published points: log over {word}": fit.lead("log", name) for name, word in names.items()}
    return leads | {"published points: exponent": fit.laws["power"].slope}


@functools.cache
def published_fits() -> Fits:
    """The laws fitted to the paper's 18 points by the code that fits ours, their bars read as 95 % intervals."""
    thresholds = [measured(size, low, high) for size, low, high in edelman2022_and.FIGURE_2.values()]
    return fit_laws([*edelman2022_and.FIGURE_2], thresholds)


def _within(low: float | None, high: float | None, least: float, most: float) -> Decision:
    if low is None or high is None:
        return "undecided"
    if least <= low and high <= most:
        return "holds"
    return "fails" if high < least or most < low else "undecided"


def _a5(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame.filter(pl.col("preset") == "minGPT", pl.col("status") == "ok")
    large, small = (frame.filter(pl.col("sample_size") == size) for size in (200, 50))
    fitted_large = large.filter(pl.col("success") & pl.col("fitted"))
    overfit = small.filter(pl.col("fitted") & ~pl.col("success"))
    return [
        _majority("at m = 200 a run fits its sample and generalizes", len(fitted_large), len(large), "m = 200"),
        _majority("at m = 50 a run fits its sample and does not generalize", len(overfit), len(small), "m = 50"),
    ]


def _majority(statement: str, count: int, total: int, name: str) -> Part:
    low, high = clopper_pearson(count, total, confidence=1 - 0.05 / 2) if total else (None, None)
    share = count / total if total else None
    return Part(statement, above(low, high, 0.5), {f"share at {name}": share, f"interval at {name}": [low, high]})


def _a6(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame.filter(pl.col("preset") == "tuned", pl.col("status") == "ok", pl.col("success"))
    good = frame.filter((pl.col("best_mass") > 0.9) & pl.col("on_support"))
    numbers = {
        "runs that succeeded": len(frame),
        "of these on the support": len(good),
        "median mass of the best head": frame["best_mass"].median(),
    }
    return [Part("the best head attends to the relevant bits", _eight_of_ten(len(good), len(frame)), numbers)]


def _eight_of_ten(count: int, total: int) -> Decision:
    if total < 10:
        return "undecided"
    return "holds" if count >= 0.8 * total else "fails"


def _a7(readings: Sequence[Reading]) -> list[Part]:
    frame = readings[0].frame.filter(pl.col("status") == "ok", pl.col("rate") == 3e-4)
    parts = []
    for length in sorted(frame["context_length"].unique()) if len(frame) else []:
        runs = frame.filter(pl.col("context_length") == length)
        learned = runs.filter(pl.col("first_perfect").is_not_null())
        sudden = learned.filter(4 * (pl.col("first_low") - pl.col("last_high")) <= pl.col("last_high"))
        steps = learned["first_perfect"].median()
        parts += [
            Part(
                f"parities of {length} bits are learned",
                _eight_of_ten(len(learned), len(runs)),
                {f"T = {length}: learned": f"{len(learned)} of {len(runs)}", f"T = {length}: median step": steps},
            ),
            Part(
                f"with a sudden transition (T = {length})",
                _eight_of_ten(len(sudden), len(runs)),
                {f"T = {length}: sudden": f"{len(sudden)} of {len(runs)}"},
            ),
        ]
    return parts


_QUICK_AND = (edelman2022_and.STUDY,)
_LONG_AND = (edelman2022_and.STUDY, edelman2022_and_long.STUDY)

A4 = Claim(
    id="A4",
    statement=(
        "The number of samples to learn a 3-sparse AND grows like log T: a logarithm fits better than a power or a "
        "line; about 70 at T = 300"
    ),
    source="edelman2022, Figure 2",
    rule=(
        "Preset tuned: the log law ahead of the line, and of the power law, by at least 3 in log-likelihood (behind by "
        "3: fails); the 95 % interval of its threshold at T = 300 within a factor 1.5 of 70"
    ),
    studies={"quick": _QUICK_AND, "standard": _LONG_AND, "paper": _LONG_AND},
    decide=_a4,
    departures={
        "quick": ("T = 100, 300, 1,000 with at most 96 trials each: too short to tell a logarithm from a power",),
        "standard": ("T = 50 … 10,000",),
        "paper": ("T = 100 … 100,000",),
    },
)
A5 = Claim(
    id="A5",
    statement="At T = 300, m = 200 generalizes and m = 50 overfits, both with perfect training accuracy",
    source="edelman2022, Figure 3 (left)",
    rule=(
        "minGPT preset, 120 instances drawn in advance (200 at standard): the lower limit of the share that fits and "
        "generalizes at m = 200 above ½, and of the share that fits and does not generalize at m = 50 above ½ "
        "(97.5 % exact limits)"
    ),
    studies=dict.fromkeys(("quick", "standard", "paper"), (edelman2022_curves.STUDY,)),
    decide=_a5,
)
A6 = Claim(
    id="A6",
    statement="A trained head puts its attention on the relevant bits",
    source="edelman2022, Figure 3 (right)",
    rule=(
        "Best head of a run: mean mass on the support above 0.9 and its three favourite positions are the support, in "
        "at least 8 of 10 (80 %) of the runs that succeeded, of which there must be 10"
    ),
    studies=dict.fromkeys(("quick", "standard", "paper"), (edelman2022_attention.STUDY,)),
    decide=_a6,
)
A7 = Claim(
    id="A7",
    statement="Sparse parities are learned, with a phase transition",
    source="edelman2022, Figure 4",
    rule=(
        "For each T: accuracy 1 on a fresh batch in at least 8 of 10 runs; and in at least 8 of 10 the loss goes from "
        "its last value above 0.6 to its first below 0.1 within a quarter of the steps used before"
    ),
    studies=dict.fromkeys(("quick", "standard", "paper"), (edelman2022_parity.STUDY,)),
    decide=_a7,
    departures={"quick": ("T = 10 only, at most 2,500 steps",)},
)
