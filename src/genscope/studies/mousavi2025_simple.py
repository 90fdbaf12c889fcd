"""Samples to reach test error 0.02 on simple-1STR, where one position answers for the whole prompt.

Source: mousavi2025, Figure 1b, and Appendix E for its settings.
Departures: as in `mousavi2025_1str`; the published recurrent curve is compared with both the GRU of the public code and
the simple RNN of the text, each under its own name.
Guarantee: exact up to the screen's probability of missing (`train.screen`); unreached budgets are censored.
"""

from typing import Any

from jaxtyping import Array, Key

from genscope.lab import Line, Mean, Plan, Published, Study, within
from genscope.studies._token_training import measure, settings
from genscope.studies.mousavi2025_1str import RATE, points

LENGTHS = [25, 27, 29, 31, 33]
THRESHOLD = 0.02

# Read off Figure 1b, samples.
PUBLISHED = {
    "transformer": (118e3, 168e3, 128e3, 123e3, 140e3),
    "gru": (108e3, 140e3, 148e3, 165e3, 165e3),
    "ffn": (240e3, 310e3, 440e3, 560e3, 630e3),
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
        every=chosen.check_every_simple,
        simple=True,
    )


LABELS = {"context_length": "tokens N", "samples": "samples to test error 0.02"}


def _figure(protocol: str, caption: str, published: bool) -> Line:
    return Line(
        title=f"Samples to test error 0.02 on simple-1STR, protocol of the {'public code' if published else 'text'}",
        caption=caption,
        answer="At {at ffn/transformer} tokens the FFN needs {ratio ffn/transformer} times the Transformer's samples",
        source="mousavi2025, Figure 1b",
        labels=LABELS,
        where={"protocol": protocol},
        x="context_length",
        y=Mean("samples", reached="reached"),
        by="architecture",
        log_y=True,
        published=tuple(
            Published(length, value, f"published {name}", name)
            for name, values in PUBLISHED.items()
            for length, value in zip(LENGTHS, values, strict=True)
            if published
        ),
    )


STUDY = Study(
    name="mousavi2025-simple",
    title="Samples to learn simple 1-sparse token regression",
    source="mousavi2025, Figure 1b",
    trial=trial,
    trial_cost=110.0,
    # The largest N of the paper carries the claim: at 25 the FFN's ratio lies near the limit of the rule. The recurrent
    # networks come first, because one of their runs takes longer than all others together.
    points=(
        *points(["gru"], [33], 1),
        *points(["rnn"], [25], 1),
        *points(["transformer", "ffn"], [33], 4),
        *points(["transformer", "ffn"], [25], 3),
        *points(["transformer"], [25], 1, protocol="text"),
    ),
    budgets={
        "quick": Plan(points(["transformer", "ffn"], [25], 2), trial_cost=25.0),
        "paper": Plan(
            (
                *points(["transformer", "ffn", "rnn"], LENGTHS, 5),
                *points(["gru"], LENGTHS, 1),
                *points(["transformer", "ffn"], LENGTHS, 2, protocol="text"),
                *points(["rnn"], [25], 1, protocol="text"),
            )
        ),
    },
    figures=(
        _figure(
            "code",
            "Geometric means over draws of link and encodings with 95 % intervals; where draws are fewer than four, "
            "each is drawn. Arrows: runs that stopped at their budget. Stars: published values; the published "
            "recurrent network is the GRU of the public code, which has 500 units.",
            True,
        ),
        _figure("text", "The same under the settings of the paper's text.", False),
    ),
    paired=frozenset({"architecture", "protocol"}),
    batch=1,
    check=within(context_length=(2, 200), draw=(0, None), run=(0, None)),
)
