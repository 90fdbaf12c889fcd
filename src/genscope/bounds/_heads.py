r"""The covers that a head is put together from, and what refinements know about them.

Source: edelman2022, Theorem 4.2.
Departures: three ways to cover the scores, where the paper has the first.
Guarantee: proved, each beside its code; all numbers here are logarithms.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from genscope.bounds._logarithms import log, log_sum
from genscope.bounds._parameters import Choice, check_fields, count, norm
from genscope.bounds.covering import linear_size, matrix_size
from genscope.bounds.split import Cover
from genscope.refusal import Refusal

Several = float | Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Refine:
    """What more is known about a head; each is used where it lowers the bound, which stays proved."""

    query_key_spectral: Annotated[Several | None, norm("spectral norm of W_QK; needs a fixed context")] = None
    query_key_context_21: Annotated[Several | None, norm("bound of ‖W_QK‖₂,₁: cover contexts, not tokens")] = None
    context_points: Annotated[float | None, count("distinct contexts (default: points, or 1 if fixed)")] = None
    fixed_context: Annotated[bool, Choice("one fixed context, such as CLS, for all examples")] = False
    embedding_spectral: Annotated[
        float | None, norm("spectral norm of trained embeddings [P; E]; needs a fixed context")
    ] = None
    readout_norm: Annotated[float | None, norm("bound of ‖w‖: cover the scalar wᵀf instead of f")] = None
    readout_points: Annotated[float | None, count("examples m that are read out (default: points)")] = None

    def __post_init__(self) -> None:
        check_fields(self)
        needs = {
            "query_key_spectral": "fixed_context",
            "embedding_spectral": "fixed_context",
            "context_points": "query_key_context_21",
            "readout_points": "readout_norm",
        }
        for name, needed in needs.items():
            if getattr(self, name) is not None and getattr(self, needed) in (None, False):
                raise Refusal(
                    f"Refine got {name}={getattr(self, name)} without {needed}: the refinement needs both. Give "
                    f"{needed} as well, or leave {name} out."
                )
        if self.embedding_spectral is not None and self.query_key_context_21 is not None:
            raise Refusal(
                "Refine got embedding_spectral and query_key_context_21: the cover of contexts does not apply to "
                "trained embeddings. Leave one of them out."
            )

    def given(self) -> Mapping[str, object]:
        """Those that are set."""
        return {name: value for name, value in vars(self).items() if value not in (None, False)}


PLAIN = Refine()


class HeadNorms(NamedTuple):
    """Logarithms of the norms of a head, or of several equal ones."""

    name: str
    copies: int
    value_21: float
    value_spectral: float
    query_key_21: float
    query_key_spectral: float
    query_key_context_21: float


class HeadSetting(NamedTuple):
    """Logarithms of what all heads have in common."""

    softmax: float
    sigma: float
    token: float
    context: float
    width: float
    dimension: float
    points: float


def broadcast(caller: str, number: int | None, **norms: Several | None) -> list[dict[str, float]]:
    """One row of logarithms per part; a single number holds for all parts, None is absent (-inf)."""
    lengths = {len(value) for value in norms.values() if isinstance(value, Sequence)}
    lengths |= set() if number is None else {number}
    if len(lengths) != 1:
        listed = {name: len(value) for name, value in norms.items() if isinstance(value, Sequence)}
        raise Refusal(
            f"{caller} got lists of lengths {listed} for {number or 'an unknown number of'} parts: a norm must be one "
            "number for all parts, or a list with one number per part. Say how many parts there are, and give that "
            "many norms."
        )
    return [
        {
            name: -math.inf if value is None else log(value[row] if isinstance(value, Sequence) else value)
            for name, value in norms.items()
        }
        for row in range(lengths.pop())
    ]


def gather(number: int | None, **norms: Several | None) -> list[HeadNorms]:
    """The heads; equal ones are one entry with copies."""
    if number is not None and not any(isinstance(value, Sequence) for value in norms.values()):
        return [HeadNorms("", number, **row) for row in broadcast("heads", 1, **norms)]
    return [HeadNorms(f"head {i}: ", 1, **row) for i, row in enumerate(broadcast("heads", number, **norms), start=1)]


def ways(heads: Sequence[HeadNorms], setting: HeadSetting, refine: Refine) -> list[list[Cover]]:
    """Lists of covers, each of which gives the whole class: the values, the scores in one of three ways, a read-out."""
    # Trained embeddings: x = Mᵀo with ‖o‖ = √2, so W_Vᵀx = (MW_V)ᵀo and ‖MW_V‖₂,₁ ≤ ‖M‖ ‖W_V‖₂,₁; so for W_QK too. The
    # context must be fixed: a cover of W_QK Mᵀ does not tell what a trained context is. True tokens keep ‖x‖ ≤ B_X.
    trained = refine.embedding_spectral
    feature = setting.token if trained is None else log(trained) + math.log(2) / 2

    # Read-out: ε = ε_w + B_w ε_head, with w covered on the outputs of the head's cover. These may be projected on the
    # ball of radius Σ L B_V B_X, which holds the true outputs: that brings them no farther from the latter.
    outer = 0.0 if refine.readout_norm is None else log(refine.readout_norm)
    reach = log_sum(math.log(head.copies) + setting.sigma + head.value_spectral + setting.token for head in heads)
    examples = log(refine.readout_points) if refine.readout_points else setting.points
    readout = Cover("readout", "readout", outer + reach, lambda log_kappa: linear_size(log_kappa, examples), wide=True)

    def covers(kind: str, radius: Callable[[HeadNorms], float], size: Callable[[float], float]) -> list[Cover]:
        wide = kind == "query-key" and bool(refine.given())
        return [Cover(f"{head.name}{kind}", kind, outer + radius(head), size, head.copies, wide) for head in heads]

    def scores(accuracy: Callable[[HeadNorms], float], size: Callable[[float], float]) -> list[Cover]:
        # Lemma 4.3: the output moves by at most c L B_V B_X times what the scores move.
        lost = setting.softmax + setting.sigma + setting.token
        return covers("query-key", lambda head: lost + head.value_spectral + accuracy(head), size)

    values = covers(
        "value",
        lambda head: setting.sigma + feature + head.value_21,
        lambda log_kappa: matrix_size(log_kappa, setting.width + setting.points),
    )
    common = values if refine.readout_norm is None else [*values, readout]

    # |zᵀ(W − Ŵ)x| ≤ B_z ‖(W − Ŵ)x‖: the points are the tokens.
    found = scores(
        lambda head: setting.context + feature + head.query_key_21,
        lambda log_kappa: matrix_size(log_kappa, setting.dimension + setting.points),
    )
    result = [[*common, *found]]
    if refine.query_key_context_21 is not None:
        # |xᵀ(W − Ŵ)ᵀz| ≤ B_X ‖(W − Ŵ)ᵀz‖: the points are the contexts.
        contexts = log(refine.context_points or 1) if refine.context_points or refine.fixed_context else setting.points
        found = scores(
            lambda head: setting.token + setting.context + head.query_key_context_21,
            lambda log_kappa: matrix_size(log_kappa, setting.dimension + contexts),
        )
        result.append([*common, *found])
    if refine.query_key_spectral is not None:
        # For fixed z the score is linear in x, with a weight W_QKᵀz of norm at most B_z ‖W_QK‖.
        found = scores(
            lambda head: setting.context + feature + head.query_key_spectral,
            lambda log_kappa: linear_size(log_kappa, setting.points),
        )
        result.append([*common, *found])
    return result
