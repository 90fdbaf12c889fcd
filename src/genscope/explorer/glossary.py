"""Words that the explorer explains: two sentences each, and where they come from.

Source: each entry names its own.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A word, what it means in two sentences, and its source."""

    word: str
    text: str
    source: str


GLOSSARY: dict[str, Term] = {
    # Room Function
    "expression": Term(
        "Boolean expression",
        "Variables x0, x1, ..., constants 0 and 1, operators ~ & ^ | from tight to loose, and the functions maj, thr, "
        "parity, and, or, table. It is parsed by a grammar and never run as code.",
        "docs/explorer.md",
    ),
    "support": Term(
        "Relevant variables",
        "The variables that the function actually depends on: flipping one of them changes the value at some input. A "
        "function with few of them is called sparse, and its number of variables s drives the sample complexity.",
        "edelman2022, Section 5",
    ),
    "values": Term(
        "Values of the function",
        "The same function may take the values 0 and 1, or the signs 1 and −1 with (−1)^f. Signs make squared "
        "coefficients sum to 1 and influences probabilities; 0 and 1 are what the constructions compute.",
        "lintilhac2026, Equation (1)",
    ),
    "degree": Term(
        "Degree",
        "The size of the largest set of variables with a non-zero Fourier coefficient. Higher degree needs sharper "
        "networks, and the generalization gap grows with it.",
        "lintilhac2026, Equation (1) and Figure 1",
    ),
    "sparsity": Term(
        "Sparsity",
        "The number of non-zero Fourier coefficients, not counting the constant. The construction of Fourier "
        "components uses one row of attention for each.",
        "lintilhac2026, Equation (1)",
    ),
    "level weight": Term(
        "Weight by level",
        "The sum of squared Fourier coefficients over all sets of k variables. Over all levels it adds up to the mean "
        "square of the function (Parseval).",
        "lintilhac2026, Equation (1); O'Donnell, Analysis of Boolean Functions, Section 1.4",
    ),
    "influence": Term(
        "Influence",
        "The sum of squared Fourier coefficients over the sets that contain the variable. For values 1 and −1 it is "
        "the probability that flipping the variable changes the value; for 0 and 1 a quarter of that.",
        "O'Donnell, Analysis of Boolean Functions, Section 2.2",
    ),
    "total influence": Term(
        "Total influence",
        "The sum of all influences, which is the mean size of a component weighted by its square. It says how "
        "sensitive the function is at an average input.",
        "O'Donnell, Analysis of Boolean Functions, Section 2.3",
    ),
    "component": Term(
        "Fourier component",
        "A parity of some of the variables, with its coefficient in the function. Every function of bits is a sum of "
        "such components, in exactly one way.",
        "lintilhac2026, Equation (1)",
    ),
    "basis": Term(
        "The two bases",
        "χ of a set is 1 where its bits have an even number of ones, and −1 elsewhere; φ is 1 and 0 there, "
        "φ = (1 + χ)/2. The coefficients differ by a factor of 2 and the constant takes up the rest.",
        "lintilhac2026, Equation (1)",
    ),
    "truth table": Term(
        "Truth table",
        "The value at every input; the first variable varies fastest. Click a cell to change the value there, and "
        "the expression becomes a table.",
        "docs/explorer.md",
    ),
    # Room Construction
    "construction": Term(
        "Construction",
        "A Transformer whose weights are written down instead of learned, so that it computes the expression. It "
        "shows that small norms suffice, which is what the sample bounds need.",
        "edelman2022, Section 5; lintilhac2026, Appendix B",
    ),
    "encoding": Term(
        "Encoding",
        "How bits become tokens: a vector of the bit plus one of the position, or the vector of the position where the "
        "bit is 1 and nothing where it is 0. Random vectors are nearly orthogonal in few dimensions.",
        "edelman2022, Section 5",
    ),
    "context length": Term(
        "Context length",
        "The number T of bits that the Transformer reads, most of which may be irrelevant. The norms of the "
        "construction grow only with its logarithm.",
        "edelman2022, Section 5",
    ),
    "attention": Term(
        "Attention",
        "The weights with which a head averages the tokens; each row sums to 1. In the construction the mass lies on "
        "the relevant positions.",
        "edelman2022, Section 3",
    ),
    "norm": Term(
        "Norm and promise",
        "The Frobenius norm of a weight matrix, with the bound that the proof gives for it and the paper's order. "
        "The measured norm is never above the promise.",
        "edelman2022, Section 5",
    ),
    "gamma": Term(
        "Sharpness γ",
        "The factor on the attention scores: the larger it is, the more mass goes to the relevant positions. The "
        "proof needs a γ that grows like log(T s).",
        "edelman2022, Section 5",
    ),
    "exactness": Term(
        "Exactness",
        "The model is compared with the expression on every input if they can be listed, and otherwise on hard and "
        "random ones. The largest error is compared with rounding and with the promise.",
        "docs/claims.md, A3 and C1",
    ),
    "trace": Term(
        "Trace of the Hessian",
        "The sum of the second derivatives of the mean squared loss with respect to all parameters: how sharp the "
        "minimum is. It enters the PAC-Bayes bound together with the norm.",
        "lintilhac2026, Theorems 13 and 14",
    ),
    # Room Bounds
    "bound": Term(
        "Bound",
        "What a theorem promises for given norms, accuracies and sample sizes, as a sum of named terms. Log covering "
        "numbers, in nats, count functions up to an accuracy; bounds on the risk follow from them, or from flatness.",
        "edelman2022, Section 4; mousavi2025, Theorem 5; lintilhac2026, Theorem 2",
    ),
    "vacuous": Term(
        "Vacuous",
        "A bound is vacuous where it says no more than is already known: that a loss is at most its range, or the "
        "variance of the labels. Curves are marked where they stop being so.",
        "lintilhac2026, Appendix E.3",
    ),
    "explicit": Term(
        "Explicit or order only",
        "In an explicit bound every constant is proved, and the number is a promise. In an order-only bound the "
        "constant is not known: it shows how things grow, and its height means nothing.",
        "docs/claims.md, A2",
    ),
    "points": Term(
        "Points, samples, context length",
        "A cover of a head counts all tokens of all examples: its points are the sample size times the context length, "
        "m T. A curve along points is therefore a curve along either of the two.",
        "edelman2022, Corollary 4.5",
    ),
    # Room Learn
    "network": Term(
        "Networks",
        "What learns: each has a fixed size and a training recipe that was chosen on exploratory seeds. A "
        "Transformer attends to the bits from one position, an MLP sees all of them at once, recurrent networks read "
        "them one by one.",
        "docs/learning.md",
    ),
    "sample size": Term(
        "Samples",
        "The number of labeled examples that a run trains on; all of them are drawn before training begins. With too "
        "few, several functions fit, and no learner can tell which one it was.",
        "edelman2022, Section 6",
    ),
    "training loss": Term(
        "Training loss",
        "The mean logistic loss, in nats, of the examples that the network trains on. It falls to 0 both in runs that "
        "learn the function and in runs that memorize the sample.",
        "edelman2022, Section 6",
    ),
    "held-out accuracy": Term(
        "Held-out accuracy",
        "The share of 500 held-out examples that the network gets right, at each check during training. A run succeeds "
        "if it gets all of 10,000 right.",
        "edelman2022, Section 6",
    ),
    "success curve": Term(
        "Success curve",
        "The share of runs that succeed, against the number of samples, with Wilson intervals and a fitted curve. The "
        "shaded range is the 95 % interval of the samples at which 80 % succeed, and it narrows as trials arrive.",
        "edelman2022, Figure 2",
    ),
    # Room Studies
    "trial": Term(
        "Trial",
        "One run of a study: a point (sample size, context length and so on) and a seed, with what was measured. A "
        "trial that raised an exception is kept as failed, with its message.",
        "docs/architecture.md",
    ),
    "threshold": Term(
        "Threshold",
        "The sample size at which a share of the trials, usually 80 %, succeeds. It is the median of its posterior "
        "with a 95 % interval; an arrow marks a threshold that is bounded on one side only.",
        "edelman2022, Figure 2, measured as in genscope.lab.statistics.threshold",
    ),
    "scaling law": Term(
        "Scaling law",
        "How thresholds grow with the context length: like its logarithm, a power of it, or in proportion. The laws "
        "are fitted to thresholds with their uncertainty and compared by likelihood; a lead of 3 is clear.",
        "edelman2022, Figure 2, fitted as in genscope.lab.statistics.scaling",
    ),
    "verdict": Term(
        "Verdict",
        "Whether a published claim holds, fails, or is undecided at this budget, by a rule that was fixed before the "
        "data were drawn. A claim that fails is reported as failing.",
        "docs/claims.md",
    ),
    "progress": Term(
        "Live progress",
        "Trials that have arrived in the store, their rate over the last minute, and the batches that processes are "
        "working on. The page only reads, so it never blocks a writer.",
        "docs/architecture.md",
    ),
}
