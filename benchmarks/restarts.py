"""Six runs on one sample, stacked over the shared bits, against one run: T = 800, m = 75, equal numbers of steps.

One run is that of `edelman2022-and`, whose samples come in blocks of 64 rows at such contexts; the stack is that of
`edelman2022-and-restarts`, padded to 80. Beside it the same with equal rows, which is the gain of stacking alone, and
how many runs and steps a trial takes, which ends once two of its runs agree.
"""

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from benchmarks._timing import cpu_seconds, show
from genscope.models.bit_classifier import TUNED
from genscope.models.bit_classifier_fast import outputs_of_indicators
from genscope.models.bit_classifier_stack import member, stack
from genscope.models.bit_classifier_stack import outputs_of_indicators as outputs_of_stack
from genscope.random import stream
from genscope.studies._bit_restarts import RUNS, SHAPE, train_restarts
from genscope.studies._bit_training import ROWS, padded_examples, source
from genscope.tasks import Batch, SparseAnd
from genscope.train import Risk, Together, Whole, adam, fit, logistic
from genscope.train.padding import padded_size
from genscope.train.sources import AbstractSource

LENGTH, SIZE, STEPS = 800, 75, 60


def main() -> None:
    key = jr.key(0)
    task = SparseAnd.draw(stream(key, "support"), context_length=LENGTH, support_size=3)
    drawn = task.sample(stream(key, "data"), SIZE)
    sample = Batch(drawn.x, drawn.y)
    models = stack(LENGTH, jr.split(key, RUNS), initialisation=TUNED)
    optimizer = adam(1e-3, epsilon=1e-5)

    together = padded_size(SIZE, smallest=SHAPE)
    shared = Whole(padded_examples(sample, together))

    def one(examples: AbstractSource):
        objective = Risk(logistic, outputs_of_indicators)
        return lambda: fit(member(models, 0), examples, objective, STEPS, optimizer=optimizer)

    def all_of_them():
        return fit(models, shared, Together(logistic, outputs_of_stack), STEPS, optimizer=optimizer)

    single, stacked, equal = cpu_seconds(one(source(sample, LENGTH)), all_of_them, one(shared))
    found = train_restarts(
        task, sample_size=SIZE, preset="tuned", init_key=stream(key, "init"), data_key=stream(key, "d")
    )
    show(
        f"restarts: {RUNS} runs on one sample, T = {LENGTH}, m = {SIZE}, {STEPS} steps",
        {
            f"one run, {-(-SIZE // ROWS)} blocks of {ROWS} rows: CPU ms per step": 1e3 * single / STEPS,
            f"{RUNS} runs, {together} rows: CPU ms per step": 1e3 * stacked / STEPS,
            "ratio (at most 4.5 is wanted)": stacked / single,
            f"ratio to one run with {together} rows": stacked / equal,
            "runs of a trial that ends once two agree": len(found.right),
            "steps of these, two at a time": sum(each.steps for each in found.fits),
            "share of zeros among the rows of the stack": float(np.mean(np.asarray(jnp.arange(together) >= SIZE))),
        },
    )


if __name__ == "__main__":
    main()
