"""Samples to reach test error 0.02 on simple-1STR, where one position answers for the whole prompt.

Source: mousavi2025, Figure 1b, and Appendix E for its settings.
Departures: as in `mousavi2025_1str`; runs may end at the relative threshold (`until`), which takes a fraction of the
samples; the published recurrent curve is compared with both the GRU of the public code and
the simple RNN of the text, each under its own name.
Guarantee: exact up to the screen's probability of missing (`train.screen`); unreached budgets are censored.
"""

from typing import Any

from jaxtyping import Array, Key

from genscope.lab import Plan, Study, within
from genscope.studies._token_protocols import settings
from genscope.studies._token_training import measure
from genscope.studies.mousavi2025_1str import ANSWER, CODE_CAPTION, RATE, read_off, relative_figure, samples_figure
from genscope.studies.mousavi2025_1str import points as _grid

LENGTHS = [25, 27, 29, 31, 33]
THRESHOLD = 0.02
OFTEN = 20  # steps between checks of runs that end at the relative threshold, which some cross at the second hundred

# Read off Figure 1b, samples.
PUBLISHED = {
    "transformer": (118e3, 168e3, 128e3, 123e3, 140e3),
    "gru": (108e3, 140e3, 148e3, 165e3, 165e3),
    "ffn": (240e3, 310e3, 440e3, 560e3, 630e3),
}


def trial(
    key: Key[Array, ""], *, architecture: str, context_length: int, protocol: str, draw: int, run: int, until: str
) -> dict[str, Any]:
    """Train on fresh batches until both thresholds are crossed, or only the relative one."""
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
        every=OFTEN if until == "relative" else chosen.check_every_simple,
        simple=True,
        until=until,
    )


def points(*sizes: Any, until: str = "relative", **options: Any) -> tuple[dict[str, Any], ...]:
    """Points of some architectures at some lengths."""
    return tuple({**point, "until": until} for point in _grid(*sizes, **options))


LABELS = {
    "context_length": "tokens N",
    "samples": "samples to test error 0.02",
    "samples_relative": "samples to 3/4 of the risk without the index",
}


STUDY = Study(
    name="mousavi2025-simple",
    title="Samples to learn simple 1-sparse token regression",
    source="mousavi2025, Figure 1b",
    labels=LABELS,
    trial=trial,
    trial_cost=110.0,
    revision=2,
    # Recurrent networks end at the relative threshold, and come first, because one of their runs takes longest.
    points=(
        *points(["gru", "rnn"], [32], 4),
        *points(["gru", "rnn"], [16, 8], 3),
        *points(["ffn"], [32, 16, 8], 10),  # whose draws of encodings differ most
        *points(["transformer"], [32, 16, 8], 5),
    ),
    budgets={
        "quick": Plan(points(["transformer", "ffn"], [8], 2), trial_cost=5.0),
        "paper": Plan(
            (
                *points(["gru", "rnn"], [33, 32, 25, 16, 8], 5),
                *points(["transformer", "ffn"], [8, 16, 32], 10),
                *points(["transformer", "ffn"], LENGTHS, 5, until="both"),
                *points(["transformer", "ffn"], LENGTHS, 2, protocol="text", until="both"),
                *points(["transformer", "ffn"], [25], 2, protocol="theory", until="both"),
                *points(["gru"], [25], 1, until="both"),
                *points(["rnn"], [25], 1, protocol="text", until="both"),
            )
        ),
    },
    figures=(
        relative_figure(
            "simple-1STR",
            remark="; gru is the public code's recurrent network, rnn the text's",
            source="mousavi2025, Figure 1b and Table 1",
            where={"protocol": "code"},
        ),
        *(
            samples_figure(
                "simple-1STR",
                name,
                caption,
                threshold=THRESHOLD,
                where={"protocol": protocol, "until": "both"},
                answer=ANSWER,
                published=published,
            )
            for protocol, name, caption, published in (
                ("code", "protocol of the public code", CODE_CAPTION, read_off(LENGTHS, PUBLISHED)),
                ("text", "protocol of the text", "The same under the settings of Appendix E.", ()),
                ("theory", "networks of the theory", "The same with the networks of the theorems.", ()),
            )
        ),
    ),
    paired=frozenset({"architecture", "protocol", "until"}),
    batch=1,
    check=within(context_length=(2, 200), draw=(0, None), run=(0, None)),
)
