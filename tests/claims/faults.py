"""What can be planted: for each claim something broken at its source, and the least size at which its rule sees it.

A fault replaces what a study computes (a model, a bound, labels); then the study runs and the claim's rule decides.
Sizes are far below those of the budgets: a control without the fault, at the same size, must not fail.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.claims import _token_runs, edelman2022_restarts
from genscope.claims import lintilhac2026_attention as claim_c6
from genscope.constructions._fourier_closed_forms import GRADIENT_PARTS, Gradients
from genscope.lab import Plan, grid
from genscope.lab.statistics.threshold import Search
from genscope.precision import float64
from genscope.studies import (
    _bit_training,
    _token_training,
    edelman2022_and,
    edelman2022_and_restarts,
    edelman2022_attention,
    edelman2022_capacity,
    edelman2022_constructions,
    edelman2022_curves,
    edelman2022_lipschitz,
    edelman2022_parity,
    lintilhac2026_attention,
    lintilhac2026_bounds,
    lintilhac2026_chain_bounds,
    lintilhac2026_constructions,
    lintilhac2026_gap,
    lintilhac2026_norms,
    lintilhac2026_probes,
    lintilhac2026_tilings,
    mousavi2025_1str,
    mousavi2025_block,
    mousavi2025_constructions,
    mousavi2025_ffn_adamw,
    mousavi2025_ffn_trained,
    mousavi2025_lower,
    mousavi2025_recurrent_norms,
    mousavi2025_simple,
    mousavi2025_sparsity,
)

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Fault:
    """What is broken, in words; how; and one plan for each study of the claim (None: it is left out)."""

    words: str
    plant: Callable[[Patch], None]
    plans: Sequence[Plan | None]
    prepare: Callable[[Patch], None] = lambda patch: None  # for the control too
    slow: bool = False


def _wrap(patch: Patch, module: object, name: str, change: Callable[..., object]) -> None:
    """Replace a function of a module by `change(function, *arguments, **options)`."""
    true = getattr(module, name)
    patch.setattr(module, name, lambda *arguments, **options: change(true, *arguments, **options))


def _halved_constant(patch: Patch) -> None:
    def weaker(true, case, *, softmax_constant):
        return true(case, softmax_constant=softmax_constant / 2)

    _wrap(patch, edelman2022_lipschitz, "head_ratio", weaker)


def _squared_logarithm(patch: Patch) -> None:
    true, norms = edelman2022_capacity.BOUNDS["head"]

    def faster(*, points, **options):
        bound = true(points=points, **options)
        return dataclasses.replace(bound, terms={name: math.log(points) * term for name, term in bound.terms.items()})

    patch.setitem(edelman2022_capacity.BOUNDS, "head", (faster, norms))


def _blunt_head(patch: Patch) -> None:
    true = edelman2022_constructions.BUILDERS["any"]

    def blunt(*arguments, **options):
        built = true(*arguments, **options)
        with float64():
            model = eqx.tree_at(lambda m: m.heads.heads[0].w_q, built.model, replace_fn=lambda w: w / 8)
        return dataclasses.replace(built, model=model)

    patch.setitem(edelman2022_constructions.BUILDERS, "any", blunt)


def _learner(right: Callable[..., np.ndarray]) -> Callable[[Patch], None]:
    """A learner without training; `right(x, y, fresh)` predicts the labels of fresh strings from a sample."""

    def learn(*, data_key, context_length, sample_size, **_):
        generator = np.random.default_rng(np.asarray(jr.key_data(data_key)))
        x = generator.random((sample_size + 1_000, context_length)) < 0.5 ** (1 / 3)  # balanced labels, as in the task
        y = x[:, :3].all(axis=1)
        predicted = right(x[:sample_size], y[:sample_size], x[sample_size:])
        return {"success": bool((predicted == y[sample_size:]).mean() > 0.95)}

    def learn_often(**options):
        found = learn(**options)
        return {**found, "share": float(found["success"])}

    def plant(patch: Patch) -> None:
        patch.setattr(edelman2022_and, "learn_and", learn)
        patch.setattr(edelman2022_and_restarts, "learn_with_restarts", learn_often)

    return plant


def _eliminate(x, y, fresh):
    """The AND of all bits that are 1 in every positive example."""
    return fresh[:, x[y].all(axis=0)].all(axis=1)


def _correlated(x, y, fresh):
    """The AND of the three bits that agree best with the label."""
    return fresh[:, np.argsort(-(x == y[:, None]).mean(axis=0), kind="stable")[:3]].all(axis=1)


def _short_contexts(patch: Patch) -> None:
    """The learner that holds, and contexts that are long enough for A9 at 90 bits."""
    _learner(_correlated)(patch)
    patch.setattr(edelman2022_restarts, "LONGEST", 90)


def _least_squares(x, y, fresh):
    padded, asked = (np.hstack([part, np.ones((len(part), 1))]) for part in (x, fresh))
    return asked @ np.linalg.lstsq(padded, y.astype(float))[0] > 0.5


def _shuffled_sample(patch: Patch) -> None:
    _wrap(patch, edelman2022_curves, "train", lambda true, *args, **kw: true(*args, **kw, shuffle_labels=True))


def _untrained_head(patch: Patch) -> None:
    def before(true, model, x):
        start = _bit_training.initial_model(jr.key(0), x.shape[1], _bit_training.PRESETS["tuned"].initialisation)
        return true(start, x)

    _wrap(patch, edelman2022_attention, "cls_attention", before)


def _shuffled_batches(patch: Patch) -> None:
    true = edelman2022_parity.logistic
    wrong = dataclasses.replace(true, each=lambda outputs, y: true.each(outputs, jnp.roll(y, 1, axis=0)))
    patch.setattr(edelman2022_parity, "logistic", wrong)


def _blunt_heads(patch: Patch) -> None:
    def blunt(true, *arguments, **options):
        built = true(*arguments, **options)
        with float64():
            model = eqx.tree_at(lambda m: m.w_qk, built.model, replace_fn=lambda w: w / 2)
        return dataclasses.replace(built, model=model)

    _wrap(patch, mousavi2025_constructions, "token_retrieval", blunt)


def _bound_of_fewer_heads(patch: Patch) -> None:
    def fewer(true, *, heads, **options):
        return true(heads=heads - 1, **options)

    _wrap(patch, mousavi2025_lower, "heads_lower", fewer)


def _narrow_network(patch: Patch) -> None:
    def narrow(true, task, *, token_range, gap):
        built = true(task, token_range=token_range / 8, gap=gap)
        return dataclasses.replace(built, token_norm=8 * built.token_norm)

    _wrap(patch, mousavi2025_constructions, "recurrent_retrieval", narrow)


def _other_threshold(module: object, wrongly: Callable[[dict], bool], share: float) -> Callable[[Patch], None]:
    """Some runs are held to another share of the risk without the index."""

    def otherwise(true, key, **options):
        with pytest.MonkeyPatch.context() as patch:
            if wrongly(options):
                patch.setattr(_token_training, "RELATIVE", share)
            return true(key, **options)

    return lambda patch: _wrap(patch, module, "measure", otherwise)


FIRST = 99.0  # times the risk without the index: the first test passes


def _short_training(patch: Patch) -> None:
    patch.setattr(mousavi2025_block, "MOST", 1_500)  # steps after which a run is over


def _short_prompts(patch: Patch) -> None:
    patch.setattr(_token_runs, "SHORTEST", 2)


def _two_tokens(patch: Patch) -> None:
    """A task that networks learn in seconds."""
    patch.setattr(mousavi2025_sparsity, "CONTEXT_LENGTH", 2)
    patch.setattr(mousavi2025_sparsity, "RATE", 1e-3)


def _best_of_its_sample(patch: Patch) -> None:
    _wrap(patch, mousavi2025_ffn_adamw, "span_risk", lambda true, *arguments: 2.0)


def _one_encoding_for_all(patch: Patch) -> None:
    def alike(true, *arguments):
        task, model = true(*arguments)
        same = jnp.broadcast_to(task.encoding[:1], task.encoding.shape)
        return eqx.tree_at(lambda t: t.encoding, task, same), model

    _wrap(patch, mousavi2025_block, "_draw", alike)


def _blunt_attention(patch: Patch) -> None:
    def blunt(true, *arguments, **options):
        built = true(*arguments, **options)
        with float64():  # the model is a cached property, which `replace` would make again
            built.__dict__["model"] = eqx.tree_at(lambda m: m.key, built.model, replace_fn=lambda w: w / 2)
        return built

    _wrap(patch, lintilhac2026_constructions, "fourier_components", blunt)


def _printed_theorem(patch: Patch) -> None:
    kept = np.array([block != "F_pos" for block, _ in GRADIENT_PARTS.values()])
    patch.setattr(Gradients, "mean", property(lambda gradients: np.where(kept, gradients._moments[0], 0)))


def _degrees_upside_down(patch: Patch) -> None:
    _wrap(patch, lintilhac2026_gap, "train", lambda true, key, *, degree, **rest: true(key, degree=4 - degree, **rest))


def _tuned_for_full(patch: Patch) -> None:
    def tuned(true, function, *, variant, **options):
        return true(function, variant="tuned", **options)

    _wrap(patch, lintilhac2026_norms, "fourier_components", tuned)


def _wider_noise(patch: Patch) -> None:
    def wider(true, built, sigmas, key):
        return true(built, [10 * sigma for sigma in sigmas], key)

    _wrap(patch, lintilhac2026_bounds, "_perturbed", wider)


def _given_for_fitted(patch: Patch) -> None:
    patch.setattr(lintilhac2026_bounds, "fitted_constant", lambda losses: 0.1)


def _few_runs(patch: Patch) -> None:
    patch.setattr(claim_c6, "RUNS", 10)  # 0 of 10 are below one half at the corrected level


def _one_column_off(patch: Patch) -> None:
    _wrap(patch, lintilhac2026_attention, "_positions", lambda true, model: np.roll(true(model), 1, axis=1))


def _risk_for_confidence(patch: Patch) -> None:
    def risk(true, *, reading, sigma, **options):
        found = true(reading="risk", sigma=None, **options)
        return found if reading == "risk" else dataclasses.replace(found, terms={"log": math.log(found.value)})

    _wrap(patch, lintilhac2026_chain_bounds, "parity_chain", risk)


def _merging_restrictions(patch: Patch) -> None:
    def coordinates(true, oracle, *, rng, max_sparsity, **options):
        sizes = {"rows": lintilhac2026_probes.ROWS, "repeats": lintilhac2026_probes.REPEATS}
        return true(oracle, rng=rng, max_sparsity=max_sparsity, **{"kind": "coordinate", **sizes, **options})

    _wrap(patch, lintilhac2026_probes, "find_sparsity", coordinates)


def _untuned(patch: Patch) -> None:
    def full(true, context_length, degree, variant, seed):
        return true(context_length, degree, "full", seed)

    _wrap(patch, lintilhac2026_tilings, "_built", full)


def _points(study, **where) -> list:
    """Points of a study's quick plan with the given values."""
    return [p for p in study.plan("quick").points if all(p[axis] == value for axis, value in where.items())]


