"""How many samples suffice for a sparse AND? Up to six runs on each sample, of which one is chosen without labels.

Source: edelman2022, Figure 2 (T from 100 to 1,100); restarts and longer contexts are ours.
Departures: as in `edelman2022_and`, and a trial is a sample with two, four or six runs on it, until two agree.
`success` is that of the network that the rule chooses, `share` the share of the first two runs that are right: single
runs that are looked at once, where they are given up, and not every ten steps as in `edelman2022_and`.
Guarantee: estimate; intervals at 95 % for each threshold. Those of single runs allow for runs that share their sample.
"""

from typing import Any

import numpy as np
from jaxtyping import Array, Key

from genscope.lab import Crossing, Group, Line, Mean, Plan, Reference, Search, Study, Success, grid
from genscope.random import stream
from genscope.studies._bit_restarts import RULE, RULES, RUNS, TOGETHER, train_restarts
from genscope.studies._bit_training import draw_and
from genscope.studies.edelman2022_and import AND, BALANCED, CHECK, INFORMATION, LABELS, references


def trial(key: Key[Array, ""], *, context_length: int, sample_size: int, preset: str) -> dict[str, Any]:
    """Several runs on one sample; whether the network that each rule chooses is right on 10,000 held-out examples."""
    key = stream(key, "revision 2")  # those of the first may have been drawn under its rule
    keys = {f"{name}_key": stream(key, name) for name in ("support", "init", "data")}
    return learn_with_restarts(**keys, context_length=context_length, sample_size=sample_size, preset=preset)


def learn_with_restarts(
    *,
    support_key: Key[Array, ""],
    init_key: Key[Array, ""],
    data_key: Key[Array, ""],
    context_length: int,
    sample_size: int,
    preset: str,
) -> dict[str, Any]:
    """Train several classifiers on one sample of a 3-sparse AND, and choose by every rule."""
    task = draw_and(support_key, context_length=context_length, sample_size=sample_size)
    found = train_restarts(task, sample_size=sample_size, preset=preset, init_key=init_key, data_key=data_key)
    seen, right = found.evidence, found.right
    chosen = {name: right[int(rule(seen).argmax())] for name, rule in RULES.items()}
    return {
        "success": chosen[RULE],
        "share": sum(right[:TOGETHER]) / TOGETHER,
        "first": right[0],
        "any": any(right),
        **{f"by_{name}": outcome for name, outcome in chosen.items()},
        "runs": len(right),
        "agreed": seen.agreed,
        "concentration": seen.concentration.astype(np.float32),
        "steps": sum(each.steps for each in found.fits),
        "training_loss": float(seen.loss.mean()),
        "diverged": any(each.diverged for each in found.fits),
        "identified": found.drawn.identified,
    }


LEVELS = (0.8, 0.5)
SUFFICES = Crossing("sample_size", "success", 0.8)
SINGLE = Crossing("sample_size", "share", 0.5)
LENGTHS = (50, 200, 800)
_LABELS = LABELS | {
    "success": "share of samples from which the chosen run is right",
    "share": "share of single runs that reach 100 %",
}
# Where the three bits with the largest correlation with the label are the right ones in 80 % of samples; a test
# simulates it.
_CORRELATION = {50: 41, 100: 47, 200: 53, 400: 58, 800: 62, 1600: 68, 3200: 73}
_IDEAL, _BITS = references(
    AND, (50, 100, 200, 400, 800, 1600, 3200, 10_000, 30_000, 100_000), BALANCED, information=INFORMATION
)
_CORRELATED = Reference("the three bits most correlated with the label", [*_CORRELATION], [*_CORRELATION.values()])
REFERENCES = _IDEAL, _CORRELATED, _BITS
_SOURCE = "edelman2022, Figure 2, with restarts"


def _thresholds(crossing: Crossing, title: str, caption: str, **more: Any) -> Line:
    return Line(
        title=title,
        caption=caption,
        x="context_length",
        y=crossing,
        by="preset",
        log_x=True,
        laws=("log", "power", "linear"),
        references=REFERENCES,
        **more,
    )


SUFFICIENT = _thresholds(
    SUFFICES,
    "Samples that suffice for a 3-sparse AND",
    f"The sample size at which up to {RUNS} runs on a sample, of which one is chosen without labels, give the function "
    "on 80 % of samples, with 95 % intervals, with what an ideal learner needs. A logarithm is a straight line here.",
    answer="With restarts, {first tuned} samples suffice at T = {from tuned} and {last tuned} at T = {to tuned}",
    claims=("A8",),
)
HALF = _thresholds(
    SINGLE,
    "Samples at which half of the single runs learn a 3-sparse AND",
    f"The same trials, their first {TOGETHER} runs by themselves: the sample size at which half of them succeed. Runs "
    "that share a sample are not independent, and the intervals allow for it.",
    answer=(
        "Half of the single runs succeed with {first tuned} samples at T = {from tuned}, {last tuned} at T = {to tuned}"
    ),
    claims=("A9",),
)
MANY = _thresholds(
    Crossing("sample_size", "share", 0.8),
    "Samples at which 80 % of the single runs learn a 3-sparse AND",
    "The same at 80 %, the level of the paper's figure, which takes both samples and a lucky initialization.",
    folded=True,
)

FIGURES = (
    SUFFICIENT,
    HALF,
    MANY,
    Success(
        title="Success of restarts against sample size",
        caption=(
            "Share of samples from which the chosen run is right, with Wilson intervals, the fitted monotone "
            "curve, and the threshold where it crosses 80 %."
        ),
        folded=True,
        crossing=SUFFICES,
        panel="context_length",
        log_x=True,
    ),
    Group(
        title=f"Choosing among up to {RUNS} runs without held-out labels",
        caption=(
            "Share of all trials of a context in which the chosen run is right, by the rule that chooses. The "
            "design spends its trials near the threshold, so shares can be compared between rules, not between "
            "contexts."
        ),
        folded=True,
        panels=[
            Line(
                title=words,
                labels=_LABELS | {value: "share of trials"},
                x="context_length",
                y=Mean(value),
                log_x=True,
            )
            for value, words in (
                ("by_consensus", "Agrees best with another run, then concentrated attention"),
                ("by_partner", "Agrees best with another run"),
                ("by_attention", "Most concentrated attention"),
                ("by_vote", "Agrees best with the majority"),
                ("by_confidence", "Largest logits on unlabeled inputs"),
                ("by_loss", "Least training loss"),
                ("by_slowness", "Took longest to fit its sample"),
                ("by_norm", "Least norm"),
                ("any", "At least one run is right"),
            )
        ],
    ),
)

STUDY = Study(
    name="edelman2022-and-restarts",
    title="How many samples suffice for a sparse AND?",
    source=_SOURCE,
    labels=_LABELS,
    trial=trial,
    trial_cost=0.6,
    points=grid(context_length=LENGTHS, preset=["tuned"]),
    # Half of the single runs succeed near where the chosen run does on half of the samples.
    search=Search(level=LEVELS, lowest=20, highest=600, start=60, width=0.05, trials=600, batch=4, round=40),
    budgets={
        "quick": Plan(
            grid(context_length=LENGTHS[:2], preset=["tuned"]),
            search=Search(level=LEVELS, lowest=20, highest=400, start=60, width=0.10, trials=32, batch=4, round=16),
        ),
        "paper": Plan(
            grid(context_length=LENGTHS, preset=["tuned"]),
            search=Search(level=LEVELS, lowest=20, highest=600, start=60, width=0.05, trials=1000, batch=4, round=40),
        ),
    },
    figures=FIGURES,
    batch=4,
    revision=2,
    check=CHECK,
)
