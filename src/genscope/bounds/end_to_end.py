r"""From norms and a sample size to the risk of the best fit: Theorems 3, 5 and 10 with all their constants.

The best fit of a class that contains the construction, on $n$ prompts, has with probability $1-\delta$
$$R\le\underbrace{\hat R}_{\text{construction}}+2\hat{\mathfrak R}_\tau+3\tau\sqrt{\log(2k/\delta)/(2n)}+
\mathbb E((\hat y-y)^2-\tau)_+$$
for every $\tau$. Of the chance $\delta$ one $k$-th is for a deviation (Corollary 19), one for a token of the sample
that is longer than $r_x=\sqrt{2C_xed\log(knN/\delta)}$ (Lemma 12); $k=2$. On short tokens the construction's error is
known, its empirical risk is at most that, and the best fit's is not larger. The last term is `truncation_error`. The
$\tau$ of least total is taken from a grid that does not depend on $n$.

Clipping. If predictions are clipped to $[-c,c]$, with $c^2=C_y(\frac{2e}s\log\frac{3n}\delta)^s$, no label of the
sample is beyond $c$ but with probability $\delta/3$ (Markov's inequality, as for tokens), so that clipping brings the
construction nearer to every label. Covers do not grow, and $\tau$ need not exceed $c^2$ by much: the factor $C_1$ of
the theorems, the squared size of predictions, is gone. Then $k=3$.

Source: mousavi2025, Theorems 3, 5 and 10, and the remark on clipping after Theorem 3.
Departures: the radius of tokens follows from the confidence instead of the sample size alone, so that $\delta$ is
yours; what retrieval adds to the error is a number $\varepsilon$ of its own ($1/n$ unless told), where the paper takes
$\varepsilon_{2NN}$. Assumption 2 is asked for tokens to the radius that is reported.
Guarantee: proved, with all constants.
"""

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Literal, NamedTuple

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log, log_sum
from genscope.bounds._parameters import Choice, Number, checked, count, positive
from genscope.bounds.recurrent import rnn_sizes
from genscope.bounds.risk import Confidence, Samples
from genscope.bounds.token_limits import Sparsity, TokenDimension, Tokens
from genscope.bounds.token_regression import (
    Approximation,
    HiddenScale,
    LinkWidth,
    ReadoutScale,
    Sizes,
    TokenMoment,
    truncated_risk,
)
from genscope.bounds.truncation import (
    LabelExponent,
    LabelMoment,
    Predictions,
    Tail,
    attention_predictions,
    left_out,
    recurrent_predictions,
    whole_risk,
)

EncodingDimension = Annotated[float, count("dimension d_e of a position's code")]
Retrieval = Annotated[float | None, positive("squared error that attention adds (default 1/n)")]
Gap = Annotated[float, Number("γ: scores of two codes are at most 1 − γ", high=2, closed=(False, True))]
Clipped = Annotated[bool, Choice("clip predictions to the range of the sample's labels")]

_STEP = 1 / 4  # of the grid of log τ
_LARGEST = 600.0  # log τ beyond which nothing is tried


