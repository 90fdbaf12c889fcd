"""Writes docs/preregistration.md: every claim's rule, its failing side, sizes, seeds and power, with a date.

`docs/preregistration.toml` keeps the digest of each rule and the day on which it was first written down; a rule that
changed gets a new day and the reason, below the old one, and nothing is ever removed. Run this when a rule has changed:
`python docs/make_preregistration.py "why it changed"`.
"""

import datetime
import functools
import itertools
import math
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.random as jr
import numpy as np
import polars as pl

from genscope import claims
from genscope.claims import lintilhac2026_attention
from genscope.lab import BUDGETS, Reading, select
from genscope.lab.results.verdict import combine
from genscope.lab.statistics.scaling import measured
from genscope.measure.lipschitz import HeadCase, Worst, head_ratio, search_ratio
from genscope.studies import (
    edelman2022_and,
    edelman2022_lipschitz,
    lintilhac2026_bounds,
    lintilhac2026_chain,
    lintilhac2026_chain_bounds,
    lintilhac2026_gap,
    mousavi2025_ffn_trained,
    mousavi2025_lower,
)

HERE = Path(__file__).parent
LOG, PAGE = HERE / "preregistration.toml", HERE / "preregistration.md"
DRAWS = 2_000

FAILS = {
    "A1": "one ratio above 1 by more than rounding, or a search that finds none above 1 with the constant halved",
    "A2": "an order form whose slope is not constant, or an explicit one whose slope rises by 5 % or more",
    "A3": "one construction that is not verified, or one norm above its formula",
    "A4": "the logarithm behind a rival by 3 or more, or an interval at T = 300 wholly outside [47, 105]",
    "A5": "an upper limit of one of the two shares below ½",
    "A6": "fewer than 80 % of at least 10 runs that succeeded",
    "A7": "fewer than 8 of 10 runs, learned or sudden, at one T",
    "A8": "a lower limit of the ratio to the ideal learner above 2.5 at one T, or of its slope above 0.15",
    "A9": "the logarithm behind the power law or the line by 3 or more, at contexts that suffice",
    "B1": "one shape with fewer than four α within the bound, or a squared correlation below 0.99",
    "B2": "an upper limit of a risk below its bound, or H = q with a lower limit above the bound of q − 1 heads",
    "B3": "one error beyond rounding, or an upper limit of the risk on general prompts below ½",
    "B4": "an upper limit of the least risk of trained networks, less that of the best in the span, below 0 at one n",
    "B5": "a lower limit of the Transformer's exponent above 0.6, an upper limit of a rival's less the Transformer's "
    "below 0, or of a ratio at the largest N below 1",
    "B6": "a lower limit of RNN / Transformer above 2, for either RNN, an upper limit of FFN / Transformer below 1.5, "
    "or of the FFN's exponent less an RNN's below 0",
    "B7": "one run whose training is over with a block share of 0.9 or less, or a share of αI of ¾ or less",
    "B8": "an upper limit of one of the slopes below 0",
    "B9": "one stationary run outside the span of its sample, an upper limit of a mean excess below 0, or one n at "
    "which every kind of network at every decay has a lower limit of the mean excess above n/(2Nd)",
    "B10": "an upper limit of the exponent of 𝔏‖U‖√log(1 + d_h) below ½, or of that of Lemma 36's samples below 1/6; "
    "at one N an upper limit of the risk with N/2 units below 0.1, of the risk of fits below ½, or fits heavier than "
    "networks that generalize",
    "B11": "a lower limit of an exponent above 0.6 where the table has a tick, an upper limit below 0.6 (FFN: 1) where "
    "it has a cross",
    "C1": "one error above 1e-12, or one below it with attention half as sharp",
    "C2": "one norm, gradient or trace off by more than its tolerance",
    "C3": "a correlation negative by the same test (also if every pair with a missing run were concordant), an upper "
    "limit of an exponent below 1, or of the interaction below 0",
    "C4": "one converged network above the paper's weights in norm, one above full or minimal weights in trace by the "
    "limit of its interval, or an upper limit of the mean power of ten below 1.5",
    "C5": "a lower limit of the largest |Δ(σ)| over the trace above 0.1",
    "C6": "in one arm an upper limit of the share below ½, or of the share of gains among changed runs below ½",
    "C7": "one part: an exponent of one pass that ceases to rise, a coded chain's local exponent above 1 + 2 / log T, "
    "or training, by its intervals",
    "C8": "an upper limit of the share below 0.95",
    "C9": "a bound of ¼ or more, with the paper's weights or with tuned ones, or one above the covering bound",
    "C10": "an upper limit of an exponent below 1, or one class whose mean bound is 1 or more",
}
EXACT = "decided case by case without sampling error: one counterexample fails it"
TOKENS = "simulated at the size of the first deciding budget, 100 draws for each truth (docs/claims.md)"
RESTARTS = "simulated by budget under the exploratory numbers and under the published exponent (docs/claims.md)"
POWER: dict[str, str] = {
    **dict.fromkeys(("A8", "A9"), RESTARTS),
    **dict.fromkeys(("B5", "B6", "B8", "B11"), TOKENS),
    "B10": "simulated at the size of standard, 60 draws for each truth (docs/claims.md)",
    **dict.fromkeys(("A2", "A3", "B1", "B3", "C1", "C2", "C9"), EXACT),
}


