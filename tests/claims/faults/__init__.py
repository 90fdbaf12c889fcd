"""What can be planted: for each claim something broken at its source, and the least size at which its rule sees it.

A fault replaces what a study computes (a model, a bound, labels); then the study runs and the claim's rule decides.
Sizes are far below those of the budgets: a control without the fault, at the same size, must not fail.
"""

from tests.claims.faults import edelman2022, lintilhac2026, mousavi2025

FAULTS = edelman2022.FAULTS | mousavi2025.FAULTS | lintilhac2026.FAULTS
