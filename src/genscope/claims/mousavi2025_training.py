"""Claims B5 to B8, and what training says about B2: the experiments of MH25.

Source: mousavi2025, Figures 1 to 3; Propositions 4 and 21.
Departures: each claim names its own. Samples are those to three quarters of the risk 1 - 1/N of a predictor that
ignores the index, for every N and q; samples to the published thresholds are shown beside.
Guarantee: rules as in docs/claims.md, fixed before the data; intervals at 95 % after Bonferroni correction over the
parts of a claim that rest on intervals. All decide under the protocol "code", B7 under "text" too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.claims._base import Claim, Decision, Part, above
from genscope.claims._ratios import UNKNOWN, Interval, SampleCounts, decide, difference, own_contrast, trend
from genscope.claims._token_runs import counts, growth, mild, numbers, resolved, runs
from genscope.lab import Reading
from genscope.studies import (
    mousavi2025_1str,
    mousavi2025_block,
    mousavi2025_simple,
    mousavi2025_sparsity,
)

DRAWS, LONG = 5, 48  # B5: runs of the Transformer at each N, and the N that its exponent reaches at least
OWN = 3  # runs from which an architecture's own spread is taken
NEAR, FAR = 2.0, 1.5  # B6: RNN / Transformer, FFN / Transformer
BLOCK, IDENTITY = 0.9, 0.75  # B7: shares of the matrix inside the block, and of the block by the nearest αI


def _b5(readings: Sequence[Reading]) -> list[Part]:
    frame = runs(readings[0])
    rivals = {"FFN": "ffn", "RNN": "gru"}
    confidence = 1 - 0.05 / (1 + 2 * len(rivals))
    parts = [_hardly(frame, confidence)]
    for label, name in rivals.items():
        shared = resolved(frame, "transformer", name)
        slopes = growth(frame, name, shared), growth(frame, "transformer", shared)
        gap = difference(*slopes, confidence)
        found = numbers(f"exponent of {name} less Transformer", gap) | {
            f"N for {name}": shared,
            f"exponent of {name}": None if slopes[0] is None else slopes[0].value,
        }
        parts.append(Part(f"the samples of the {label} grow faster with N", decide(gap, 0.0, []), found))
    for label, name in rivals.items():
        largest = max(resolved(frame, "transformer", name, draws=OWN), default=0)
        over, under = (counts(frame, kind, context_length=largest) for kind in (name, "transformer"))
        ratio = own_contrast(over, under, confidence)
        found = numbers(f"{name} / Transformer at N = {largest}", ratio) | _published(frame, name)
        decision = decide(ratio, 1.0, [(1, over), (-1, under)])
        parts.append(Part(f"at the largest N that both resolve the {label} needs more samples", decision, found))
    return parts


def _hardly(frame: pl.DataFrame, confidence: float) -> Part:
    """The Transformer's exponent from N = 8 on to at least 48, with enough draws."""
    lengths = [n for n in resolved(frame, "transformer", draws=DRAWS) if n <= LONG]
    slope = growth(frame, "transformer", lengths) if lengths and max(lengths) == LONG and len(lengths) > 2 else None
    found = UNKNOWN if slope is None else slope.interval(confidence)
    return Part(
        "the Transformer's samples hardly grow: an exponent below 0.6",
        mild(found),
        numbers("exponent of Transformer", found) | {"N for the Transformer": lengths} | _index_shares(frame),
    )


def _index_shares(frame: pl.DataFrame) -> dict[str, Any]:
    """The least share of the predictions' variance that depends on the index, at the relative threshold."""
    if "index_share_relative" not in frame.columns:
        return {}
    shares = frame.filter(pl.col("reached")).group_by("architecture").agg(pl.col("index_share_relative").min())
    return {f"least share of the index, {name}": share for name, share in sorted(shares.rows())}