def reading(rows: Iterable[dict[str, Any]]) -> Reading:
    """Finished trials with these values."""
    return Reading(pl.DataFrame([{"status": "ok", **row} for row in rows]), (), 0)


def a1(chance: np.random.Generator, constant: float) -> list[Reading]:
    """The searches of `quick`, made for a lemma with another constant of the softmax."""
    rows = []
    for point in edelman2022_lipschitz.STUDY.plan("quick").points:
        if point["inequality"] == "head":
            worst, halved = (a1_search(chance, point, factor * constant) for factor in (1.0, 0.5))
            found = {"worst_random": worst.drawn, "worst_gradient": worst.climbed, "worst_weakened": halved.climbed}
            rows.append({**point, **found})
    return [reading(rows)]


def a1_search(chance: np.random.Generator, point: Mapping[str, Any], constant: float) -> Worst:
    """One search of a point, from random cases."""
    study = edelman2022_lipschitz
    sizes = {"context_length": point["context_length"], "dim": study.DIM, "head_dim": study.HEAD_DIM}
    draw = functools.partial(HeadCase.draw, **sizes, sigma=study.SIGMAS[point["sigma"]])
    effort = {"starts": point["starts"], "steps": point["steps"]}
    return search_ratio(head_ratio, draw, key=jr.key(chance.integers(2**32)), softmax_constant=constant, **effort)


def a4(chance: np.random.Generator, exponent: float) -> list[Reading]:
    """Thresholds with 95 % intervals of a tenth at the contexts of `standard`; exponent 0 stands for the logarithm."""
    found = []
    for length in edelman2022_and.LENGTHS:
        truth = 16 * math.log(length) - 20 if exponent == 0 else 70 * (length / 300) ** exponent
        size = truth * math.exp(0.05 * float(chance.normal()))
        found.append(({"context_length": length, "preset": "tuned"}, measured(size, size / 1.1, size * 1.1)))
    return [Reading(pl.DataFrame(), tuple(found), 0)]


def a5(chance: np.random.Generator, share: float) -> list[Reading]:
    """120 runs at each of two sample sizes, of which a share does what the claim says."""
    good = chance.random((2, 120)) < share
    return [
        reading(
            {"preset": "minGPT", "sample_size": m, "fitted": True, "success": bool(g) == (m == 200)}
            for m, group in zip((200, 50), good, strict=True)
            for g in group
        )
    ]


def a6(chance: np.random.Generator, share: float) -> list[Reading]:
    """40 runs that succeeded, of which a share attends to the support."""
    base = {"preset": "tuned", "success": True, "best_mass": 0.95}
    return [reading({**base, "on_support": bool(g)} for g in chance.random(40) < share)]