class _Sample(NamedTuple):
    """A sample and the chance of error, shared out among the events of the proof."""

    samples: float
    tokens: float
    dimension: float
    confidence: float
    token_moment: float
    labels: Tail
    clipped: bool

    @property
    def events(self) -> int:
        return 3 if self.clipped else 2

    def radius(self) -> float:
        """Logarithm of r_x."""
        nats = log(self.events) + log(self.samples) + log(self.tokens) - math.log1p(-self.confidence)
        return (math.log(2) + log(self.token_moment) + 1 + log(self.dimension) + log(nats)) / 2

    def clip(self) -> float:
        """Logarithm of c², infinite without clipping."""
        if not self.clipped:
            return math.inf
        nats = log(self.events) + log(self.samples) - math.log1p(-self.confidence)
        s = self.labels.exponent
        return self.labels.moment + s * max(0.0, math.log(2) + log(nats) - math.log(s)) + s

    def best(
        self,
        name: str,
        source: str,
        construction: float,
        log_cover: Callable[[float], float],
        predictions: Predictions,
    ) -> Bound:
        """The least total over the grid of truncations."""
        predictions = predictions._replace(clip=self.clip())
        share = 1 - (1 - self.confidence) / self.events
        trivial = exp(whole_risk(predictions, self.labels))

        def total(step: int) -> Bound:
            truncated = truncated_risk(
                name,
                source,
                log_cover,
                samples=self.samples,
                truncation=math.exp(step * _STEP),
                empirical_risk=construction,
                confidence=share,
            )
            terms = {"construction": construction, **truncated.terms, "truncation": self._left(step, predictions)}
            terms.pop("empirical risk")
            choices = {"truncation": math.exp(step * _STEP), "token_radius": exp(self.radius())}
            if self.clipped:
                choices["clip"] = exp(self.clip() / 2)
            return Bound(name, terms, explicit=True, source=source, trivial=trivial, choices=choices)

        return min(self._candidates(total, predictions, trivial), key=lambda bound: bound.value)

    def _left(self, step: int, predictions: Predictions) -> float:
        return exp(log_sum(left_out(predictions, self.labels, step * _STEP)))

    def _candidates(self, total: Callable[[int], Bound], predictions: Predictions, trivial: float) -> Iterator[Bound]:
        r"""Bounds among which the least of the grid is, of those that leave out less than an eighth of all.

        The middle is the least $\tau$ that leaves out at most $n^{-1/2}$ (the choice of Lemma 20). Below it, what is
        left out rises, and above it all else does: each way ends where one of them alone exceeds the least total.
        """
        low, high = round(-_LARGEST / _STEP), round(_LARGEST / _STEP)
        enough = min(exp(-log(self.samples) / 2), trivial / 8)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._left(middle, predictions) <= enough else (middle, high)
        yield (first := total(high))
        least, step = first.value, high
        while self._left(step := step - 1, predictions) < min(least, trivial / 8):
            yield (bound := total(step))
            least = min(least, bound.value)
        step, rest = high, first.value - first.terms["truncation"]
        while rest < least and (step := step + 1) * _STEP < _LARGEST:
            yield (bound := total(step))
            least, rest = min(least, bound.value), bound.value - bound.terms["truncation"]


@checked
def erm_risk(
    *,
    samples: Samples,
    tokens: Tokens,
    dimension: TokenDimension,
    sparsity: Sparsity,
    width: LinkWidth,
    encoding_dimension: EncodingDimension,
    readout_scale: ReadoutScale = 1.0,
    hidden_scale: HiddenScale = 1.0,
    approximation: Approximation = 0.0,
    retrieval: Retrieval = None,
    gap: Gap = 0.5,
    token_moment: TokenMoment = 1.0,
    label_moment: LabelMoment = 1.0,
    label_exponent: LabelExponent = 1.0,
    confidence: Confidence = 0.95,
    weights: Annotated[
        Literal["norms", "ball"],
        Choice("norms: one bound for each part (Theorem 10); ball: of all together (Theorem 3)"),
    ] = "norms",
    clipped: Clipped = False,
) -> Bound:
    r"""Risk of the ERM over Transformers with as many heads as tokens per label (mousavi2025, Theorems 3 and 10).

    Construction (Lemma 11): $(\sqrt{\varepsilon_{2NN}}+\sqrt\varepsilon)^2$ with $H=q$ heads, $m=m_g$ units and
    $\|W_{QK}\|_{2,1}=\alpha d_e$, $\alpha=\frac q{\gamma d}\log\frac{2r_ar_wr_xN\sqrt q}{\sqrt\varepsilon}$.
    Complexity: `token_regression_cover` for tokens to $r_z^2=r_x^2+d(1+\frac1q)$. Truncation: Lemma 20.

    Norms (Theorem 10): $\|a\|\le r_a/\sqrt m$, $\|(W,b)\|_F\le r_w\sqrt m$, $\|W_{QK}\|_{2,1}\le\alpha d_e$.
    Ball (Theorem 3): $\|\mathrm{vec}\,\Theta\|^2\le R^2=r_a^2/m+mr_w^2+q\alpha^2d_e$; then $\|a\|,\|(W,b)\|_F\le R$ in
    the cover, $\|a\|\|(W,b)\|_F\le\frac12R^2$ for predictions, and all heads together have Frobenius norm at most $R$.
    """
    labels = Tail(log(label_moment), label_exponent)
    sample = _Sample(samples, tokens, dimension, confidence, token_moment, labels, clipped)
    error = 1 / samples if retrieval is None else retrieval
    d, q, lipschitz, reach = log(dimension), log(sparsity), log(readout_scale) + log(hidden_scale), sample.radius()
    nats = max(0.0, math.log(2) + lipschitz + reach + log(tokens) + (q - log(error)) / 2)
    alpha = q - d - log(gap) + log(nats)
    token = log_sum([2 * reach, d, d - q]) / 2
    embedding = dimension + (sparsity + 1) * encoding_dimension
    sizes = Sizes(sparsity, embedding, width, lipschitz, alpha + log(encoding_dimension), token, 0.0)
    points = log(samples) + log(tokens)
    if weights == "ball":
        parts = [2 * log(readout_scale) - log(width), log(width) + 2 * log(hidden_scale)]
        square = log_sum([*parts, q + 2 * alpha + log(encoding_dimension)])
        sizes, points = sizes._replace(lipschitz=square, query_key=(square - q) / 2), math.inf
        lipschitz = square - math.log(2)

    def log_cover(accuracy: float) -> float:
        at = sizes._replace(accuracy=accuracy)
        return at.readout() + min(at.matrix(points) if points < math.inf else math.inf, at.volume())

    return sample.best(
        "erm-risk",
        f"mousavi2025, Theorem {3 if weights == 'ball' else 10}",
        (math.sqrt(approximation) + math.sqrt(error)) ** 2,
        log_cover,
        attention_predictions(sparsity, sparsity, dimension, tokens, lipschitz, token_moment),
    )


