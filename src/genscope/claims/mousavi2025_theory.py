"""Claims B1 to B4: what the theorems of MH25 say about networks that can be built, and about ones that cannot.

Source: mousavi2025, Lemma 11; Propositions 4 and 21; Propositions 26 and 28; Theorem 9.
Departures: each claim names its own.
Guarantee: rules as in docs/claims.md, fixed before the data. B1 and B3 (but for general prompts) are computations; the
risks of B2, of general prompts in B3 and of trained networks in B4 have intervals at 95 % after Bonferroni correction.
Parts that only a mistake of ours can make fail are checks of the code: shown, and never decisive for a paper.
"""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.claims._base import Claim, Decision, Part, above, code_check
from genscope.claims.mousavi2025_training import heads_parts
from genscope.lab import Reading
from genscope.studies import mousavi2025_constructions, mousavi2025_ffn_adamw, mousavi2025_heads, mousavi2025_lower

SEVERAL = 4  # values of α
LINEAR = 0.99  # least squared correlation of α and the logarithm of the error
SLACK = 0.02  # of a risk that lies on its bound: intervals reach below it
ORDER_ONE = 0.5  # risk of a network that does not solve the task; labels have variance 1
IDENTITY = 1e-10
ROUNDING = 1e-9

_BUDGETS = ("quick", "standard", "paper")
_FAMILIES = "four families of heads stand for all; best is by ranks, without sampling"


def _rows(reading: Reading) -> tuple[pl.DataFrame, bool]:
    """Finished trials, and whether these are all."""
    done = reading.frame.filter(pl.col("status") == "ok")
    return done, len(done) == len(reading.frame) > 0 == reading.missing


def _decided(right: bool, complete: bool) -> Decision:
    """One exception decides against; only all together decide for."""
    if not right:
        return "fails"
    return "holds" if complete else "undecided"


def _b1(readings: Sequence[Reading]) -> list[Part]:
    rows, complete = _rows(readings[0])
    if rows.is_empty():
        return [Part("errors within the bound", "undecided", {})]
    shapes = ("context_length", "dim", "sparsity", "encoding_dim", "seed")
    lines = [line.sort("alpha") for _, line in rows.group_by(shapes)]
    enough = complete and all(line["alpha"].n_unique() >= SEVERAL for line in lines)
    straight = [_straightness(line) for line in lines if line["alpha"].n_unique() >= SEVERAL]
    kept = rows["kept"].all() and (rows["norm_excess"] <= 1 + ROUNDING).all()
    return [
        Part(
            "the error is at most the bound for every prompt and every α, and the norms are the lemma's",
            _decided(kept, enough),
            {
                "largest error over its bound": (rows["max_error"] / rows["promised_error"]).max(),
                "prompts": rows["inputs_checked"].sum(),
            },
        ),
        Part(
            "the logarithm of the error falls linearly in α",
            _decided(min(straight, default=1.0) >= LINEAR, enough),
            {"least squared correlation": min(straight, default=None), "lines": len(straight)},
        ),
    ]


def _straightness(line: pl.DataFrame) -> float:
    """Squared correlation of α and the logarithm of the error; 0 if the latter does not fall, or is not a number."""
    errors = line["max_error"].to_numpy()
    if not (errors > 0).all():
        return 0.0
    correlation = float(np.corrcoef(line["alpha"].to_numpy(), np.log(errors))[0, 1])
    return correlation**2 if correlation < 0 else 0.0


def _b2(readings: Sequence[Reading]) -> list[Part]:
    training = [part for reading in readings[1:] for part in heads_parts(reading)]
    return [*_families(readings[0]), *training]