def _published(frame: pl.DataFrame, architecture: str) -> dict[str, Any]:
    """Our mean over the published value at the published threshold, at the longest length of both."""
    found = {}
    if not len(frame):
        return found
    for name in (architecture, "transformer"):
        ours = frame.filter(pl.col("architecture") == name, pl.col("published_reached"))
        lengths = [n for n in mousavi2025_1str.LENGTHS if n in ours["context_length"]]
        if lengths:
            at = ours.filter(pl.col("context_length") == lengths[-1])["published"]
            value = mousavi2025_1str.PUBLISHED[name][mousavi2025_1str.LENGTHS.index(lengths[-1])]
            found[f"{name} over published at 0.7, N = {lengths[-1]}"] = (
                float(np.exp(np.log(at.to_numpy()).mean())) / value
            )
    return found


def _b6(readings: Sequence[Reading]) -> list[Part]:
    frame = runs(readings[0])
    kinds = {"GRU": "gru", "simple RNN": "rnn"}
    confidence = 1 - 0.05 / (1 + 2 * len(kinds))
    parts = []
    for label, name in kinds.items():
        largest, (over, under) = _at_largest(frame, "transformer", name)
        inverse = own_contrast(over, under, confidence)
        ratio: Interval = (_over(inverse[0]), _over(inverse[2]), _over(inverse[1]))
        parts.append(
            Part(
                f"the RNN ({label}) stays within a factor 2 of the Transformer",
                decide(inverse, 1 / NEAR, [(1, over), (-1, under)]),
                numbers(f"{label} / Transformer at N = {largest}", ratio),
            )
        )
    largest, (over, under) = _at_largest(frame, "ffn", "transformer")
    far = own_contrast(over, under, confidence)
    parts.append(
        Part(
            "the FFN needs 1.5 times the Transformer's samples",
            decide(far, FAR, [(1, over), (-1, under)]),
            numbers(f"FFN / Transformer at N = {largest}", far) | _index_shares(frame),
        )
    )
    for label, name in kinds.items():
        shared = resolved(frame, "ffn", name)
        gap = difference(growth(frame, "ffn", shared), growth(frame, name, shared), confidence)
        parts.append(
            Part(
                f"the samples of the RNN ({label}) grow more mildly with N than the FFN's",
                decide(gap, 0.0, []),
                numbers(f"exponent of FFN less {label}", gap) | {f"N for FFN and {label}": shared},
            )
        )
    return parts


def _at_largest(frame: pl.DataFrame, *pair: str) -> tuple[int, list[SampleCounts]]:
    """The runs of two architectures at the largest N with enough draws of both, arrived or not."""
    lengths = sorted(frame["context_length"].unique()) if len(frame) else []
    for n in reversed(lengths):
        arms = [counts(frame, name, context_length=n) for name in pair]
        if min(len(arm.logs) for arm in arms) >= OWN:
            return n, arms
    return 0, [counts(frame, name, context_length=0) for name in pair]


def _over(value: float | None) -> float | None:
    return None if value is None else 1 / value


def _b7(readings: Sequence[Reading]) -> list[Part]:
    return [part for name in ("code", "text") for part in _block_parts(readings[0].frame, name)]


def _block_parts(frame: pl.DataFrame, protocol: str) -> list[Part]:
    """Every run of a protocol whose training is over: its loss settled, or it took all the epochs of the code."""
    where = {"code": "simple-1STR, the public code's network", "text": "1STR with separate matrices, as in the text"}
    known = len(frame) and "block_share" in frame.columns
    done = frame.filter(pl.col("status") == "ok", pl.col("protocol") == protocol) if known else pl.DataFrame()
    over = [row for row in done.rows(named=True) if row["settled"] or row["steps_taken"] >= mousavi2025_block.MOST]
    complete = 0 < len(over) == len(done)

    def decision(name: str, limit: float) -> Decision:
        if any(row[name] <= limit for row in over):
            return "fails"
        return "holds" if complete else "undecided"

    shares = {name: [row[name] for row in done.rows(named=True)] for name in ("block_share", "identity_share")}
    return [
        Part(
            f"{where[protocol]}: the block holds nine tenths of the squared matrix",
            decision("block_share", BLOCK),
            {f"block share, run by run ({protocol})": shares["block_share"]},
        ),
        Part(
            f"{where[protocol]}: the nearest αI holds three quarters of the block",
            decision("identity_share", IDENTITY),
            {f"share of αI, run by run ({protocol})": shares["identity_share"], f"runs over ({protocol})": len(over)},
        ),
    ]