_SIMPLE = {"context_length": [3], "protocol": ["code"], "draw": [0, 1, 2], "run": [0], "until": ["relative"]}
_TOKENS = {"protocol": ["code"], "draw": [0, 1, 2], "run": [0]}


def _own_token(patch: Patch) -> None:
    def asked(true, self, key, size):
        x = true(self, key, size)
        return x | {"t": x["j"]}

    _wrap(patch, mousavi2025_recurrent_norms.Prompts, "inputs", asked)


def _no_decay(patch: Patch) -> None:
    _wrap(patch, mousavi2025_ffn_trained, "Regularised", lambda true, objective, decay: true(objective, 1e-9 * decay))


FAULTS = {
    "A1": Fault(
        "the constant of the softmax halved",
        _halved_constant,
        [Plan(grid(inequality=["head"], sigma=["identity"], context_length=[4], starts=[16], steps=[150]))],
        slow=True,
    ),
    "A2": Fault(
        "a bound for one head that grows like log² T",
        _squared_logarithm,
        [Plan(_points(edelman2022_capacity.STUDY, bound="head"))],
    ),
    "A3": Fault(
        "heads an eighth as sharp as the proof asks for",
        _blunt_head,
        [Plan(_points(edelman2022_constructions.STUDY, construction="any", context_length=12))],
    ),
    "A4": Fault(
        "least squares in place of a learner that looks for three bits",
        _learner(_least_squares),
        [
            Plan(
                grid(context_length=[10, 30, 90], preset=["tuned"]),
                search=Search(lowest=10, highest=5_000, start=100, width=0.1, trials=64, batch=16, round=32),
            )
        ],
        prepare=_learner(_eliminate),
    ),
    "A5": Fault(
        "shuffled labels",
        _shuffled_sample,
        [Plan(grid(context_length=[20], sample_size=[200], preset=["minGPT"]), seeds=8)],
        slow=True,
    ),
    "A6": Fault(
        "the attention of an untrained network",
        _untrained_head,
        [Plan(grid(context_length=[31], sample_size=[300], preset=["tuned"]), seeds=12)],
        slow=True,
    ),
    "A7": Fault(
        "shuffled labels in every batch",
        _shuffled_batches,
        [Plan(grid(context_length=[4], rate=[3e-4], budget=[1_000]), seeds=10)],
        slow=True,
    ),
    **{
        name: Fault(
            f"least squares in place of restarts{words}",
            _learner(_least_squares),
            [
                Plan(
                    grid(context_length=lengths, preset=["tuned"]),
                    search=Search(lowest=10, highest=5_000, start=60, width=0.1, trials=240, batch=16, round=48),
                )
                for lengths in ([10, 30], [90])
            ],
            prepare=_short_contexts,
        )
        for name, words in (("A8", ""), ("A9", ", and of single runs"))
    },
    "B1": Fault(
        "query-key matrices half as large as the lemma's",
        _blunt_heads,
        [Plan(_points(mousavi2025_constructions.TOKENS, context_length=8))],
    ),
    "B2": Fault(
        "the bound for one head fewer",
        _bound_of_fewer_heads,
        [Plan(_points(mousavi2025_lower.HEADS, family="retrieval", dim=1)[1:])],
    ),
    "B3": Fault(
        "gates for tokens of an eighth of the range",
        _narrow_network,
        [Plan(_points(mousavi2025_constructions.RECURRENT, context_length=8, sparsity=1))],
    ),
    "B4": Fault(
        "the best in the span taken for twice as bad as predicting 0",
        _best_of_its_sample,
        [
            Plan(_points(mousavi2025_lower.FEEDFORWARD, dim=4)),
            Plan(_points(mousavi2025_ffn_adamw.STUDY, sample_size=10), seeds=4),
        ],
    ),
    "B5": Fault(
        "the FFN stops at its first test, whatever its error",
        _other_threshold(mousavi2025_1str, lambda options: options["architecture"] == "ffn", FIRST),
        [Plan(grid(architecture=["transformer", "ffn"], context_length=[8], **_TOKENS))],
        slow=True,
    ),
    "B6": Fault(
        "the Transformer stops at its first test, whatever its error",
        _other_threshold(mousavi2025_simple, lambda options: options["architecture"] == "transformer", FIRST),
        [Plan(grid(architecture=["transformer", "rnn"], **_SIMPLE))],
        slow=True,
    ),
    "B7": Fault(
        "one encoding for all positions",
        _one_encoding_for_all,
        [Plan(grid(context_length=[6], protocol=["code"], steps=[1_500]))],
        prepare=_short_training,
        slow=True,
    ),
    "B8": Fault(
        "the FFN at the larger q stops at its first test, whatever its error",
        _other_threshold(
            mousavi2025_sparsity, lambda options: options["architecture"] == "ffn" and options["sparsity"] == 2, FIRST
        ),
        [
            Plan(
                grid(
                    architecture=["transformer", "ffn"],
                    sparsity=[1, 2],
                    protocol=["code"],
                    draw=[1, 2, 3, 4],  # draw 0 is one that neither network learns
                    until=["both"],
                )
            )
        ],
        prepare=_two_tokens,
        slow=True,
    ),
    "B9": Fault(
        "training without weight decay",
        _no_decay,
        [Plan(grid(network=["indexed"], decay=[0.7], sample_size=[4, 8]), seeds=2)],
    ),
    "B10": Fault(
        "every position asks for its own token, which no state has to keep",
        _own_token,
        [Plan(grid(network=["general", "fit"], context_length=[3]), seeds=10)],
        slow=True,
    ),
    "B11": Fault(
        "the FFN stops at its first test, whatever its error",
        _other_threshold(mousavi2025_1str, lambda options: options["architecture"] == "ffn", FIRST),
        [Plan(grid(architecture=["ffn"], context_length=[2, 4, 6], **_TOKENS)), None],
        prepare=_short_prompts,
        slow=True,
    ),
    "C1": Fault(
        "attention half as sharp",
        _blunt_attention,
        [Plan(_points(lintilhac2026_constructions.CUBES, context_length=6))],
    ),
    "C2": Fault(
        "Theorem 14 as printed, without the rows of F that write positions",
        _printed_theorem,
        [Plan(grid(case=["G1"], variant=["full"], method=["gradients"]))],
    ),
    "C3": Fault(
        "degrees upside down: 3 trained as 1, and 1 as 3",
        _degrees_upside_down,
        [Plan([p for d in (1, 3) for p in _points(lintilhac2026_gap.STUDY, degree=d, sparsity=2)], seeds=6)],
        slow=True,
    ),
    "C4": Fault(
        "tuned weights in place of the paper's",
        _tuned_for_full,
        [Plan(_points(lintilhac2026_norms.STUDY, degree=1, sparsity=2))],
        slow=True,
    ),
    "C5": Fault(
        "noise ten times as wide as the bound's",
        _wider_noise,
        [
            Plan(grid(context_length=[6], sample_size=[8192], degree=[3], sparsity=[2], constant=["0.1"], steps=[128])),
            None,
        ],
    ),
    "C6": Fault(
        "the score matrix read one column off",
        _one_column_off,
        [Plan(_points(lintilhac2026_attention.STUDY, context_length=20, degree=2), seeds=12)],
        prepare=_few_runs,
        slow=True,
    ),
    "C7": Fault(
        "the chance of a wrong answer taken for the chance of a bad sample",
        _risk_for_confidence,
        [Plan(_points(lintilhac2026_chain_bounds.STUDY))],
    ),
    "C8": Fault(
        "restrictions to coordinates, in which components merge",
        _merging_restrictions,
        [Plan(_points(lintilhac2026_probes.STUDY, restriction="affine", sparsity=20))],
    ),
    "C9": Fault(
        "the paper's weights in place of the tuned",
        _untuned,
        [Plan(_points(lintilhac2026_tilings.STUDY, sample_size=10**8, constant=0.1))],
    ),
    "C10": Fault(
        "C = 0.1 in place of the fitted",
        _given_for_fitted,
        [
            Plan(
                grid(
                    context_length=[20],
                    sample_size=[8192],
                    degree=[1],
                    sparsity=[2],
                    constant=["fitted"],
                    steps=[1_280],
                )
            )
        ],
        slow=True,
    ),
}