def _families(reading: Reading) -> list[Part]:
    rows, complete = _rows(reading)
    if rows.is_empty():
        return [Part("the risk of fewer than q heads is at least the bound", "undecided", {})]
    reach = float(scipy.special.ndtri(1 - 0.05 / len(rows)))
    rows = rows.with_columns(
        low=pl.col("risk") - reach * pl.col("risk_sem"), high=pl.col("risk") + reach * pl.col("risk_sem")
    )
    few, enough = rows.filter(pl.col("heads") < pl.col("sparsity")), rows.filter(pl.col("heads") == pl.col("sparsity"))
    parts = []
    for family in mousavi2025_lower.FORMS:
        found = few.filter(pl.col("family") == family)
        least = (found["low"] - found["bound"]).min() if len(found) else None
        kind = code_check if family == "best" else Part  # the rank of the best heads is the bound's formula
        parts.append(
            kind(
                f"H < q, {family}: the risk is at least the bound",
                _all([_at_least(*row) for row in found.select("low", "high", "bound").rows()], complete),
                {f"{family}: least lower limit, less the bound": least, f"{family}: cases": len(found)},
            )
        )
    parts.append(
        Part(
            "H = q goes below the bound for q − 1 heads",
            _all([_below(*row) for row in enough.select("low", "high", "bound_one_less").rows()], complete),
            {"H = q: largest upper limit": enough["high"].max() if len(enough) else None},
        )
    )
    return parts


def _at_least(low: float, high: float, bound: float) -> Decision:
    if high < bound - ROUNDING:
        return "fails"
    return "holds" if low >= bound - SLACK else "undecided"


def _below(low: float, high: float, bound: float) -> Decision:
    if high < bound:
        return "holds"
    return "fails" if low > bound else "undecided"


def _all(decisions: Sequence[Decision], complete: bool) -> Decision:
    if "fails" in decisions:
        return "fails"
    return "holds" if complete and decisions and set(decisions) == {"holds"} else "undecided"


def _b3(readings: Sequence[Reading]) -> list[Part]:
    rows, complete = _rows(readings[0])
    if rows.is_empty():
        return [Part("exact on all positions", "undecided", {})]
    alike = rows.group_by("dim", "sparsity", "encoding_dim", "seed").agg(
        pl.col("weights").n_unique(), pl.col("context_length").n_unique().alias("lengths")
    )
    reach = float(scipy.special.ndtri(1 - 0.05 / len(rows)))
    risks = rows.select("general_risk", "general_risk_sem").rows()
    decisions: list[Decision] = [above(risk - reach * sem, risk + reach * sem, ORDER_ONE) for risk, sem in risks]
    return [
        Part(
            "exact on all positions of prompts with one t",
            _decided(rows["exact"].all(), complete),
            {"largest error": rows["max_error"].max(), "tokens": sorted(rows["context_length"].unique())},
        ),
        code_check(  # the number of tokens is no argument of the construction
            "the same weights for every number of tokens",
            _decided((alike["weights"] == 1).all(), complete and (alike["lengths"] > 1).any()),
            {"largest norm over its formula": rows["norm_excess"].max()},
        ),
        Part(
            "not on general prompts",
            _all(decisions, complete),
            {"least risk on general prompts": rows["general_risk"].min()},
        ),
    ]


def _b4(readings: Sequence[Reading]) -> list[Part]:
    rows, complete = _rows(readings[0])
    if rows.is_empty():
        return [code_check("the mean risk is 1 − n/(Nd)", "undecided", {})]
    worst = rows["identity_error"].max()
    ahead = (rows["ridge_risk"] - rows["span_risk"]).min()
    finite = all(isinstance(value, float) and math.isfinite(value) for value in (worst, ahead))
    trained = [part for reading in readings[1:] for part in _trained_parts(reading)] or [
        Part("a trained FFN does no better than the best in the span", "undecided", {})
    ]
    return [
        *trained,
        code_check(
            "the best predictor in the span of the sample has mean risk 1 − n/(Nd)",
            _decided(finite and (rows["identity_error"] <= IDENTITY).all(), complete),
            {"largest deviation": worst},
        ),
        code_check(
            "ridge regression, which is in the span, is at or above the best in it for the same u",
            _decided(finite and (rows["ridge_risk"] >= rows["span_risk"] - ROUNDING).all(), complete),
            {"least excess of ridge": ahead, "cases": len(rows)},
        ),
    ]