def a7(chance: np.random.Generator, share: float) -> list[Reading]:
    """Ten runs at each of two T, of which a share learns, all of these suddenly."""
    learns = {True: {"first_perfect": 500, "last_high": 400, "first_low": 450}}
    never = dict.fromkeys(learns[True])
    return [
        reading(
            {"rate": 3e-4, "context_length": length, **learns.get(bool(learned), never)}
            for length in (10, 15)
            for learned in chance.random(10) < share
        )
    ]


@functools.cache
def b2_explored() -> list[dict[str, Any]]:
    """What the heads of `quick` measure on a key that no budget uses."""
    study = mousavi2025_lower.HEADS
    return [{**point, **study.trial(jr.key(5000), **point)} for point in study.plan("quick").points]


def b2(chance: np.random.Generator, above: float) -> list[Reading]:
    """Fewer than q heads on single tokens, so far above their bounds; all others, and all errors, as explored."""
    rows = []
    for row in b2_explored():
        moved = row["family"] == "retrieval" and row["heads"] < row["sparsity"]
        truth = row["bound"] + above if moved else row["risk"]
        rows.append({**row, "risk": truth + row["risk_sem"] * float(chance.normal())})
    return [reading(rows)]


def b4(chance: np.random.Generator, excess: float) -> list[Reading]:
    """Twelve trained networks at each of three n; their risks deviate by 0.03, about as much as was explored."""
    span = reading([{"identity_error": 0.0, "ridge_risk": 0.9, "span_risk": 0.8}])
    trained = reading(
        {"sample_size": size, "span_risk": 0.5, "least_risk": 0.5 + excess + 0.03 * noise, "outside_share": 0.5}
        for size in (10, 15, 20)
        for noise in chance.normal(size=12).tolist()
    )
    return [span, trained]


def b7(chance: np.random.Generator, share: float) -> list[Reading]:
    """Two runs of each protocol, whose shares of αI deviate by 0.05."""
    base = {"settled": True, "steps_taken": 1, "block_share": 0.99}
    return [
        reading(
            {**base, "protocol": protocol, "identity_share": share + 0.05 * noise}
            for protocol in ("code", "text")
            for noise in chance.normal(size=2).tolist()
        )
    ]


def b9(chance: np.random.Generator, share: float) -> list[Reading]:
    """20 stationary runs in each cell, with a share of n/(Nd) as mean excess; deviations as large as were explored."""
    return [
        reading(
            {**point, "stationary": True, "outside": 0.0, "excess_share": share + 0.1 * noise}
            for point in mousavi2025_ffn_trained.STUDY.points
            for noise in chance.normal(size=mousavi2025_ffn_trained.STUDY.seeds).tolist()
        )
    ]


def c3(chance: np.random.Generator, exponent: float) -> list[Reading]:
    """The gap is a power of degree and of sparsity, with deviations of 0.3 in its logarithm; five functions a class."""
    return [
        reading(
            {
                **point,
                "converged": True,
                "gap": 0.01 * (int(point["degree"]) * int(point["sparsity"])) ** exponent * math.exp(0.3 * noise),
                "gap_sem": 0.001,
            }
            for point in lintilhac2026_gap.STUDY.points
            for noise in chance.normal(size=5).tolist()
        )
    ]


def c4(chance: np.random.Generator, powers: float) -> list[Reading]:
    """Ten networks, smaller than the paper's weights by so many powers of ten, with deviations of 0.2 in them."""
    full = {f"full_{name}": 1.0 for name in ("norm_squared", "trace")}
    others = {f"{kind}_{name}": 0.5 for kind in ("minimal", "tuned") for name in ("norm_squared", "trace")}
    errors = {f"{kind}_trace_sem": 0.0 for kind in ("full", "minimal", "tuned")}
    base = {"arm": "paper", "converged": True, "trace_sem": 0.0, **full, **others, **errors}
    return [
        reading(
            {**base, "norm_squared": 10 ** -(powers + 0.2 * norm), "trace": 10 ** -(powers + 0.2 * trace)}
            for norm, trace in chance.normal(size=(10, 2)).tolist()
        )
    ]


