"""A question equal to `edelman2022-and` at T = 200, trial by trial: what `genscope learn` costs beside the study.

Both train the one-layer classifier on the same number of samples of a 3-sparse AND with balanced labels; the study
draws ambiguous samples again and a question does not. Programs are compiled before, and the order alternates. The
wanted ratio is at most 1.1.
"""

import statistics
import time

from benchmarks._timing import show
from genscope.lab.execution.one_thread import one_thread
from genscope.questions.question import ask
from genscope.questions.trial import run_trial
from genscope.random import derived, root, stream
from genscope.studies import edelman2022_and

LENGTH, SIZE, TRIALS = 200, 77, 24


def main() -> None:
    question = ask("x0&x1&x2")
    key = stream(root(0), "benchmark of learn")

    def by_study(seed: int) -> int:
        found = edelman2022_and.trial(derived(key, seed), context_length=LENGTH, sample_size=SIZE, preset="tuned")
        return found["steps"]

    def by_question(seed: int) -> int:
        found = run_trial(question, derived(key, seed), context_length=LENGTH, network="transformer", sample_size=SIZE)
        return found["steps"]

    took: dict[str, list[tuple[float, int]]] = {"study": [], "question": []}
    with one_thread():
        for run in (by_study, by_question):
            run(TRIALS)  # compiles
        for seed in range(TRIALS):
            for name, run in (("study", by_study), ("question", by_question))[:: 1 if seed % 2 else -1]:
                start = time.process_time()
                steps = run(seed)
                took[name].append((time.process_time() - start, steps))
    trial, step = (
        {name: statistics.median(each(*pair) for pair in pairs) for name, pairs in took.items()}
        for each in (lambda seconds, steps: seconds, lambda seconds, steps: seconds / steps)
    )
    rows = {
        "ms per trial, study": 1000 * trial["study"],
        "ms per trial, question": 1000 * trial["question"],
        "question over study, per trial": trial["question"] / trial["study"],
        "question over study, per step": step["question"] / step["study"],
    }
    show(f"learn: sparse AND, T = {LENGTH}, {SIZE} samples, {TRIALS} trials, CPU time", rows)


if __name__ == "__main__":
    main()
