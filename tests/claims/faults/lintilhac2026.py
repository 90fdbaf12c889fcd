"""What is broken for each claim of lintilhac2026, and the least size at which its rule sees it."""

import dataclasses
import math

import equinox as eqx
import numpy as np

from genscope.claims import lintilhac2026_attention as claim_c6
from genscope.constructions._fourier_closed_forms import GRADIENT_PARTS, Gradients
from genscope.lab import Plan, grid
from genscope.precision import float64
from genscope.studies import (
    lintilhac2026_attention,
    lintilhac2026_bounds,
    lintilhac2026_chain_bounds,
    lintilhac2026_constructions,
    lintilhac2026_gap,
    lintilhac2026_norms,
    lintilhac2026_probes,
    lintilhac2026_tilings,
)
from tests.claims.faults._base import Fault, Patch, points, wrap


def _blunt_attention(patch: Patch) -> None:
    def blunt(true, *arguments, **options):
        built = true(*arguments, **options)
        with float64():  # the model is a cached property, which `replace` would make again
            built.__dict__["model"] = eqx.tree_at(lambda m: m.key, built.model, replace_fn=lambda w: w / 2)
        return built

    wrap(patch, lintilhac2026_constructions, "fourier_components", blunt)


def _printed_theorem(patch: Patch) -> None:
    kept = np.array([block != "F_pos" for block, _ in GRADIENT_PARTS.values()])
    patch.setattr(Gradients, "mean", property(lambda gradients: np.where(kept, gradients._moments[0], 0)))


def _degrees_upside_down(patch: Patch) -> None:
    wrap(patch, lintilhac2026_gap, "train", lambda true, key, *, degree, **rest: true(key, degree=4 - degree, **rest))


def _tuned_for_full(patch: Patch) -> None:
    def tuned(true, function, *, variant, **options):
        return true(function, variant="tuned", **options)

    wrap(patch, lintilhac2026_norms, "fourier_components", tuned)


def _wider_noise(patch: Patch) -> None:
    def wider(true, built, sigmas, key):
        return true(built, [10 * sigma for sigma in sigmas], key)

    wrap(patch, lintilhac2026_bounds, "_perturbed", wider)


def _given_for_fitted(patch: Patch) -> None:
    patch.setattr(lintilhac2026_bounds, "fitted_constant", lambda losses: 0.1)


def _few_runs(patch: Patch) -> None:
    patch.setattr(claim_c6, "RUNS", 10)  # 0 of 10 are below one half at the corrected level


def _one_column_off(patch: Patch) -> None:
    wrap(patch, lintilhac2026_attention, "_positions", lambda true, model: np.roll(true(model), 1, axis=1))


def _risk_for_confidence(patch: Patch) -> None:
    def risk(true, *, reading, sigma, **options):
        found = true(reading="risk", sigma=None, **options)
        return found if reading == "risk" else dataclasses.replace(found, terms={"log": math.log(found.value)})

    wrap(patch, lintilhac2026_chain_bounds, "parity_chain", risk)


def _merging_restrictions(patch: Patch) -> None:
    def coordinates(true, oracle, *, rng, max_sparsity, **options):
        sizes = {"rows": lintilhac2026_probes.ROWS, "repeats": lintilhac2026_probes.REPEATS}
        return true(oracle, rng=rng, max_sparsity=max_sparsity, **{"kind": "coordinate", **sizes, **options})

    wrap(patch, lintilhac2026_probes, "find_sparsity", coordinates)


def _untuned(patch: Patch) -> None:
    def full(true, context_length, degree, variant, seed):
        return true(context_length, degree, "full", seed)

    wrap(patch, lintilhac2026_tilings, "_built", full)


FAULTS = {
    "C1": Fault(
        "attention half as sharp",
        _blunt_attention,
        [Plan(points(lintilhac2026_constructions.CUBES, context_length=6))],
    ),
    "C2": Fault(
        "Theorem 14 as printed, without the rows of F that write positions",
        _printed_theorem,
        [Plan(grid(case=["G1"], variant=["full"], method=["gradients"]))],
    ),
    "C3": Fault(
        "degrees upside down: 3 trained as 1, and 1 as 3",
        _degrees_upside_down,
        [Plan([p for d in (1, 3) for p in points(lintilhac2026_gap.STUDY, degree=d, sparsity=2)], seeds=6)],
        slow=True,
    ),
    "C4": Fault(
        "tuned weights in place of the paper's",
        _tuned_for_full,
        [Plan(points(lintilhac2026_norms.STUDY, degree=1, sparsity=2))],
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
        [Plan(points(lintilhac2026_attention.STUDY, context_length=20, degree=2), seeds=12)],
        prepare=_few_runs,
        slow=True,
    ),
    "C7": Fault(
        "the chance of a wrong answer taken for the chance of a bad sample",
        _risk_for_confidence,
        [Plan(points(lintilhac2026_chain_bounds.STUDY))],
    ),
    "C8": Fault(
        "restrictions to coordinates, in which components merge",
        _merging_restrictions,
        [Plan(points(lintilhac2026_probes.STUDY, restriction="affine", sparsity=20))],
    ),
    "C9": Fault(
        "the paper's weights in place of the tuned",
        _untuned,
        [Plan(points(lintilhac2026_tilings.STUDY, sample_size=10**8, constant=0.1))],
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