def c5(chance: np.random.Generator, ratio: float) -> list[Reading]:
    """Five functions in each of 20 classes, all with the same |Δ(σ)| over the trace, with the errors of exploration."""
    base = {"constant": "0.1", "degree": 1, "sparsity": 2, "sigma": 0.01, "trace": 1.0}
    return [
        reading(
            {**base, "perturbation": ratio + error * noise, "perturbation_sem": error}
            for error in C5_ERRORS
            for noise in chance.normal(size=5).tolist()
        )
    ]


C5_ERRORS = (  # standard errors of Δ(σ) over the trace, one function of each class on seed 5000, which no budget uses
    *(0.02, 0.07, 0.09, 0.13, 0.12, 0.13, 0.32, 0.24, 0.22, 0.27),
    *(0.20, 0.21, 0.15, 0.21, 0.10, 0.35, 0.16, 0.34, 0.23, 0.17),
)


def c6(chance: np.random.Generator, share: float) -> list[Reading]:
    """150 converged runs in each arm, of which a share shows its components and none did before training."""
    base = {"context_length": 20, "sparsity": 3, "scores": "factored", "converged": True}
    base |= {"computed": True, "own_bit": 0.0, "shown": False, "untrained_weights_shown": False}
    return [
        reading(
            {**base, "scale": scale, "degree": degree, "seed": seed, "weights_shown": bool(shown)}
            for scale, degree in lintilhac2026_attention.ARMS
            for seed, shown in enumerate(chance.random(lintilhac2026_attention.RUNS) < share)
        )
    ]


def c7_one_pass(chance: np.random.Generator, rate: float) -> list[Reading]:
    """Strings for one pass that grow like exp(rate T) from 64 at the shortest T, for a chain like the root of T."""
    return _chains(chance, lambda length, first: 64 * math.exp(rate * (length - first)), lambda ratio: ratio**0.5)


def c7_chain(chance: np.random.Generator, exponent: float) -> list[Reading]:
    """Strings for one pass that grow like exp(T/4), those of a chain a power of T."""
    return _chains(chance, lambda length, first: 64 * math.exp((length - first) / 4), lambda ratio: ratio**exponent)


def _chains(
    chance: np.random.Generator, one_pass: Callable[[float, float], float], chain: Callable[[float], float]
) -> list[Reading]:
    """Bounds as the claim has them, and searches of `paper`, with deviations of 0.3 in logarithms, on its ladder."""
    bounds = [
        {"weights": weights, "method": method, "context_length": length, "risk_exponent": it, "delta_exponent": it}
        for weights in lintilhac2026_chain_bounds.WEIGHTS
        for method in lintilhac2026_chain_bounds.METHODS
        for length in lintilhac2026_chain_bounds.LENGTHS
        for it in [0.1 * length if method == "one-pass" else 1.0]
    ]
    plan = lintilhac2026_chain.STUDY.plan("paper")
    first, ladder, rows = min(int(point["context_length"]) for point in plan.points), lintilhac2026_chain.SIZES, []
    for point in plan.points:
        length = int(point["context_length"])
        mean = one_pass(length, first) if point["method"] == "one-pass" else 64 * chain(length / first)
        for noise in chance.normal(size=plan.seeds).tolist():
            rung = int(np.searchsorted(ladder, mean * math.exp(0.3 * noise)))
            rows.append({**point, "samples": ladder[min(rung, len(ladder) - 1)], "reached": rung < len(ladder)})
    return [reading(bounds), reading(rows)]


def c8(chance: np.random.Generator, share: float) -> list[Reading]:
    """480 functions, of which a share is found."""
    base = {"restriction": "affine", "exact_degree": True, "queries": 1, "recovered": True, "probe_queries": 1}
    base |= {"context_length": 20, "sparsity": 2, "found_sparsity": 2}
    return [reading({**base, "exact_sparsity": bool(found)} for found in chance.random(480) < share)]


