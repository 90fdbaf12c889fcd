"""What is broken for each claim of mousavi2025, and the least size at which its rule sees it."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import pytest

from genscope.claims import _token_runs
from genscope.lab import Plan, grid
from genscope.precision import float64
from genscope.studies import (
    _token_training,
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
from tests.claims.faults._base import Fault, Patch, points, wrap


def _blunt_heads(patch: Patch) -> None:
    def blunt(true, *arguments, **options):
        built = true(*arguments, **options)
        with float64():
            model = eqx.tree_at(lambda m: m.w_qk, built.model, replace_fn=lambda w: w / 2)
        return dataclasses.replace(built, model=model)

    wrap(patch, mousavi2025_constructions, "token_retrieval", blunt)


def _bound_of_fewer_heads(patch: Patch) -> None:
    def fewer(true, *, heads, **options):
        return true(heads=heads - 1, **options)

    wrap(patch, mousavi2025_lower, "heads_lower", fewer)


def _narrow_network(patch: Patch) -> None:
    def narrow(true, task, *, token_range, gap):
        built = true(task, token_range=token_range / 8, gap=gap)
        return dataclasses.replace(built, token_norm=8 * built.token_norm)

    wrap(patch, mousavi2025_constructions, "recurrent_retrieval", narrow)


def _other_threshold(module: object, wrongly: Callable[[dict], bool], share: float) -> Callable[[Patch], None]:
    """Some runs are held to another share of the risk without the index."""

    def otherwise(true, key, **options):
        with pytest.MonkeyPatch.context() as patch:
            if wrongly(options):
                patch.setattr(_token_training, "RELATIVE", share)
            return true(key, **options)

    return lambda patch: wrap(patch, module, "measure", otherwise)


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
    wrap(patch, mousavi2025_ffn_adamw, "span_risk", lambda true, *arguments: 2.0)


def _one_encoding_for_all(patch: Patch) -> None:
    def alike(true, *arguments):
        task, model = true(*arguments)
        same = jnp.broadcast_to(task.encoding[:1], task.encoding.shape)
        return eqx.tree_at(lambda t: t.encoding, task, same), model

    wrap(patch, mousavi2025_block, "_draw", alike)


_SIMPLE = {"context_length": [3], "protocol": ["code"], "draw": [0, 1, 2], "run": [0], "until": ["relative"]}


_TOKENS = {"protocol": ["code"], "draw": [0, 1, 2], "run": [0]}


def _own_token(patch: Patch) -> None:
    def asked(true, self, key, size):
        x = true(self, key, size)
        return x | {"t": x["j"]}

    wrap(patch, mousavi2025_recurrent_norms.Prompts, "inputs", asked)


def _no_decay(patch: Patch) -> None:
    wrap(patch, mousavi2025_ffn_trained, "Regularised", lambda true, objective, decay: true(objective, 1e-9 * decay))


FAULTS = {
    "B1": Fault(
        "query-key matrices half as large as the lemma's",
        _blunt_heads,
        [Plan(points(mousavi2025_constructions.TOKENS, context_length=8))],
    ),
    "B2": Fault(
        "the bound for one head fewer",
        _bound_of_fewer_heads,
        [Plan(points(mousavi2025_lower.HEADS, family="retrieval", dim=1)[1:])],
    ),
    "B3": Fault(
        "gates for tokens of an eighth of the range",
        _narrow_network,
        [Plan(points(mousavi2025_constructions.RECURRENT, context_length=8, sparsity=1))],
    ),
    "B4": Fault(
        "the best in the span taken for twice as bad as predicting 0",
        _best_of_its_sample,
        [
            Plan(points(mousavi2025_lower.FEEDFORWARD, dim=4)),
            Plan(points(mousavi2025_ffn_adamw.STUDY, sample_size=10), seeds=4),
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
}
