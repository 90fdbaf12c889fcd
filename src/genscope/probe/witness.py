r"""A function known by its components that stands for the one that is asked, or none: by recovery, or by a table.

Guarantee: exact where the whole table was read. Otherwise the witness passed the comparison of `probe.agreement` with
the stated confidence: right on all but a share of the inputs, and right everywhere if the function differs from it by
few components or by a function of low degree. No black-box test can promise more: a function that differs at one input
of $2^T$ looks the same.
"""

import math
from dataclasses import dataclass

import numpy as np

from genscope.fourier import points
from genscope.probe.agreement import Agreement, agree
from genscope.probe.influence import Influences, flips_needed, influences
from genscope.probe.oracle import Oracle
from genscope.probe.recovery import Recovery, recover
from genscope.probe.table import Tabled, read_table

TABLE = 16  # bits to which the whole table is read at once
LARGEST_TABLE = 20  # and to which it is read after all, if there are too many components to recover
TRIED = 64  # inputs that a caller may ask first, and ask again: a table leaves room for them


@dataclass(frozen=True)
class Witness:
    """What the function is, and how far that is known."""

    tabled: Tabled
    exact: bool
    guarantee: str


@dataclass(frozen=True)
class Glimpse:
    """What was seen of a function without a witness: some of its components, and the bits that matter."""

    recovery: Recovery
    influences: Influences | None


def find_witness(
    oracle: Oracle, *, rng: np.random.Generator, confidence: float = 0.99, tolerance: float = 0.0
) -> Witness | Glimpse:
    """Read a short table; else recover the components; if there are too many, read the table of the bits that matter.

    With a tolerance E, a sum that leaves out at most the share E of the function's energy is a witness.
    """
    if reads_at_once(oracle):
        return _by_table(oracle, tolerance)
    half, limit = 1 - (1 - confidence) / 2, oracle.limit
    tabled = oracle.dim <= LARGEST_TABLE and _affords_table(oracle)
    if tabled:  # a search that costs as much as the table is none
        oracle.limit = min(limit - 2**oracle.dim - 2 * TRIED, oracle.queries + 2**oracle.dim // 4)
    else:
        oracle.limit -= min(oracle.left // 2, flips_needed(oracle.dim, confidence) + 2 ** (TABLE + 1))
    try:
        found = recover(oracle, rng=rng, confidence=half, tolerance=tolerance)
    finally:
        oracle.limit = limit
    if found.complete:
        f, left_out = found.function, found.agreement.left_out
        guarantee = _promise(oracle, found.agreement, confidence, tolerance)
        return Witness(Tabled(f.degree, f.sparsity, f.relevant, f, left_out), False, guarantee)
    if tabled and _affords_table(oracle):
        return _by_table(oracle, tolerance)
    seen = influences(oracle, rng=rng, confidence=confidence)
    few = _of_few_bits(oracle, seen.relevant, rng, confidence) if seen and not tolerance else None
    return few or Glimpse(found, seen)


def reads_at_once(oracle: Oracle) -> bool:
    """Whether the table is so short that it is read before anything else."""
    return oracle.dim <= TABLE and _affords_table(oracle)


def _by_table(oracle: Oracle, tolerance: float) -> Witness:
    """The function by its values at all inputs."""
    bits = tuple(range(oracle.dim))
    values = oracle(points(oracle.dim))
    return exactly(read_table(values, bits, oracle.dim, resolution=oracle.resolution, tolerance=tolerance), oracle.dim)


def exactly(tabled: Tabled, bits: int) -> Witness:
    """What a table over these bits says, and no other bit matters."""
    close = f" The sum listed leaves out {100 * tabled.left_out:.3g} % of the energy." if tabled.left_out else ""
    return Witness(tabled, True, f"Exact: read from the values at all inputs of {bits} bits.{close}")


def _affords_table(oracle: Oracle) -> bool:
    return 2**oracle.dim + 2 * TRIED <= oracle.left


def _of_few_bits(
    oracle: Oracle, relevant: tuple[int, ...], rng: np.random.Generator, confidence: float
) -> Witness | None:
    """The function by its table over the bits that were seen to matter, if it agrees with that at fresh inputs."""
    if len(relevant) > TABLE or 2 ** len(relevant) > oracle.left // 2:
        return None
    x = np.zeros((2 ** len(relevant), oracle.dim), bool)
    x[:, list(relevant)] = points(len(relevant))
    values, place = oracle(x), 1 << np.arange(len(relevant))
    agreement = agree(
        oracle, lambda x: values[x[:, list(relevant)] @ place], rng=rng, confidence=1 - (1 - confidence) / 2
    )
    if not agreement.reached:
        return None
    tabled = read_table(values, relevant, oracle.dim, resolution=oracle.resolution)
    return Witness(tabled, False, _promise(oracle, agreement, confidence, 0.0))


def _promise(oracle: Oracle, agreement: Agreement, confidence: float, tolerance: float) -> str:
    if tolerance and agreement.share < 1:
        return (
            f"At {agreement.inputs:,} fresh random inputs the squared difference from the sum listed is at most "
            f"{tolerance:g} of the energy: with confidence {confidence:g} it is on all but "
            f"{100 * agreement.share:.2g} % of the inputs. Degree and sparsity are those of this sum."
        )
    if tolerance:
        return (
            f"With confidence {confidence:g} the sum listed leaves out at most {tolerance:g} of the energy, if |f| "
            f"never exceeds {oracle.scale:.6g}, the largest value seen. Degree and sparsity are those of this sum."
        )
    return (
        f"The sum listed agrees with the function at {agreement.inputs:,} fresh random inputs: with confidence "
        f"{confidence:g} it is right on all but {100 * agreement.share:.2g} % of the inputs, and everywhere if the "
        f"function differs from it by at most {agreement.terms:,} components, or by a function of degree at most "
        f"{int(math.log2(agreement.terms))}."
    )
