"""Formal versions, in public libraries of Lean 4, of statements that genscope uses.

Guarantee: each file was read at the commit that is linked, in November 2026; Lean was not run on it.
"""

from dataclasses import dataclass

MATHLIB = "https://github.com/leanprover-community/mathlib4/blob/044e331c04d645c84ab5f4578fca608808ac096b"
FOML = "https://github.com/auto-res/lean-rademacher/blob"
COVERING = f"{MATHLIB}/Mathlib/Topology/MetricSpace/CoveringNumbers.lean"
DUDLEY = f"{FOML}/29b2d5356e2355a8f8143bb3f112e49de94cffdb/FoML/DudleyEntropy.lean"
MAIN = f"{FOML}/190645f75070521dd0c17e48e5d3541f4ad1c1b3/FoML/Main.lean"


@dataclass(frozen=True)
class Formal:
    """A formal statement beside one of ours."""

    ours: str
    theirs: str
    link: str
    about: str


FORMAL = (
    Formal(
        "genscope.measure.smallest_cover",
        "Metric.coveringNumber",
        COVERING,
        "the definition, by closed balls with centres in the set; `coveringNumber_anti`: it cannot rise with ε",
    ),
    Formal(
        "genscope.measure.largest_packing",
        "Metric.packingNumber",
        COVERING,
        "`packingNumber_two_mul_le_externalCoveringNumber` and `coveringNumber_le_packingNumber`: M(2ε) ≤ N(ε) ≤ M(ε)",
    ),
    Formal(
        "genscope.bounds.dudley",
        "dudley_entropy_integral'",
        DUDLEY,
        "the same constants, 4 and 12, for covers in the empirical L² norm, which are no larger than ours in the "
        "maximum norm, and an integral that ends at half the largest norm",
    ),
    Formal(
        "genscope.bounds.generalization",
        "main_separable",
        MAIN,
        "twice the Rademacher complexity and a tail by McDiarmid; there the complexity is the expected one, here the "
        "empirical one, hence another constant of the tail",
    ),
)


def beside(name: str) -> str:
    """What stands below one of our functions; empty without a formal version."""
    told = [f"**Lean:** [`{each.theirs}`]({each.link}): {each.about}." for each in FORMAL if each.ours == name]
    return "\n\n".join(told)


def section() -> str:
    """The section of the page of statements."""
    rows = [f"| `{each.ours}` | [`{each.theirs}`]({each.link}) | {each.about} |" for each in FORMAL]
    head = ["| Ours | In Lean 4 | What it says |", "|---|---|---|"]
    words = "Files were read at the commits that are linked; we did not run Lean on them."
    return "\n".join(["## Formal versions", "", words, "", *head, *rows])
