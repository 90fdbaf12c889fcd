"""Theorems as arithmetic; a place in `ALL` gives a bound its name on the command line."""

from collections.abc import Callable

from genscope.bounds._base import Bound as Bound
from genscope.bounds._heads import Refine as Refine
from genscope.bounds.attention import head as head
from genscope.bounds.attention import heads as heads
from genscope.bounds.covering import linear_cover as linear_cover
from genscope.bounds.covering import matrix_cover as matrix_cover
from genscope.bounds.covering import zhang_cover as zhang_cover
from genscope.bounds.dimensions import fat_cover as fat_cover
from genscope.bounds.dimensions import pseudo_cover as pseudo_cover
from genscope.bounds.dimensions import vc_cover as vc_cover
from genscope.bounds.information import lower as lower
from genscope.bounds.layers import deep as deep
from genscope.bounds.risk import dudley as dudley
from genscope.bounds.risk import generalization as generalization
from genscope.bounds.risk import margin as margin
from genscope.bounds.risk import rademacher as rademacher
from genscope.bounds.risk import sample_size as sample_size
from genscope.bounds.split import split_cubic as split_cubic
from genscope.bounds.volume import crossover as crossover
from genscope.bounds.volume import volumetric as volumetric
from genscope.bounds.volume import volumetric_head as volumetric_head

ALL: dict[str, Callable[..., Bound]] = {
    "linear-cover": linear_cover,
    "zhang-cover": zhang_cover,
    "matrix-cover": matrix_cover,
    "head": head,
    "heads": heads,
    "deep": deep,
    "volumetric": volumetric,
    "volumetric-head": volumetric_head,
    "vc-cover": vc_cover,
    "pseudo-cover": pseudo_cover,
    "fat-cover": fat_cover,
    "rademacher": rademacher,
    "generalization": generalization,
    "margin": margin,
    "lower": lower,
}