class RecurrentShape(NamedTuple):
    """Parameters of the two networks and the norm of all, for the recurrent construction."""

    transition: int
    output: int
    norm_squared: float


def recurrent_shape(
    sparsity: int, dimension: int, encoding: int, units: int, kappa: float, weight: float, outer: float
) -> RecurrentShape:
    r"""Sizes of `constructions.recurrent_retrieval`, for a link with these $\|(W_g,b_g)\|_F$ and $\|a_g\|$.

    Transition: widths $2d+2qd_e$, $2qd$, $qd$ on $qd+D$ inputs. Output: $2qd+2d+2qd_e$, $4qd$, $m_g$, 1 on $2qd+D$.
    """
    state, token, first = (
        sparsity * dimension,
        dimension + (sparsity + 1) * encoding,
        2 * dimension + 2 * sparsity * encoding,
    )
    transition = first * (state + token + 1) + 2 * state * (first + 1) + 2 * state**2
    output = (
        (2 * state + first) * (2 * state + token + 1) + 4 * state * (2 * state + first + 1) + units * (4 * state + 2)
    )
    layer, gates = 2 * dimension + 4 * sparsity * encoding, 2 * state * (2 + 6 * kappa**2)
    each = layer + gates + 2 * state
    square = 2 * each + layer + 4 * state + gates + 2 * state + 4 * weight**2 + outer**2
    return RecurrentShape(transition, output, square)


@checked
def rnn_erm_risk(
    *,
    samples: Samples,
    tokens: Tokens,
    dimension: TokenDimension,
    sparsity: Sparsity,
    width: LinkWidth,
    encoding_dimension: EncodingDimension,
    readout_scale: ReadoutScale = 1.0,
    hidden_scale: HiddenScale = 1.0,
    approximation: Approximation = 0.0,
    gap: Gap = 0.5,
    token_moment: TokenMoment = 1.0,
    label_moment: LabelMoment = 1.0,
    label_exponent: LabelExponent = 1.0,
    confidence: Confidence = 0.95,
    clipped: Clipped = False,
) -> Bound:
    r"""Risk of the ERM over bidirectional recurrent networks, on simple-qSTR (mousavi2025, Theorem 5).

    Construction: $\varepsilon_{2NN}$, for codes by signs (`genscope construct recurrent-retrieval`), with a transition
    of depth 3 and an output network of depth 4 whose numbers of weights and norm $R$ are polynomials in $q,d,d_e,m_g$
    and $\kappa=r_x/\gamma$; states to $\sqrt q\,r_x$. Complexity: `rnn_cover` for $\|\mathrm{vec}\,\Theta\|\le R$,
    transitions $1/N$-Lipschitz in the state, and tokens to $r_z^2=r_x^2+1+q$. Truncation: Lemma 34.
    """
    labels = Tail(log(label_moment), label_exponent)
    sample = _Sample(samples, tokens, dimension, confidence, token_moment, labels, clipped)
    reach = sample.radius()
    shape = recurrent_shape(
        int(sparsity),
        int(dimension),
        int(encoding_dimension),
        int(width),
        exp(reach) / gap,
        exp(log(hidden_scale) + log(width) / 2),
        exp(log(readout_scale) - log(width) / 2),
    )
    radius, state = log(shape.norm_squared) / 2, log(sparsity) / 2 + reach
    token = log_sum([2 * reach, log(1 + sparsity)]) / 2
    sizes = shape.transition, shape.output
    return sample.best(
        "rnn-erm-risk",
        "mousavi2025, Theorem 5",
        approximation,
        lambda accuracy: sum(rnn_sizes(accuracy, log(tokens), sizes, (3, 4), radius, state, token)),
        recurrent_predictions(4, radius, state, sparsity, dimension, token_moment),
    )