def c10(chance: np.random.Generator, exponent: float) -> list[Reading]:
    """Bounds that are powers of degree and of sparsity, 0.5 at the largest; deviations of 0.2 in their logarithms."""
    names = ("semi_analytic", "direct", "truncated", "analytic")
    rows = []
    for point in lintilhac2026_bounds.STUDY.points:
        level = 0.5 * (int(point["degree"]) * int(point["sparsity"]) / 100) ** exponent
        for noise in chance.normal(size=5).tolist():
            bounds = dict.fromkeys(names, level * math.exp(0.2 * noise))
            rows.append({**point, "converged": True, "constant_used": 0.1, "dominated": 1.0, **bounds})
    return [reading(rows)]


@dataclass(frozen=True)
class Simulation:
    """Made-up readings of a claim, for several truths."""

    made: Callable[[np.random.Generator, float], list[Reading]]
    words: str
    truths: Sequence[float]
    draws: int = DRAWS

    def told(self, claim: claims.Claim) -> str:
        """How often the claim's own rule holds and fails."""
        chance = np.random.default_rng(0)
        rates = []
        for truth in self.truths:
            found = [
                combine([part.decision for part in claim.decide(self.made(chance, truth))]) for _ in range(self.draws)
            ]
            rates.append(
                f"{truth:g}: {found.count('holds') / self.draws:.2f} / {found.count('fails') / self.draws:.2f}"
            )
        return f"{self.words}: holds / fails {'; '.join(rates)}"


SIMULATIONS = [
    ("A1", Simulation(a1, "searches of quick, softmax constant", [1, 0.999, 0.99, 0.9, 0.5], 20)),
    (
        "A4",
        Simulation(a4, "intervals of 10 % at five T, true exponent (0: the logarithm)", [0, 0.2, 0.3, 0.4, 0.5], 200),
    ),
    ("A5", Simulation(a5, "120 runs, true share", [0.4, 0.5, 0.65, 0.8])),
    ("A6", Simulation(a6, "40 runs, true share", [0.6, 0.7, 0.8, 0.9])),
    ("A7", Simulation(a7, "10 runs at two T, true share", [0.5, 0.7, 0.8, 0.9, 0.95], 1000)),
    (
        "B2",
        Simulation(
            b2, "heads of quick, those on single tokens above their bound by", [-0.02, -0.01, -0.005, 0, 0.01], 500
        ),
    ),
    ("B4", Simulation(b4, "12 networks at three n, true excess", [-0.05, -0.02, 0, 0.02, 0.05], 500)),
    ("B7", Simulation(b7, "2 runs of each protocol, true share of αI", [0.6, 0.7, 0.75, 0.8, 0.9], 500)),
    ("B9", Simulation(b9, "20 runs in each cell, true share", [0.4, 0.5, 0.6])),
    ("C3", Simulation(c3, "45 runs, true exponent in degree and sparsity", [0.5, 1, 1.5, 2], 30)),
    ("C4", Simulation(c4, "10 networks, true powers of ten", [1, 1.3, 1.5, 1.7, 2], 500)),
    ("C5", Simulation(c5, "100 functions with the errors of exploration, true ratio", [0, 0.05, 0.2, 0.5, 0.8], 200)),
    ("C6", Simulation(c6, "150 runs in each arm, true share", [0.35, 0.5, 0.6, 0.65, 0.7])),
    (
        "C7",
        Simulation(c7_one_pass, "training of paper, true rate of one pass", [0, 0.05, 0.1, 0.2, 0.3, 0.35, 0.5], 100),
    ),
    ("C7", Simulation(c7_chain, "the chain's true exponent", [0.5, 0.8, 1, 1.2, 1.5, 2], 100)),
    ("C8", Simulation(c8, "480 functions, true share", [0.9, 0.93, 0.95, 0.97, 0.98, 0.99], 500)),
    ("C10", Simulation(c10, "135 bounds, true exponent", [0.5, 0.9, 1, 1.1, 1.25, 1.5], 200)),
]


