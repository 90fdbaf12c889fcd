"""Writes docs/preregistration.md: every claim's rule, its failing side, sizes, seeds and power, with a date.

`docs/preregistration.toml` keeps the digest of each rule and the day on which it was first written down; a rule that
changed gets a new day, below the old one, and nothing is ever removed. Run this after a change of a rule:
`python docs/make_preregistration.py`.
"""

import datetime
import functools
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from genscope import claims
from genscope.claims import lintilhac2026_attention
from genscope.lab import BUDGETS, Reading, select
from genscope.studies import mousavi2025_ffn_trained

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
FAULT = "not simulated; a planted fault of stated size turns it (docs/claims.md)"
TOKENS = "simulated at the size of the first deciding budget, 100 draws for each truth (docs/claims.md)"
RESTARTS = "simulated by budget under the exploratory numbers and under the published exponent (docs/claims.md)"
POWER: dict[str, str] = {
    **dict.fromkeys(("A8", "A9"), RESTARTS),
    **dict.fromkeys(("B5", "B6", "B8", "B11"), TOKENS),
    **dict.fromkeys(("A2", "A3", "B1", "B3", "C1", "C2", "C9"), EXACT),
}


def simulated(claim: claims.Claim, made: Callable[[np.random.Generator, float], Reading], shares: list[float]) -> str:
    """How often the claim's own rule holds and fails on made-up readings, for true shares."""
    chance = np.random.default_rng(0)
    told = []
    for share in shares:
        found = [claim.decide([made(chance, share)]) for _ in range(DRAWS)]
        verdicts = [claims_verdict([part.decision for part in parts]) for parts in found]
        told.append(f"{share:g}: {verdicts.count('holds') / DRAWS:.2f} / {verdicts.count('fails') / DRAWS:.2f}")
    return "true share: holds / fails " + "; ".join(told)


def claims_verdict(decisions: list[str]) -> str:
    """All parts must hold; one that fails decides."""
    return "fails" if "fails" in decisions else "holds" if set(decisions) == {"holds"} else "undecided"


def a5(size: int, chance: np.random.Generator, share: float) -> Reading:
    """Runs at two sample sizes, of which a share does what the claim says."""
    good = chance.random((2, size)) < share
    rows = [
        {"preset": "minGPT", "status": "ok", "sample_size": m, "fitted": True, "success": bool(g) == (m == 200)}
        for m, group in zip((200, 50), good, strict=True)
        for g in group
    ]
    return Reading(pl.DataFrame(rows), (), 0)


def a6(size: int, chance: np.random.Generator, share: float) -> Reading:
    """Runs that succeeded, of which a share attends to the support."""
    base = {"preset": "tuned", "status": "ok", "success": True, "best_mass": 0.95}
    return Reading(pl.DataFrame([{**base, "on_support": bool(g)} for g in chance.random(size) < share]), (), 0)


def b9(size: int, chance: np.random.Generator, share: float) -> Reading:
    """Stationary runs of all cells, whose mean excess is a share of n/(Nd); deviations as large as were explored."""
    rows = [
        {**point, "status": "ok", "stationary": True, "outside": 0.0, "excess_share": share + 0.1 * float(noise)}
        for point in mousavi2025_ffn_trained.STUDY.points
        for noise in chance.normal(size=size)
    ]
    return Reading(pl.DataFrame(rows), (), 0)


def c6(size: int, chance: np.random.Generator, share: float) -> Reading:
    """Converged runs of all arms, of which a share shows its components and none did before training."""
    base = {"status": "ok", "context_length": 20, "sparsity": 3, "scores": "factored", "converged": True}
    base |= {"computed": True, "own_bit": 0.0, "shown": False, "untrained_weights_shown": False}
    rows = [
        {**base, "scale": scale, "degree": degree, "seed": seed, "weights_shown": bool(shown)}
        for scale, degree in lintilhac2026_attention.ARMS
        for seed, shown in enumerate(chance.random(size) < share)
    ]
    return Reading(pl.DataFrame(rows), (), 0)


def power(claim: claims.Claim) -> str:
    """What is known of a rule's power."""
    made: dict[str, tuple[Callable[..., Reading], int, list[float]]] = {
        "A5": (a5, 120, [0.4, 0.5, 0.65, 0.8]),
        "A6": (a6, 40, [0.6, 0.7, 0.8, 0.9]),
        "B9": (b9, mousavi2025_ffn_trained.STUDY.seeds, [0.4, 0.5, 0.6]),
        "C6": (c6, lintilhac2026_attention.RUNS, [0.35, 0.5, 0.6, 0.65, 0.7]),
    }
    if claim.id not in made:
        return POWER.get(claim.id, FAULT)
    make, size, shares = made[claim.id]
    each = {"B9": " in each cell", "C6": " in each arm"}.get(claim.id, "")
    return f"{size} runs{each}, {simulated(claim, functools.partial(make, size), shares)}"


def sizes(claim: claims.Claim, budget: str) -> str:
    """Points, seeds and the most trials of each study of a claim at a budget."""
    told = []
    for study in claim.studies[budget]:
        chosen = select(study, budget)
        seeds = f"seeds {chosen.seeds.start} to {chosen.seeds.stop - 1}" if chosen.search is None else "a search"
        told.append(
            f"{study.name} (revision {study.revision}): {len(chosen.points)} points, {seeds}, {chosen.most} trials"
        )
    return "; ".join(told)


def log() -> dict[str, list[dict[str, str]]]:
    """The digests of all rules that were ever written down, by claim, old to new."""
    return tomllib.loads(LOG.read_text(encoding="utf-8")) if LOG.exists() else {}


def updated(today: str) -> dict[str, list[dict[str, str]]]:
    """The log with the rules of today."""
    known = log()
    for claim in claims.ALL:
        entries = known.setdefault(claim.id, [])
        if not entries or entries[-1]["digest"] != claim.rule_digest:
            entries.append({"digest": claim.rule_digest, "date": today, "rule": claim.rule})
    return known


def page(known: dict[str, list[dict[str, str]]]) -> str:
    """The page."""
    lines = [
        "# Rules before data",
        "",
        "Written by `docs/make_preregistration.py`; a test compares. A verdict carries the digest of its rule: of",
        "its words and the code that decides by it. When a rule changes, the new one gets a date of its own here,",
        "stored verdicts stay those of the old rule (`genscope list` says so), and a verdict by the new one names what",
        "the old one had decided.",
        "",
        "The dates are those on which digests were first written down. Rules are older; which were settled after",
        "numbers had been seen is in [claims.md](claims.md). Power is that of the rule on made-up data with the stated",
        f"truth, where that was simulated ({DRAWS:,} draws each).",
    ]
    for claim in claims.ALL:
        lines += ["", f"## {claim.id}", "", f"{claim.statement} ({claim.source}).", ""]
        lines += [f"- Rule: {claim.rule}.", f"- Fails: {FAILS[claim.id]}.", f"- Power: {power(claim)}."]
        lines += [f"- Size at {budget}: {sizes(claim, budget)}." for budget in BUDGETS]
        lines += [f"- Since {entry['date']}: rule {entry['digest']}." for entry in known[claim.id]]
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
    now = updated(datetime.datetime.now(datetime.UTC).date().isoformat())
    LOG.write_text(written(now), encoding="utf-8")
    PAGE.write_text(page(now), encoding="utf-8")