def _b8(readings: Sequence[Reading]) -> list[Part]:
    frame = runs(readings[0])
    rivals = [name for name in ("ffn", "rnn") if name == "ffn" or (len(frame) and name in frame["architecture"])]
    confidence = 1 - 0.05 / (2 * len(rivals))
    return [part for name in rivals for part in _gap_parts(frame, name, confidence)]


def _gap_parts(frame: pl.DataFrame, rival: str, confidence: float) -> list[Part]:
    """Both readings of the gap, ratio and difference, draw by draw: networks learn the same link and encodings."""
    pairs = _pairs(frame, rival)
    sparsities = sorted(pairs["sparsity"].unique()) if len(pairs) else []
    at = {q: pairs.filter(pl.col("sparsity") == q) for q in sparsities}
    centre = sum(sparsities) / max(len(sparsities), 1)
    wide = [q for q in sparsities if q > centre]
    # A lower limit may only have made the trend smaller where it holds, and larger where it fails.
    lowered = any(not rows["reached" if q in wide else "reached_base"].all() for q, rows in at.items())
    raised = any(not rows["reached_base" if q in wide else "reached"].all() for q, rows in at.items())
    readings = {
        "ratio": {q: (rows["samples"].log() - rows["samples_base"].log()).to_numpy() for q, rows in at.items()},
        "difference": {q: (rows["samples"] - rows["samples_base"]).to_numpy().astype(float) for q, rows in at.items()},
    }
    parts = []
    for reading, values in readings.items():
        slope = trend(values, confidence)
        decision = above(slope[1], slope[2], 0.0)
        if (decision == "holds" and raised) or (decision == "fails" and lowered):
            decision = "undecided"
        means = {q: float(each.mean()) for q, each in values.items()}
        shown = {q: float(np.exp(value)) for q, value in means.items()} if reading == "ratio" else means
        name = f"{rival} and Transformer"
        parts.append(
            Part(
                f"the {reading} of {rival.upper()} and Transformer grows with q",
                decision,
                numbers(f"slope of the {'logarithm of the ' if reading == 'ratio' else ''}{reading}, {name}", slope)
                | {f"{reading} of {name} at q = {q}": value for q, value in shown.items()}
                | {f"ended early ({rival})": sum(int((~rows["reached"]).sum()) for rows in at.values())},
            )
        )
    return parts


def _pairs(frame: pl.DataFrame, rival: str) -> pl.DataFrame:
    if not len(frame):
        return frame
    columns = ["sparsity", "draw", "samples", "reached"]
    over, under = (frame.filter(pl.col("architecture") == kind).select(columns) for kind in (rival, "transformer"))
    return over.join(under, on=["sparsity", "draw"], suffix="_base")


def heads_parts(reading: Reading) -> list[Part]:
    """What trained Transformers say about B2: with H < q no risk below the bound, with more below that of q - 1."""
    frame = reading.frame.filter(pl.col("status") == "ok") if len(reading.frame) else reading.frame
    if not len(frame):
        return [Part("trained networks keep the bound", "undecided", {})]
    reach = -float(scipy.special.ndtri(0.05 / len(frame)))  # one-sided, Bonferroni over the runs
    few, enough = (
        frame.filter(pl.col("heads") < pl.col("sparsity")),
        frame.filter(pl.col("heads") >= pl.col("sparsity")),
    )
    broken = few.filter(pl.col("risk") + reach * pl.col("risk_sem") < pl.col("bound"))
    before = {(row["family"], row["sparsity"]): row["bound"] for row in few.sort("heads").iter_rows(named=True)}
    best: dict[tuple[str, int], Mapping[str, Any]] = {}
    for row in enough.sort("risk", descending=True).iter_rows(named=True):
        best[row["family"], row["sparsity"]] = row
    below = [row["risk"] + reach * row["risk_sem"] < before[group] for group, row in best.items() if group in before]
    margin = (few["risk"] - few["bound"]).min() if len(few) else None
    return [
        Part(
            "no trained network with H < q goes below the bound",
            "undecided" if not len(few) else "fails" if len(broken) else "holds",
            {"smallest risk above the bound (H < q)": margin, "runs with H < q": len(few)},
        ),
        Part(
            "trained networks with H >= q go below the bound for q - 1 heads",
            "undecided" if not below else "holds" if all(below) else "undecided",
            {f"least risk with H >= q = {q}, {family}": row["risk"] for (family, q), row in best.items()},
        ),
    ]


