"""What the experiments of EGKZ22 share: presets, and one training run of the classifier on a sparse function of bits.

Source: edelman2022, Section 6 (experiments); sizes and scales are recalled from the paper, not in the texts we have.
Departures: the preset "tuned" is ours (docs/decisions.md); "minGPT" has the paper's scale of 0.02 everywhere; "paper"
adds the dropout and decay of a public replication, and is trained in the plain form, at short contexts alone;
"decayed" is "tuned" with a decay of the position embeddings (docs/claims.md says what else was tried).
Guarantee: exact; support, initialization, training data and validation data come from separate streams.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from genscope.compilation import ONCE, jit
from genscope.models.bit_classifier import MINGPT, TUNED, BitClassifier, Initialisation, dropout
from genscope.models.bit_classifier_fast import indicators, outputs_of_indicators, table
from genscope.random import numbered, stream
from genscope.refusal import Refusal
from genscope.tasks import AbstractSparseBoolean, Batch, SparseAnd
from genscope.tasks.uniqueness import UniqueDraw, draw_any, draw_unique
from genscope.train import Chunks, Fit, Floor, Optimizer, Risk, TrainingState, Validation, Whole, adam, fit, logistic
from genscope.train.loss import weighted_mean
from genscope.train.objective import AbstractObjective
from genscope.train.padding import example_weights, padded_size


@dataclass(frozen=True)
class Preset:
    """Initialization, optimizer and the most steps of a training run."""

    initialisation: Initialisation
    epsilon: float = 1e-8
    steps: int = 600
    dropout: float = 0.0  # of attention, attention output and MLP
    decay: float = 0.0  # λ of λ/2 times the squares of all parameters, which is added to the loss
    position_decay: float = 0.0  # λ of λ times the squares of the position embeddings, which is added to the loss
    gives_up: bool = True  # where the training loss is below a floor

    @property
    def optimizer(self) -> Optimizer:
        """Adam at the rate of all presets."""
        return adam(1e-3, epsilon=self.epsilon)


# Gradients of position embeddings are of order 1/T; with the larger epsilon they move in proportion to what they say
# (docs/decisions.md).
FLOOR = 0.003  # nats; a run that fits its sample this well has no gradient left to change its mind
PRESETS = {
    "tuned": Preset(TUNED, epsilon=1e-5),
    "decayed": Preset(TUNED, epsilon=1e-5, position_decay=0.01),
    "minGPT": Preset(MINGPT),
    # Known from a public replication: width, heads, rate, decay, dropout and its places. Recalled: the scale of 0.02.
    # Guessed: decay of all parameters by the loss (as PyTorch's Adam does), full batches, positions that start at 0.02
    # (minGPT started them at 0 before October 2021), and the number of steps.
    "paper": Preset(MINGPT, steps=3000, dropout=0.1, decay=1e-4, gives_up=False),
}
PLAIN = 1000  # context length up to which the plain form is trained: each step keeps m·T·d numbers several times


def settings(preset: str) -> Preset:
    """The preset of that name."""
    if preset not in PRESETS:
        raise Refusal(f"got {preset=}: presets are {', '.join(PRESETS)}. Choose one of them.")
    return PRESETS[preset]


class Dropped(AbstractObjective):
    """The mean logistic loss under dropout, one mask for each example and step, and decay; by the plain form."""

    rate: float
    decay: float

    def losses(self, model, batch):
        """Of each example, without dropout."""
        return logistic(outputs_of_indicators(model, batch.x), batch.y)

    def __call__(self, model, batch, key):
        """The loss of one draw of the masks; the mean loss without decay is recorded."""
        assert key is not None  # `train` gives its source one
        keys = numbered(stream(key, "dropout"), jnp.arange(len(batch.y), dtype="uint32"))
        bits = batch.x[:, batch.x.shape[1] // 2 :] > 0

        @jax.checkpoint  # so that a derivative keeps no tokens
        def output(x, key):
            return model.activations(x, dropout(key, self.rate)).output

        mean = weighted_mean(logistic(jax.vmap(output)(bits, keys), batch.y), batch.weight)
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))
        return mean + self.decay / 2 * squares, {logistic.name: mean}


class PositionDecay(AbstractObjective):
    """A risk and a decay of the position embeddings, which holds those of irrelevant bits near 0."""

    risk: Risk
    decay: float

    def losses(self, model, batch):
        """Of each example, without decay."""
        return self.risk.losses(model, batch)

    def __call__(self, model, batch, key):
        """The sum of both."""
        mean, recorded = self.risk(model, batch, key)
        return mean + self.decay * jnp.sum(model.position**2), recorded


def predict_bits(model: BitClassifier, x: Array) -> Array:
    """Logits of a batch of bit strings."""
    return model.outputs(x)


@partial(jit, static_argnums=(1, 2), compiler_options=ONCE)
def initial_model(key: Key[Array, ""], context_length: int, initialisation: Initialisation) -> BitClassifier:
    """A classifier of the paper's size: d = 64 with 16 heads."""
    return BitClassifier(context_length, initialisation=initialisation, key=key)


