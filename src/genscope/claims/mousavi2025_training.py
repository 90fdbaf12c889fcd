"""Claims B5 to B8, and what training says about B2: the experiments of MH25.

Source: mousavi2025, Figures 1 to 3; Propositions 4 and 21.
Departures: each claim names its own.
Guarantee: rules as in docs/claims.md, fixed before the data; intervals at 95 % after Bonferroni correction over the
parts of a claim that rest on intervals. All decide under the protocol "code"; "text" is shown beside.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import scipy  # whose parts load on first use: a listing of studies needs none of them

from genscope.claims._base import Claim, Decision, Part
from genscope.claims._ratios import Interval, SampleCounts, Slope, contrast, decide, difference, exponent, pooled_spread
from genscope.lab import Reading
from genscope.studies import (
    mousavi2025_1str,
    mousavi2025_block,
    mousavi2025_simple,
    mousavi2025_sparsity,
)

RECURRENT = ("gru", "gru-128")  # the public code's kind; a claim uses the first that was run
NEAR, FAR = 2.0, 1.5  # B6: RNN / Transformer, FFN / Transformer
BLOCK, DIAGONAL = 0.9, 3.0  # B7


def _runs(reading: Reading, protocol: str = "code") -> pl.DataFrame:
    """Finished runs of a protocol; further runs of one draw (`run` > 0) are not independent and left out."""
    frame = reading.frame
    if not len(frame):
        return frame
    frame = frame.filter(pl.col("status") == "ok", pl.col("protocol") == protocol)
    return frame.filter(pl.col("run") == 0) if "run" in frame.columns else frame


def _has(frame: pl.DataFrame, architecture: str) -> bool:
    return len(frame) > 0 and architecture in frame["architecture"]


def _recurrent(frame: pl.DataFrame) -> str:
    return next((name for name in RECURRENT if _has(frame, name)), RECURRENT[0])


def _lengths(frame: pl.DataFrame) -> list[int]:
    return sorted(frame["context_length"].unique()) if len(frame) else []


def _exponent(frame: pl.DataFrame, architecture: str) -> Slope | None:
    return exponent({n: SampleCounts.of(frame, architecture=architecture, context_length=n) for n in _lengths(frame)})


def _numbers(name: str, interval: Interval) -> dict[str, Any]:
    return {name: interval[0], f"{name}, interval": [interval[1], interval[2]]}


def _b5(readings: Sequence[Reading]) -> list[Part]:
    frame, text = _runs(readings[0]), _runs(readings[0], "text")
    confidence = 1 - 0.05 / 4
    rivals = {"FFN": "ffn", "RNN": _recurrent(frame)}
    largest = max(_lengths(frame), default=0)
    base = _exponent(frame, "transformer")
    at_largest = {
        name: SampleCounts.of(frame, architecture=name, context_length=largest)
        for name in ("transformer", *rivals.values())
    }
    spread = pooled_spread(list(at_largest.values()))
    parts = []
    for label, name in rivals.items():
        gap = difference(_exponent(frame, name), base, confidence)
        censored = any(
            SampleCounts.of(frame, architecture=kind, context_length=n).censored
            for n in _lengths(frame)
            for kind in (name, "transformer")
        )
        verdict: Decision = decide(gap, 0.0, []) if not censored else "undecided"
        under_text = {kind: _exponent(text, kind) for kind in (name, "transformer")}
        beside = {f"exponent under the text, {kind}": slope.value for kind, slope in under_text.items() if slope}
        numbers = _numbers(f"exponent of {name} less Transformer", gap) | {
            f"exponent of {name}": _value(_exponent(frame, name)),
            "exponent of Transformer": _value(base),
        }
        parts.append(Part(f"the samples of the {label} grow faster with N", verdict, numbers | beside))
    for label, name in rivals.items():
        arms = [(1, at_largest[name]), (-1, at_largest["transformer"])]
        ratio = contrast(arms, spread, confidence)
        numbers = _numbers(f"{name} / Transformer at N = {largest}", ratio) | _published(frame, name, largest)
        parts.append(Part(f"at the largest N the {label} needs more samples", decide(ratio, 1.0, arms), numbers))
    return parts


def _value(slope: Slope | None) -> float | None:
    return None if slope is None else slope.value


def _published(frame: pl.DataFrame, architecture: str, length: int) -> dict[str, Any]:
    """Our mean over the published value, for the rival and the Transformer."""
    found = {}
    for name in (architecture, "transformer"):
        table = mousavi2025_1str.PUBLISHED.get(name)
        ours = SampleCounts.of(frame, architecture=name, context_length=length).mean
        if table and ours and length in mousavi2025_1str.LENGTHS:
            found[f"{name} over published"] = ours / table[mousavi2025_1str.LENGTHS.index(length)]
    return found


def _b6(readings: Sequence[Reading]) -> list[Part]:
    frame = _runs(readings[0])
    largest = max(_lengths(frame), default=0)
    arms = {
        name: SampleCounts.of(frame, architecture=name, context_length=largest)
        for name in ("transformer", "ffn", "gru", "rnn")
    }
    confidence = 1 - 0.05 / 2
    far, near = [(1, arms["ffn"]), (-1, arms["transformer"])], [(1, arms["transformer"]), (-1, arms["gru"])]
    ffn = contrast(far, pooled_spread([arms["ffn"], arms["transformer"]]), confidence)
    # The draw of the encodings moves the FFN far more than the others, whose spread must not be taken from it.
    spread = pooled_spread([arms["transformer"], arms["gru"], arms["rnn"]])
    inverse = contrast(near, spread, confidence)
    simple = contrast([(1, arms["rnn"]), (-1, arms["transformer"])], spread, confidence)
    ratio: Interval = (_over(inverse[0]), _over(inverse[2]), _over(inverse[1]))
    return [
        Part(
            "the RNN (GRU) stays within a factor 2 of the Transformer",
            decide(inverse, 1 / NEAR, near),
            _numbers(f"GRU / Transformer at N = {largest}", ratio) | _numbers("simple RNN / Transformer", simple),
        ),
        Part(
            "the FFN needs 1.5 times the Transformer's samples",
            decide(ffn, FAR, far),
            _numbers(f"FFN / Transformer at N = {largest}", ffn),
        ),
    ]


def _over(value: float | None) -> float | None:
    return None if value is None else 1 / value


def _b7(readings: Sequence[Reading]) -> list[Part]:
    frame = _runs(readings[0])
    if not len(frame):
        return [Part("the query-key matrix has the block", "undecided", {})]
    block = frame["block_share"].to_list()
    times = (frame["diagonal_share"] / frame["diagonal_chance"]).to_list()
    return [
        Part(
            "the block holds nine tenths of the squared matrix",
            "holds" if min(block) > BLOCK else "fails",
            {"block share, run by run": block, "chance": frame["block_chance"][0]},
        ),
        Part(
            "the block's diagonal holds three times its chance",
            "holds" if min(times) > DIAGONAL else "fails",
            {"diagonal share over chance, run by run": times},
        ),
    ]


def _b8(readings: Sequence[Reading]) -> list[Part]:
    frame = _runs(readings[0])
    sparsities = sorted(frame["sparsity"].unique()) if len(frame) else []
    rivals = [name for name in ("ffn", "rnn") if name == "ffn" or _has(frame, name)]
    ratios = {(name, q): _ratio_to_transformer(frame, name, q) for name in rivals for q in sparsities}
    spread = pooled_spread(list(ratios.values()))
    parts = []
    for name in rivals:
        known = [q for q in sparsities if len(ratios[name, q].logs)]
        low, high = min(known, default=0), max(known, default=0)
        if low == high:
            parts.append(Part(f"the gap of the {name.upper()} widens with q", "undecided", {}))
            continue
        quotient = contrast([(1, ratios[name, high]), (-1, ratios[name, low])], spread, 1 - 0.05 / len(rivals))
        ends = [
            (sign * side, SampleCounts.of(frame, architecture=kind, sparsity=q))
            for sign, q in ((1, high), (-1, low))
            for side, kind in ((1, name), (-1, "transformer"))
        ]
        beside = {f"{name} / Transformer at q = {q}": ratios[name, q].mean for q in known}
        statement = f"{name.upper()} / Transformer is larger at q = {high} than at q = {low}"
        parts.append(Part(statement, decide(quotient, 1.0, ends), _numbers(f"quotient ({name})", quotient) | beside))
    return parts


def _ratio_to_transformer(frame: pl.DataFrame, architecture: str, sparsity: int) -> SampleCounts:
    """Logarithms of the ratio of samples, draw by draw: both networks learn the same link and encodings."""
    at = frame.filter(pl.col("sparsity") == sparsity)
    rival, base = (
        at.filter(pl.col("architecture") == kind).select("draw", pl.col("samples").log())
        for kind in (architecture, "transformer")
    )
    both = rival.join(base, on="draw", suffix="_base")
    return SampleCounts((both["samples"] - both["samples_base"]).to_numpy(), censored=False)


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


_ALL = ("quick", "standard", "paper")

B5 = Claim(
    id="B5",
    statement="On 1STR the sample complexity of FFN and RNN grows with N, the Transformer's hardly",
    source="mousavi2025, Figure 1a",
    rule=(
        "Exponent of samples against N, least squares on logarithms: FFN's and RNN's each above the Transformer's; and "
        "at the largest N both need more samples (98.75 % intervals each); protocol of the public code"
    ),
    studies=dict.fromkeys(_ALL, (mousavi2025_1str.STUDY,)),
    decide=_b5,
    departures={
        "quick": ("N = 2, 4, 8; the RNN is a GRU of 128 units instead of 500",),
        "standard": ("N = 2, 4, 8, 12, 3 runs; the RNN is the public code's GRU",),
        "paper": ("the RNN is the public code's GRU",),
    },
)
B6 = Claim(
    id="B6",
    statement="On simple-1STR the RNN stays close to the Transformer, the FFN does not",
    source="mousavi2025, Figure 1b",
    rule=(
        "At the largest N, 97.5 % intervals of ratios of geometric means: RNN / Transformer below 2 (spread of "
        "logarithms pooled over Transformer, GRU and simple RNN), FFN / Transformer above 1.5 (pooled over these two); "
        "the RNN is the public code's GRU"
    ),
    studies=dict.fromkeys(_ALL, (mousavi2025_simple.STUDY,)),
    decide=_b6,
    departures={
        "quick": ("N = 25, 2 runs, without the RNN",),
        "standard": ("N = 33 with one run of the GRU; the simple RNN at N = 25, one run",),
        "paper": ("one run of the GRU at each N",),
    },
)
B7 = Claim(
    id="B7",
    statement="The trained query-key matrix has the block of the construction",
    source="mousavi2025, Figure 2",
    rule="In every run: block share above 0.9 and diagonal share above three times chance",
    studies=dict.fromkeys(_ALL, (mousavi2025_block.STUDY,)),
    decide=_b7,
    departures={
        "quick": ("N = 25, 1,500 steps; simple-1STR as in the public code",),
        "standard": ("two epochs; simple-1STR as in the public code",),
        "paper": ("simple-1STR as in the public code",),
    },
)
B8 = Claim(
    id="B8",
    statement="The gap widens with q",
    source="mousavi2025, Figure 3",
    rule=(
        "Ratio FFN / Transformer, and RNN / Transformer where it was run, larger at the largest q than at the least, "
        "by the 95 % interval of their quotient (networks compared draw by draw of link and encodings; spread of "
        "logarithms of ratios pooled over points)"
    ),
    studies=dict.fromkeys(_ALL, (mousavi2025_sparsity.STUDY,)),
    decide=_b8,
    departures={
        "quick": ("q = 2, 3, without the RNN",),
        "standard": ("without the RNN",),
    },
)