def power(claim: claims.Claim) -> str:
    """What is known of a rule's power."""
    told = [simulation.told(claim) for name, simulation in SIMULATIONS if name == claim.id]
    return "; ".join(told) or POWER[claim.id]


def sizes(claim: claims.Claim, budget: str) -> str:
    """Points, seeds and the most trials of each study of a claim at a budget."""
    told = []
    for study in claim.studies[budget]:
        chosen = select(study, budget)
        seeds = f"seeds {chosen.seeds.start} to {chosen.seeds.stop - 1}" if chosen.search is None else "a search"
        told.append(
            f"{study.name} (revision {study.revision}): {len(chosen.points)} points, {seeds}, {chosen.most} trials"
        )
    return "; ".join(told) or "none"


def log() -> dict[str, list[dict[str, str]]]:
    """The digests of all rules that were ever written down, by claim, old to new."""
    return tomllib.loads(LOG.read_text(encoding="utf-8")) if LOG.exists() else {}


def updated(today: str, why: str = "") -> dict[str, list[dict[str, str]]]:
    """The log with the rules of today, and why they changed."""
    known = log()
    for claim in claims.ALL:
        entries = known.setdefault(claim.id, [])
        if not entries or entries[-1]["digest"] != claim.rule_digest:
            entry = {"digest": claim.rule_digest, "date": today, "rule": claim.rule}
            entries.append(entry | ({"why": why} if entries and why else {}))
    return known


def history(entries: Sequence[dict[str, str]]) -> list[str]:
    """A line for each form of a rule: since when, and what changed."""
    lines = [f"- Since {entries[0]['date']}: rule {entries[0]['digest']}."]
    for before, entry in itertools.pairwise(entries):
        same = before["rule"] == entry["rule"]
        told = entry.get("why") or ("the code that decides changed" if same else "")
        words = "the words stayed" if same else f"until then it read: *{before['rule']}*"
        lines.append(f"- Since {entry['date']}: rule {entry['digest']}; {'; '.join(filter(None, [told, words]))}.")
    return lines


def page(known: dict[str, list[dict[str, str]]]) -> str:
    """The page."""
    lines = [
        "# Rules before data",
        "",
        "Written by `docs/make_preregistration.py`; a test compares. A verdict carries the digest of its rule: of",
        "its words and the code that decides by it, with what that takes from studies and statistics. When a rule",
        "changes, the new one gets a date of its own here, stored verdicts stay those of the old rule (the list, the",
        "report and the explorer say so), and a verdict by the new one names what the old one had decided.",
        "",
        "The dates are those on which digests were first written down. Rules are older; which were settled after",
        "numbers had been seen is in [claims.md](claims.md). Power is that of the rule on made-up data with the stated",
        f"truth, where that was simulated (20 to {DRAWS:,} draws each).",
    ]
    for claim in claims.ALL:
        lines += ["", f"## {claim.id}", "", f"{claim.statement} ({claim.source}).", ""]
        lines += [f"- Rule: {claim.rule}.", f"- Fails: {FAILS[claim.id]}.", f"- Power: {power(claim)}."]
        lines += [f"- Size at {budget}: {sizes(claim, budget)}." for budget in BUDGETS]
        lines += history(known[claim.id])
    return "\n".join(lines) + "\n"


def written(known: dict[str, list[dict[str, str]]]) -> str:
    """The log as TOML."""
    quoted = [
        f"[[{name}]]\n" + "\n".join(f"{key} = {_quoted(value)}" for key, value in entry.items())
        for name, entries in known.items()
        for entry in entries
    ]
    return "\n\n".join(quoted) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


if __name__ == "__main__":
    now = updated(datetime.datetime.now(datetime.UTC).date().isoformat(), *sys.argv[1:2])
    LOG.write_text(written(now), encoding="utf-8")
    PAGE.write_text(page(now), encoding="utf-8")
