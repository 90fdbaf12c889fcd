"""The claims table; an import line and a place in `ALL` are the registration."""

from genscope.claims._base import Claim, Part
from genscope.claims._decide import Decided, Watcher, chosen, decide
from genscope.claims.edelman2022 import A4, A5, A6, A7
from genscope.claims.edelman2022_capacity import A1, A2
from genscope.claims.edelman2022_constructions import A3
from genscope.claims.edelman2022_restarts import A8, A9
from genscope.claims.lintilhac2026_attention import C6
from genscope.claims.lintilhac2026_chain import C7
from genscope.claims.lintilhac2026_constructions import C1, C2
from genscope.claims.lintilhac2026_figure1 import C10
from genscope.claims.lintilhac2026_perturbation import C5
from genscope.claims.lintilhac2026_probes import C8
from genscope.claims.lintilhac2026_tilings import C9
from genscope.claims.lintilhac2026_training import C3, C4
from genscope.claims.mousavi2025_recurrent import B10
from genscope.claims.mousavi2025_stationary import B9
from genscope.claims.mousavi2025_table import B11
from genscope.claims.mousavi2025_theory import B1, B2, B3, B4
from genscope.claims.mousavi2025_training import B5, B6, B7, B8

__all__ = ["ALL", "Claim", "Decided", "Part", "Watcher", "chosen", "decide"]

ALL: tuple[Claim, ...] = (
    *(A1, A2, A3, A4, A5, A6, A7, A8, A9),
    *(B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11),
    *(C1, C2, C3, C4, C5, C6, C7, C8, C9, C10),
)


def __dir__() -> list[str]:
    return sorted(__all__)
