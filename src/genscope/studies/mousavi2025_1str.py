"""Samples to reach test error 0.7 on 1-sparse token regression, against the number of tokens.

Source: mousavi2025, Figure 1a, and Appendix E for its settings.
Departures: runs have draws of link and encodings of their own (`draw`), because the draw alone moves the FFN by a
factor of 2 and the published curve shows one draw; further runs of one draw (`run`) show the spread within it. The
published recurrent curve belongs to the public code's GRU; "rnn" is the simple RNN of the text. Published values are
read off the plot.
Guarantee: exact up to the screen's probability of missing (`train.screen`); unreached budgets are censored.
"""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Array, Key

from genscope.lab import Line, Mean, Plan, Published, Scatter, Study, grid, within
from genscope.studies._token_training import measure, settings

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
    """Train on fresh batches until a check passes."""
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
    "draw": "draw of link and encodings",
    "encoding_gap": "gap of the encodings γ",
}

STUDY = Study(
    name="mousavi2025-1str",
    title="Samples to learn 1-sparse token regression",
    source="mousavi2025, Figure 1a",
    trial=trial,
    trial_cost=25.0,
    points=(
        *points(["transformer", "ffn", "gru"], [2, 4, 8, 12], 3),
        *points(["transformer", "ffn"], [2, 4, 8, 12], 2, protocol="text"),
        *points(["rnn"], [4, 8], 1, protocol="text"),
    ),
    budgets={
        "quick": Plan(
            (
                *points(["transformer"], [2, 4, 8], 8),
                *points(["ffn"], [2, 4, 8], 4),
                *points(["gru-128"], [2, 4, 8], 3),
            ),
            trial_cost=5.0,
        ),
        "paper": Plan(
            (
                *points(["gru"], LENGTHS[::-1], 5),  # the longest first, lest one core be idle at the end
                *points(["transformer", "ffn"], LENGTHS, 5),
                *points(["transformer", "ffn"], LENGTHS, 1, runs=(1, 2, 3, 4)),
                *points(["transformer", "ffn"], LENGTHS, 5, protocol="text"),
                *points(["rnn"], LENGTHS, 2, protocol="text"),
            )
        ),
    },
    figures=(
        Line(
            title="Samples to test error 0.7 on 1STR, protocol of the public code",
            caption=(
                "Geometric means over draws of link and encodings with 95 % intervals; where draws are fewer than "
                "four, each is drawn. Arrows: runs that stopped at their budget. Stars: published values; the "
                "published recurrent network is the GRU of the public code, which has 500 units."
            ),
            answer=(
                "At {at ffn/transformer} tokens the FFN needs {ratio ffn/transformer} times the Transformer's samples"
            ),
            opening="Retrieving a token: samples against the number of tokens",
            claims=("B5",),
            source="mousavi2025, Figure 1a",
            labels=LABELS,
            where={"protocol": "code", "run": 0},
            x="context_length",
            y=Mean("samples", reached="reached"),
            by="architecture",
            log_y=True,
            published=tuple(
                Published(length, value, f"published {name}", name)
                for name, values in PUBLISHED.items()
                for length, value in zip(LENGTHS, values, strict=True)
            ),
        ),
        Line(
            title="Samples to test error 0.7 on 1STR, protocol of the text",
            caption=(
                "The same under the settings of the paper's text: full query-key matrix, scaled encodings, test "
                "prompts from the training distribution, weight decay 0.1, and a simple RNN."
            ),
            source="mousavi2025, Figure 1a",
            labels=LABELS,
            where={"protocol": "text"},
            x="context_length",
            y=Mean("samples", reached="reached"),
            by="architecture",
            log_y=True,
        ),
        Scatter(
            title="What the draw of the encodings does to the FFN",
            folded=True,
            caption=(
                "Samples of the FFN against the gap of its encodings, one point per run; a gap of 0 means that two "
                "positions cannot be told apart. Runs of one draw lie above each other."
            ),
            source="mousavi2025, Figure 1a",
            labels=LABELS,
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
