"""Samples to reach test error 0.7 on 1-sparse token regression, against the number of tokens.

Source: mousavi2025, Figure 1a, and Appendix E for its settings.
Departures: a run goes on until its test error is also below three quarters of the risk 1 - 1/N of a predictor that
ignores the index, by which claims decide: at N = 2 such a predictor passes 0.7. Lengths go beyond the published 12,
where the statement lives. Runs have draws of link and encodings of their own (`draw`), because the draw alone moves the
FFN by a factor of 2 and the published curve shows one draw; further runs of one draw (`run`) show the spread within it.
The published recurrent curve belongs to the public code's GRU; "rnn" is the simple RNN of the text. Published values
are read off the plot.
Guarantee: exact up to the screen's probability of missing (`train.screen`); unreached budgets are censored.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxtyping import Array, Key

from genscope.lab import Line, Mean, Plan, Published, Scatter, Study, grid, within
from genscope.studies._token_protocols import settings
from genscope.studies._token_training import measure

LENGTHS = [2, 4, 6, 8, 10, 12]
THRESHOLD, RATE = 0.7, 1e-3

# Read off Figure 1a, samples.
PUBLISHED = {
    "transformer": (3e3, 6e3, 10.5e3, 14.5e3, 15.8e3, 17.2e3),
    "gru": (1.2e3, 16e3, 33e3, 41e3, 59e3, 73e3),
    "ffn": (2e3, 8e3, 20e3, 39e3, 65e3, 115e3),
}


def trial(
    key: Key[Array, ""], *, architecture: str, context_length: int, protocol: str, draw: int, run: int
) -> dict[str, Any]:
    """Train on fresh batches until both thresholds are crossed."""
    del run  # only makes the key another
    chosen = settings(protocol, architecture)
    return measure(
        key,
        architecture=architecture,
        context_length=context_length,
        protocol=chosen,
        draw=draw,
        threshold=THRESHOLD,
        rate=RATE,
        every=chosen.check_every,
        until="both",
        share_up_to=LENGTHS[-1],
    )


def points(
    architectures: Sequence[str],
    lengths: Sequence[int],
    draws: int,
    *,
    protocol: str = "code",
    runs: Sequence[int] = (0,),
) -> tuple[dict[str, Any], ...]:
    """Points of some architectures at some lengths."""
    return grid(
        architecture=architectures, context_length=lengths, protocol=[protocol], draw=list(range(draws)), run=list(runs)
    )


LABELS = {
    "context_length": "tokens N",
    "samples": "samples to test error 0.7",
    "samples_relative": "samples to 3/4 of the risk without the index",
    "draw": "draw of link and encodings",
    "encoding_gap": "gap of the encodings γ",
}

ANSWER = "At {at ffn/transformer} tokens the FFN needs {ratio ffn/transformer} times the Transformer's samples"
CODE_CAPTION = (
    "Geometric means over draws of link and encodings with 95 % intervals; where draws are fewer than four, each is "
    "drawn. Arrows: runs that stopped at their budget. Stars: published values; the published recurrent network is "
    "the GRU of the public code, which has 500 units."
)


def read_off(lengths: Sequence[int], curves: Mapping[str, Sequence[float]]) -> tuple[Published, ...]:
    """Published curves, point by point."""
    return tuple(
        Published(length, value, f"published {name}", name)
        for name, values in curves.items()
        for length, value in zip(lengths, values, strict=True)
    )


def samples_figure(task: str, name: str, caption: str, *, threshold: float = THRESHOLD, **options: Any) -> Line:
    """Samples to the published threshold, against the number of tokens."""
    return Line(
        title=f"Samples to test error {threshold} on {task}, {name}",
        caption=caption,
        x="context_length",
        y=Mean("samples", reached="reached"),
        by="architecture",
        log_y=True,
        **options,
    )


def relative_figure(task: str, *, remark: str = "", **options: Any) -> Line:
    """Samples to the threshold that only a network which reads the index can pass."""
    return Line(
        title=f"Samples to three quarters of the risk without the index, {task}",
        answer="To three quarters of the risk without the index, the FFN needs {ratio ffn/transformer} times the "
        "Transformer's samples at {at ffn/transformer} tokens",
        caption=(
            "Geometric means over draws with 95 % intervals; where draws are fewer than four, each is drawn. Arrows: "
            "runs that stopped at their budget. A network that ignores the index cannot go below 1 − 1/N, and this "
            f"threshold is three quarters of that for every N. A slope is an exponent of Table 1{remark}."
        ),
        x="context_length",
        y=Mean("samples_relative", reached="reached_relative"),
        by="architecture",
        log_x=True,
        log_y=True,
        **options,
    )


STUDY = Study(
    name="mousavi2025-1str",
    title="Samples to learn 1-sparse token regression",
    source="mousavi2025, Figure 1a",
    labels=LABELS,
    trial=trial,
    trial_cost=25.0,
    revision=2,
    # N from 8 on, where the risk without the index is close to 1, and the recurrent networks first: they take longest.
    points=(
        *points(["gru"], [16, 12, 8], 3),
        *points(["ffn"], [24, 16, 12, 8], 5),
        *points(["transformer"], [8, 12, 16, 24, 48], 5),
        *points(["transformer"], [100], 3),
        *points(["transformer", "ffn"], [8, 12], 2, protocol="text"),
        *points(["transformer", "ffn"], [8, 12], 2, protocol="theory"),
    ),
    budgets={
        "quick": Plan(points(["transformer", "ffn"], [4, 8], 3), trial_cost=2.0),
        "paper": Plan(
            (
                *points(["gru"], [24, 16, *LENGTHS[::-1]], 5),  # the longest first, lest one core be idle at the end
                *points(["transformer"], [*LENGTHS, 16, 24, 48, 100], 5),
                *points(["transformer"], [200], 3),
                *points(["ffn"], [*LENGTHS, 16, 24, 32], 5),
                *points(["transformer", "ffn"], LENGTHS, 1, runs=(1, 2, 3, 4)),
                *points(["transformer", "ffn"], LENGTHS, 5, protocol="text"),
                *points(["rnn"], LENGTHS, 2, protocol="text"),
                *points(["transformer", "ffn"], LENGTHS, 5, protocol="theory"),
                *points(["rnn"], LENGTHS, 2, protocol="theory"),
            )
        ),
    },
    figures=(
        samples_figure(
            "1STR",
            "protocol of the public code",
            CODE_CAPTION,
            where={"protocol": "code", "run": 0},
            answer=ANSWER,
            opening="Retrieving a token: samples against the number of tokens",
            claims=("B5",),
            published=read_off(LENGTHS, PUBLISHED),
        ),
        relative_figure("1STR", source="mousavi2025, Figure 1a and Table 1", where={"protocol": "code", "run": 0}),
        samples_figure(
            "1STR",
            "protocol of the text",
            "Settings of Appendix E: separate query and key matrices, test prompts from the law that is trained, "
            "weight decay 0.1, and a simple RNN.",
            where={"protocol": "text"},
        ),
        samples_figure(
            "1STR",
            "networks of the theory",
            "The networks of the theorems with the text's training: one full query-key matrix, encodings scaled for "
            "all networks, recurrent states without the token and a two-layer read-out.",
            where={"protocol": "theory"},
        ),
        Scatter(
            title="What the draw of the encodings does to the FFN",
            folded=True,
            caption=(
                "Samples of the FFN against the gap of its encodings, one point per run; a gap of 0 means that two "
                "positions cannot be told apart. Runs of one draw lie above each other."
            ),
            where={"protocol": "code", "architecture": "ffn"},
            x="encoding_gap",
            y="samples",
            by="context_length",
            log_y=True,
        ),
    ),
    paired=frozenset({"architecture", "protocol"}),
    batch=1,
    check=within(context_length=(2, 200), draw=(0, None), run=(0, None)),
)