def _trained_parts(reading: Reading) -> list[Part]:
    """Networks that the theorem does not cover: AdamW from random weights leaves the span of the sample."""
    rows, complete = _rows(reading)
    if rows.is_empty():
        return []
    parts = []
    for (size,), cases in rows.group_by("sample_size", maintain_order=True):
        excess = (cases["least_risk"] - cases["span_risk"]).to_numpy()
        reach = math.inf
        if len(excess) > 1:
            confidence = 1 - 0.05 / (2 * rows["sample_size"].n_unique())
            error = float(excess.std(ddof=1)) / math.sqrt(len(excess))
            reach = float(scipy.special.stdtrit(len(excess) - 1, confidence)) * error
        middle = float(excess.mean())
        decision = above(middle - reach, middle + reach, 0.0)
        parts.append(
            Part(
                f"n = {size}: an FFN trained by AdamW does no better than the best in the span",
                decision if complete or decision == "fails" else "undecided",
                {
                    f"risk less that of the best in the span, n = {size}": middle,
                    f"its interval, n = {size}": [middle - reach, middle + reach],
                    f"share of the weights outside the span, n = {size}": cases["outside_share"].mean(),
                },
            )
        )
    return parts


B1 = Claim(
    id="B1",
    statement="q heads with the given weights retrieve the tokens; the error follows the stated bound",
    source="mousavi2025, Lemma 11",
    rule=(
        "Four shapes, five α each: the largest error over random and hostile prompts at most the bound, for at least "
        "four α; squared correlation of α and the logarithm of the error at least 0.99, falling"
    ),
    studies=dict.fromkeys(_BUDGETS, (mousavi2025_constructions.TOKENS,)),
    decide=_b1,
    weighs_failures=True,
    departures=dict.fromkeys(
        _BUDGETS,
        ("the gap of the drawn encodings stands for the paper's 1/2, the link's Lipschitz constant for r_a r_w",),
    ),
)
B2 = Claim(
    id="B2",
    statement="Fewer than q heads cannot: risk at least the lower bound",
    source="mousavi2025, Propositions 4 and 21",
    rule=(
        "Every family of heads with H < q: lower limit of the risk at least the bound less 0.02 (some families lie on "
        "the bound, so their intervals reach below it), an upper limit below the bound fails; H = q: upper limit below "
        "the bound for q − 1 heads (95 % limits after Bonferroni correction); from standard on the same for trained "
        "Transformers, of which the best with H = q counts; a check of the code: the best heads, whose risk is a rank"
    ),
    studies={
        "quick": (mousavi2025_lower.HEADS,),
        "standard": (mousavi2025_lower.HEADS, mousavi2025_heads.STUDY),
        "paper": (mousavi2025_lower.HEADS, mousavi2025_heads.STUDY),
    },
    decide=_b2,
    departures=dict.fromkeys(_BUDGETS, (_FAMILIES,)) | {"quick": (_FAMILIES, "no trained networks")},
)
B3 = Claim(
    id="B3",
    statement="A bidirectional RNN represents simple-qSTR with weights independent of N",
    source="mousavi2025, Propositions 26 and 28",
    rule=(
        "No error beyond rounding at any position for N = 8 … 512 (encoding dimension and token range fixed); on "
        "general prompts the lower limit of the risk is above ½ (labels have variance 1); a check of the code: the "
        "same weights for every N"
    ),
    studies=dict.fromkeys(_BUDGETS, (mousavi2025_constructions.RECURRENT,)),
    decide=_b3,
    weighs_failures=True,
    departures=dict.fromkeys(_BUDGETS, ("a construction of ours, exact for encodings by signs",))
    | {"quick": ("a construction of ours, exact for encodings by signs", "N = 8, 64, 512")},
)
B4 = Claim(
    id="B4",
    statement="FFN: risk at least 1 − n/(Nd)",
    source="mousavi2025, Theorem 9",
    rule=(
        "FFNs of the experiments trained by AdamW from random weights, which the theorem does not cover, on n < Nd "
        "samples of simple-1STR: at each n the mean over draws of the least risk in training less that of the best in "
        "the span of the same sample for the same u, lower limit above 0 (an upper limit below 0 fails; 95 % after "
        "Bonferroni correction); checks of the code: mean over u of the best in the span within 1e-10 of 1 − n/(Nd), "
        "ridge regression at or above it"
    ),
    studies={"quick": (mousavi2025_lower.FEEDFORWARD,)}
    | dict.fromkeys(("standard", "paper"), (mousavi2025_lower.FEEDFORWARD, mousavi2025_ffn_adamw.STUDY)),
    decide=_b4,
    weighs_failures=True,
    departures={"quick": ("no trained networks: undecided at this budget",)},
)
