"""Figures of the papers as studies; an import line and a place in `ALL` are the registration."""

from genscope.lab import Study
from genscope.studies import (
    edelman2022_and,
    edelman2022_and_long,
    edelman2022_attention,
    edelman2022_capacity,
    edelman2022_constructions,
    edelman2022_curves,
    edelman2022_lipschitz,
    edelman2022_parity,
    mousavi2025_1str,
    mousavi2025_block,
    mousavi2025_constructions,
    mousavi2025_heads,
    mousavi2025_lower,
    mousavi2025_simple,
    mousavi2025_sparsity,
)

ALL: tuple[Study, ...] = (
    edelman2022_lipschitz.STUDY,
    edelman2022_capacity.STUDY,
    edelman2022_constructions.STUDY,
    edelman2022_and.STUDY,
    edelman2022_and_long.STUDY,
    edelman2022_and_long.SOURCES,
    edelman2022_curves.STUDY,
    edelman2022_attention.STUDY,
    edelman2022_parity.STUDY,
    mousavi2025_constructions.TOKENS,
    mousavi2025_constructions.RECURRENT,
    mousavi2025_lower.HEADS,
    mousavi2025_lower.FEEDFORWARD,
    mousavi2025_heads.STUDY,
    mousavi2025_1str.STUDY,
    mousavi2025_simple.STUDY,
    mousavi2025_block.STUDY,
    mousavi2025_sparsity.STUDY,
)
