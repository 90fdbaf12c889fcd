"""Above and below the threshold: accuracy curves at m = 200 and m = 50 for T = 300.

Source: edelman2022, Figure 3 (left).
Departures: 120 instances drawn in advance instead of one (200 at the standard budget); the minGPT preset, since the
tuned one generalizes on many instances at m = 50; a run ends when it has fitted and generalized, or has nothing left to
learn, and generalizing means 100 % at some evaluation.
Guarantee: whether a run generalizes is exact on 10,000 held-out examples; an accuracy below 100 % is that of the first
500 of them if one of these is wrong, since most evaluations end there.
"""

from typing import Any

from jaxtyping import Array, Key

from genscope.lab import Curves, Plan, Study, grid, within
from genscope.random import stream
from genscope.studies._bit_training import draw_and, summary, train


def trial(key: Key[Array, ""], *, context_length: int, sample_size: int, preset: str) -> dict[str, Any]:
    """Train until nothing is left to see, writing down training and validation accuracy every ten steps.

    The curve of the validation accuracy is on 500 held-out examples, and on all 10,000 where these are right;
    `validation_accuracy`, the last network's, is on all of them.
    """
    steps_seen: list[int] = []
    held_out: list[float] = []
    training: list[float] = []

    def record(progress, drawn, validation) -> bool:
        model = progress.model
        steps_seen.append(progress.steps)
        screened = validation.screen(model)
        held_out.append(validation.accuracy(model) if screened == 1 else screened)
        training.append(validation.accuracy_on(model, drawn.batch))
        return max(held_out) == max(training) == 1

    run = train(
        draw_and(stream(key, "support"), context_length=context_length, sample_size=sample_size),
        sample_size=sample_size,
        preset=preset,
        init_key=stream(key, "init"),
        data_key=stream(key, f"data {sample_size}"),
        stop=record,
    )
    perfect = held_out[-1:] == [1.0] and not run.fit.diverged
    return summary(run, success=max(held_out, default=0.0) == 1, perfect=perfect) | {
        "fitted": max(training, default=0.0) == 1,
        "curve_steps": steps_seen,
        "validation_curve": held_out,
        "training_curve": training,
    }


STUDY = Study(
    name="edelman2022-curves",
    title="Above and below the threshold",
    source="edelman2022, Figure 3 (left)",
    trial=trial,
    points=grid(context_length=[300], sample_size=[50, 200], preset=["minGPT"]),
    seeds=200,
    budgets={
        "quick": Plan(grid(context_length=[300], sample_size=[50, 200], preset=["minGPT"]), seeds=120),
        "paper": Plan(grid(context_length=[300], sample_size=[50, 70, 200], preset=["minGPT", "tuned"]), seeds=200),
    },
    figures=(
        Curves(
            title="Training and validation accuracy, T = 300",
            answer=(
                "The median run ends with a held-out accuracy of {median validation 200} from 200 samples, and of "
                "{median validation 50} from 50"
            ),
            caption=(
                "Accuracy against the training step: one thin line per instance, the median bold. A run ends once it "
                "has reached 100 % in both. Validation is on 500 examples, and on 10,000 where all of these are right."
            ),
            labels={
                "curve_steps": "training step",
                "sample_size": "samples m",
                "validation_curve": "validation",
                "training_curve": "training",
            },
            where={"preset": "minGPT", "sample_size": [50, 200]},
            x="curve_steps",
            y=("validation_curve", "training_curve"),
            quantity="accuracy",
            facet="sample_size",
        ),
    ),
    paired=frozenset({"sample_size", "preset"}),
    revision=5,
    check=within(context_length=(3, 1_000_000), sample_size=(1, 100_000)),
)
