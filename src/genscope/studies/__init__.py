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
)
