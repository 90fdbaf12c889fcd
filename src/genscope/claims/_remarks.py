"""Where what we find and what a paper prints are known to part ways: one sentence per claim, and its erratum.

Source: docs/errata.md.
Guarantee: exact; a remark is shown beside the verdict and never enters it.
"""

from genscope.lab.results.verdict import Remark

REMARKS = {
    "B5": Remark(
        "Text and public code differ; the code's protocol decides, whose test prompts are simple-1STR here too.",
        *("mousavi2025", 8),
    ),
    "B8": Remark("The published threshold 0.88 can be passed without reading the indices.", "mousavi2025", 9),
    "B7": Remark("The text says 1STR; the public code that draws Figure 2 trains on simple-1STR.", "mousavi2025", 8),
    "C1": Remark(
        "With zeros in the second attention, as printed, the network computes another function; a shift mends it.",
        *("lintilhac2026", 2),
    ),
    "C2": Remark(
        "Theorem 14 as printed leaves out the rows of F that write positions, up to 95 % of the trace.",
        *("lintilhac2026", 5),
    ),
    "C4": Remark(
        "The paper speaks of two orders of magnitude; we find about one, and none against rescaled weights.",
        *("lintilhac2026", 17),
    ),
    "C5": Remark(
        "The change of the trace is not the remainder that the PAC-Bayes bound needs; that one is shown beside.",
        *("lintilhac2026", 11),
    ),
    "C6": Remark(
        "Rows mostly compute the components, but attention need not show them: a row's own bit enters its scores.",
        *("lintilhac2026", 18),
    ),
    "C7": Remark(
        "The exponential is the chance of a bad sample; between bounds on the risk the gap is a power of T.",
        *("lintilhac2026", 12),
    ),
    "C8": Remark(
        "The paper's restriction to coordinates merges components and counts too few; affine ones do not.",
        *("lintilhac2026", 15),
    ),
    "C10": Remark(
        "The constant is fitted to trained networks, which the theorem does not cover.", *("lintilhac2026", 10)
    ),
    "C9": Remark(
        "The constant is the paper's fit to trained networks, which its theorem does not cover.",
        *("lintilhac2026", 10),
    ),
}
