"""The papers behind genscope, by citation key, with the mistakes found in the texts we worked from.

Guarantee: exact; docs/errata.md gives each mistake with its correction and where it matters.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper; `errata` are found while implementing, so a paper not implemented yet has none listed."""

    title: str
    authors: tuple[str, ...]
    year: int
    link: str
    errata: tuple[str, ...] = ()


# All errata of edelman2022 are those of the lecture notes by Paez and DeVaul (2025), not of the published paper.
PAPERS: dict[str, Paper] = {
    "edelman2022": Paper(
        title="Inductive Biases and Variable Creation in Self-Attention Mechanisms",
        authors=("Benjamin L. Edelman", "Surbhi Goel", "Sham Kakade", "Cyril Zhang"),
        year=2022,
        link="https://arxiv.org/abs/2110.10090",
        errata=(
            "Lecture notes: a covering number can only decrease when ε increases, not increase.",
            "Lecture notes: the worked covering example mixes two point sets and gets wrong values.",
            "Lecture notes: Eq. (8) bounds the logarithm of the covering number, not the covering number.",
            "Lecture notes: in Lemma 4.6 the points live in the input dimension d₂, not in d₁.",
            "Lecture notes: Lemma 4.3 misses a transpose in its (2, ∞)-norm.",
            "Lecture notes: the single-head bound leaves out the factor 2, the norms of inputs and heads, and log d.",
            "Lecture notes: the sum over heads is called a sum over layers; the multi-layer theorem is not stated.",
            "Lecture notes: the VC bound needs m ≥ VC; the fat-shattering exponent is log₂(2em/(vε)).",
            "Lecture notes: the definition of symmetric functions lacks its conclusion f(b) = f(b').",
            "Lecture notes: the bag of vectors is diag(b) V, not V diag(b).",
            "Lecture notes: the proof sketch of Proposition 5.5 confuses relevant with irrelevant inputs, a sum "
            "with an average, and s² with 2ˢ units.",
            "Lecture notes: parity is hard for statistical queries as T to the power Ω(s) only; Figure 4 is "
            "no exception.",
            "Lecture notes: Proposition 5.5 holds for the encodings of Section 5, not for any input mapping.",
        ),
    ),
    "mousavi2025": Paper(
        title="When Do Transformers Outperform Feedforward and Recurrent Networks? A Statistical Perspective",
        authors=("Alireza Mousavi-Hosseini", "Clayton Sanford", "Denny Wu", "Murat A. Erdogdu"),
        year=2025,
        link="https://arxiv.org/abs/2503.11272",
        errata=(
            "Lemma 16: its first branch is false for a supremum over the sample; a matrix cover replaces it.",
            "Lemma 41: its second branch holds for the ℓ₁ ball, not for the Euclidean ball (the roots of E8).",
            "Proposition 6: the norm bound is not proved; Sudakov's inequality gives one in the Frobenius norm.",
            "Proposition 4: the proof has the zero tokens in the wrong half.",
            "Theorem 7: the proof cites the wrong proposition, and n where N is meant.",
            "Proposition 35: errors are independent only given the shared token; states have dimension 2·d, for "
            "hidden states of dimension d.",
            "The encodings of the experiments almost never satisfy Assumption 3.",
            "Text and public code differ in ten points, the law of the test prompts among them.",
            "Figures 1a and 3: a predictor that ignores the index passes their thresholds at N = 2 and N = 7.",
        ),
    ),
    "lintilhac2026": Paper(
        title="A Sharper Picture of Generalization in Transformers",
        authors=("Paul Lintilhac", "Sair Shaikh"),
        year=2026,
        link="https://arxiv.org/abs/2605.20988",
        errata=(
            "Random functions: positive coefficients cannot be centered; they are scaled, the function is centered.",
            "Appendix B: zeros in the second attention would starve the components; a shift is needed.",
            "Appendix B: the residual must keep positions only, or each component brings its own bit along.",
            "Appendix B: for even degrees one threshold exceeds 1.",
            "Theorem 14: the rows of F that write positions are missing; they make the trace grow with T.",
            "Appendix D: a single rescaling need not reduce both norm and trace.",
            "Appendix B.2: random projections enlarge the network at every practical length.",
            "Theorem 16: both attentions need an entry per dimension of the positions' codes, where it counts one.",
            "Theorem 16: the attention must not be causal, and the indicator is the odd one.",
            "Theorem 2: the constant must hold under the prior; one fitted to trained networks is a heuristic.",
            "Section 2.3: the change of the trace is not the change of the perturbed risk.",
            "Theorems 7 and 8: the exponential is a probability of bad samples; between risks the gap is polynomial.",
            "Theorem 7: the union over steps needs only the risk with correct prefixes; its examples are pairs of "
            "string and step.",
            "Appendix H: the cited test of low degree is for GF(2); real functions need disjoint blocks.",
            "Appendix H: restrictions to coordinates merge components, so the sparsity found is biased low.",
            "Appendix A: drawing functions anew when training fails selects the easy ones.",
            "Remark 3: trained networks lie about one order of magnitude below the construction, not two.",
            "Section 2.4: rows of a trained attention show all components in half of the runs, by the initial scale.",
            "Appendix D (2): units belong to numbers of ones within a component, and 8,192 inputs show all of them.",
        ),
    ),
}

# What the three rest on, and our sources cite.
CITED: dict[str, Paper] = {
    "zhang2002": Paper(
        title="Covering Number Bounds of Certain Regularized Linear Function Classes",
        authors=("Tong Zhang",),
        year=2002,
        link="https://www.jmlr.org/papers/v2/zhang02b.html",
    ),
    "anthony1999": Paper(
        title="Neural Network Learning: Theoretical Foundations",
        authors=("Martin Anthony", "Peter L. Bartlett"),
        year=1999,
        link="https://doi.org/10.1017/CBO9780511624216",
    ),
    "alquier2024": Paper(
        title="User-friendly Introduction to PAC-Bayes Bounds",
        authors=("Pierre Alquier",),
        year=2024,
        link="https://arxiv.org/abs/2110.11216",
    ),
    "maurer2004": Paper(
        title="A Note on the PAC Bayesian Theorem",
        authors=("Andreas Maurer",),
        year=2004,
        link="https://arxiv.org/abs/cs/0411099",
    ),
    "langford2005": Paper(
        title="Tutorial on Practical Prediction Theory for Classification",
        authors=("John Langford",),
        year=2005,
        link="https://www.jmlr.org/papers/v6/langford05a.html",
    ),
    "dziugaite2017": Paper(
        title="Computing Nonvacuous Generalization Bounds for Deep (Stochastic) Neural Networks with Many More "
        "Parameters than Training Data",
        authors=("Gintare K. Dziugaite", "Daniel M. Roy"),
        year=2017,
        link="https://arxiv.org/abs/1703.11008",
    ),
}