class BitRun(NamedTuple):
    """A training run and the data it saw."""

    fit: Fit[BitClassifier]
    drawn: UniqueDraw
    validation: Validation

    @property
    def model(self) -> BitClassifier:
        """The trained classifier."""
        return self.fit.model


DRAWN = 500  # examples drawn at once, of which a sample keeps the first: one compiled draw for all sizes
CHEAP = 1000  # context length up to which a step costs little beside a compilation
ROWS = 64  # examples that a step takes at a time up to there


def source(examples: Batch, context_length: int) -> Chunks | Whole:
    """A sample for training: one program for most sizes where steps are cheap, few idle rows where they are not."""
    size = len(examples.y)
    if context_length > CHEAP:
        return Whole(padded_examples(examples, padded_size(size)))
    bits = np.asarray(examples.x)
    tokens = np.concatenate([~bits, bits], axis=1).astype(np.float32)
    return Chunks.of(Batch(tokens, examples.y), ROWS, padded_size(size, smallest=512, steps=1))


def padded_examples(examples: Batch, rows: int) -> Batch:
    """The examples as the network reads them, and others of weight 0."""
    x, y = np.asarray(examples.x), np.asarray(examples.y)
    padding = rows - len(y)
    x = _indicators(jnp.asarray(np.pad(x, ((0, padding), (0, 0)))))
    return Batch(x, jnp.asarray(np.pad(y, (0, padding))), jnp.asarray(example_weights(len(y), rows)))


def train(
    task: AbstractSparseBoolean,
    *,
    sample_size: int,
    preset: str,
    init_key: Key[Array, ""],
    data_key: Key[Array, ""],
    stop: Callable[[TrainingState, UniqueDraw, Validation], bool],
    floor: float = FLOOR,
    unique: bool = True,
    shuffle_labels: bool = False,
) -> BitRun:
    """Draw a training set that identifies the support and fit the classifier to it, full batch.

    `stop(progress, training set, validation)` is asked every ten steps; a training loss below `floor` ends the run.
    Unless `unique`, nobody looks whether the training set identifies the support, and `identified` is false.
    `shuffle_labels` plants a fault: the labels are permuted, and whatever is learned then must not count as success.
    """
    chosen = settings(preset)
    drawing = draw_unique if unique else draw_any
    drawn = drawing(stream(data_key, "training"), task, sample_size, capacity=max(DRAWN, sample_size))
    validation = Validation(task, key=stream(data_key, "validation"), predict=predict_bits)
    if shuffle_labels:
        permuted = jr.permutation(stream(data_key, "shuffle"), drawn.batch.y)
        drawn = drawn._replace(batch=Batch(drawn.batch.x, permuted))
    plain = chosen.dropout > 0 or chosen.decay > 0
    if plain and task.context_length > PLAIN:
        raise Refusal(
            f"got {preset=} with context_length={task.context_length}: dropout needs the plain form, which is trained "
            f"up to {PLAIN:,} bits. Shorten the context, or choose the preset tuned or minGPT."
        )
    if plain:
        dropping = stream(init_key, "dropout")
        examples = Whole(padded_examples(drawn.batch, padded_size(sample_size)), dropping)
        objective = Dropped(chosen.dropout, chosen.decay)
    else:
        examples, objective = source(drawn.batch, task.context_length), Risk(logistic, outputs_of_indicators)
        if chosen.position_decay:
            objective = PositionDecay(objective, chosen.position_decay)
    fitted = fit(
        initial_model(init_key, task.context_length, chosen.initialisation),
        examples,
        objective,
        until=(
            chosen.steps,
            lambda progress: stop(progress, drawn, validation),
            *([Floor(floor)] if chosen.gives_up else []),
        ),
        optimizer=chosen.optimizer,
    )
    return BitRun(fitted, drawn, validation)


_indicators = jax.jit(indicators)


@jax.jit
def _score_range(model: BitClassifier) -> Array:
    """How far the scores of the widest head stretch beyond what every example reaches."""
    top, floor = table(model).limits()
    return jnp.max(top - floor)


def summary(run: BitRun, *, success: bool, perfect: bool = False) -> dict[str, Any]:
    """What every record of these studies says about its run.

    `validation_accuracy` is that of the last model on all held-out examples; `perfect` says that it was found to be 1
    already. `success` may have come earlier in the run.
    """
    return {
        "success": success,
        "steps": run.fit.steps,
        "training_loss": run.fit.loss,
        "training_accuracy": run.validation.accuracy_on(run.model, run.drawn.batch),
        "validation_accuracy": 1.0 if perfect else run.validation.accuracy(run.model),
        "diverged": run.fit.diverged,
        "rejected_draws": run.drawn.rejected,
        "identified": run.drawn.identified,
        "score_range": float(_score_range(run.model)),
    }


def draw_and(key: Key[Array, ""], *, context_length: int, sample_size: int, support_size: int = 3) -> SparseAnd:
    """A sparse AND on a uniform support, once the sizes make sense."""
    if sample_size < 1:
        raise Refusal(f"got {sample_size=}: a training set holds at least one example. Give 1 or more.")
    return SparseAnd.draw(key, context_length=context_length, support_size=support_size)