_RELATIVE = "samples to three quarters of the risk 1 − 1/N of a predictor that ignores the index"
_LATER = ("standard", "paper")

B5 = Claim(
    id="B5",
    statement="On 1STR the sample complexity of FFN and RNN grows with N, the Transformer's hardly",
    source="mousavi2025, Figure 1a",
    rule=(
        f"Exponents of {_RELATIVE}, least squares on logarithms, N from 8 on: the Transformer's, to N = 48 with at "
        "least 5 draws at each of three or more N, below 0.6 by its interval (a lower limit above 0.6 fails); FFN's "
        "and RNN's each above the Transformer's over the N that both resolve, with every run arrived; at the largest "
        "of these with 3 draws both need more samples, each network with its own spread (99 % intervals each); "
        "protocol of the public code, whose RNN is a GRU"
    ),
    studies=dict.fromkeys(("quick", *_LATER), (mousavi2025_1str.STUDY,)),
    decide=_b5,
    departures={
        "quick": ("N = 4 and 8, Transformer and FFN alone: shown, and too few to decide",),
        "standard": ("N to 100 for the Transformer, to 24 for the FFN, to 16 for the RNN",),
        "paper": ("N to 200 for the Transformer, to 32 for the FFN, to 24 for the RNN",),
    },
)
B6 = Claim(
    id="B6",
    statement="On simple-1STR the RNN stays close to the Transformer, the FFN does not",
    source="mousavi2025, Figure 1b",
    rule=(
        f"By {_RELATIVE}, at the largest N with 3 draws of both, each network with its own spread: RNN / Transformer "
        "below 2, for the public code's GRU and for the simple RNN of the text; FFN / Transformer above 1.5; and the "
        "exponent of each RNN below the FFN's over the N from 8 on that both resolve (99 % intervals each; protocol of "
        "the public code)"
    ),
    studies={"quick": ()} | dict.fromkeys(_LATER, (mousavi2025_simple.STUDY,)),
    decide=_b6,
    departures={
        "quick": ("no trials: undecided at this budget",),
        "standard": ("N = 8, 16, 32; the recurrent networks end at the relative threshold",),
        "paper": ("N = 8, 16, 32 and the paper's; the recurrent networks end at the relative threshold",),
    },
)
B7 = Claim(
    id="B7",
    statement="The trained query-key matrix has the block of the construction, close to a multiple of the identity",
    source="mousavi2025, Figure 2",
    rule=(
        "In every run whose training is over (an epoch's mean loss below 0.05, or 20 epochs), as the public code "
        "trains and as the text says: block share above 0.9, and of the block's square the nearest αI holds more than "
        "three quarters (it is then at most half the block's norm away); one run at or below either share fails"
    ),
    studies={"quick": ()} | dict.fromkeys(_LATER, (mousavi2025_block.STUDY,)),
    decide=_b7,
    departures={
        "quick": ("no trials: undecided at this budget",),
        "standard": ("at most 8 epochs",),
    },
)
B8 = Claim(
    id="B8",
    statement="The gap widens with q",
    source="mousavi2025, Figure 3",
    rule=(
        f"Of {_RELATIVE}, q = 2 … 5, for the FFN, and for the RNN where it was run: the slope against q of the "
        "logarithm of rival / Transformer, and of rival less Transformer, both above 0 (an upper limit below 0 fails; "
        "networks compared draw by draw of link and encodings, each q with its own spread, 95 % after Bonferroni "
        "correction); a run that ended early decides nothing that it could turn"
    ),
    studies={"quick": (), "standard": (), "paper": (mousavi2025_sparsity.STUDY,)},
    decide=_b8,
    departures={
        "quick": ("no trials: undecided at this budget",),
        "standard": ("no trials: undecided at this budget",),
        "paper": ("the networks of the public code, which has none for q > 1; without the RNN",),
    },
)
