r"""What a truncated squared loss leaves out: from $\mathbb E\min((\hat y-y)^2,\tau)$ to the risk itself.

For $0<\theta<1$ and $|\hat y-y|\le|\hat y|+|y|$, with $v=\theta^2\tau$ and $w=(1-\theta)^2\tau$:
$((\hat y-y)^2-\tau)_+\le\frac1\theta(\hat y^2-v)_++\frac1{1-\theta}(y^2-w)_+$, since
$(a+b)^2\le\frac{a^2}\theta+\frac{b^2}{1-\theta}$ and $\frac v\theta+\frac w{1-\theta}=\tau$.

Tails. If $\mathbb E[|Y|^r]^{1/r}\le\sqrt{Cr^s}$ for $r\ge1$, then
$\mathbb E(Y^2-v)_+\le\mathbb E|Y|^rv^{1-r/2}\le v(Cr^s/v)^{r/2}$ for every $r\ge2$; the best is
$r=\max(2,(v/C)^{1/s}/e)$, which gives $ve^{-sr/2}$ where it is above 2. Labels have $C=C_y$ and $s$, the length of a
token $C=C_xd$ and $s=1$ (Assumption 1).

Source: mousavi2025, Lemmas 20 and 34.
Departures: constants are explicit; the split by $\theta$ and the tails above stand for the Cauchy-Schwarz inequality.
Guarantee: proved, with all constants.
"""

import math
from typing import Annotated, NamedTuple

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log, log_sum
from genscope.bounds._parameters import Number, checked, positive
from genscope.bounds.recurrent import Norm, OutputDepth, StateRadius
from genscope.bounds.token_limits import Sparsity, TokenDimension, Tokens
from genscope.bounds.token_regression import Heads, HiddenNorm, ReadoutNorm, TokenMoment, Truncation

LabelMoment = Annotated[
    float, positive("C_y: the r-th moment of |y| is at most (C_y r^s)^(r/2); standard normal: 1 with s = 1")
]
LabelExponent = Annotated[float, Number("s ≥ 1, the growth of the labels' moments", 1, 1000, (True, True))]

_SPLITS = tuple(step / 32 for step in range(1, 32))


class Tail(NamedTuple):
    """Moments (C r^s)^(r/2), as the logarithm of C and s; of the largest of so many, as a logarithm."""

    moment: float
    exponent: float = 1.0
    copies: float = 0.0

    def square(self) -> float:
        """Logarithm of a bound of the mean square: of the largest, by its moment of order 2 log(copies)."""
        order = max(2.0, 2 * self.copies)
        return 2 * self.copies / order + self.moment + self.exponent * math.log(order)

    def beyond(self, level: float) -> float:
        """Logarithm of a bound of the mean of (Y² − v)₊, by log v."""
        if level == -math.inf:
            return self.square()
        order = max(2.0, exp((level - self.moment) / self.exponent - 1))
        moment = order / 2 * (self.moment + self.exponent * log(order) - level) if order < math.inf else -math.inf
        return min(self.square(), self.copies + level + moment)


class Predictions(NamedTuple):
    """A bound A + B M² of squared predictions, as logarithms, where M has a tail; all of it at most `clip`."""

    offset: float
    slope: float
    length: Tail
    clip: float = math.inf

    def square(self) -> float:
        """Logarithm of a bound of the mean square."""
        return min(self.clip, log_sum([self.offset, self.slope + self.length.square()]))

    def beyond(self, level: float) -> float:
        """Logarithm of a bound of the mean of (ŷ² − v)₊, by log v."""
        if level >= self.clip or self.slope == -math.inf < self.offset <= level:
            return -math.inf
        if level <= self.offset:
            return self.square()
        rest = level + math.log1p(-math.exp(self.offset - level))
        return min(self.square(), self.slope + self.length.beyond(rest - self.slope))


def attention_predictions(
    heads: float, sparsity: float, dimension: float, tokens: float, lipschitz: float, token_moment: float
) -> Predictions:
    r"""$\hat y^2\le L^2(1+H(d(1+\frac1q)+\max_j\|x_j\|^2))$: heads are averages of tokens; `lipschitz` is $\log L$."""
    encoding = log_sum([log(dimension), log(dimension) - log(sparsity)])
    offset = 2 * lipschitz + log_sum([0, log(heads) + encoding])
    return Predictions(offset, 2 * lipschitz + log(heads), Tail(log(token_moment) + log(dimension), copies=log(tokens)))


def recurrent_predictions(
    depth: int, radius: float, state: float, sparsity: float, dimension: float, token_moment: float
) -> Predictions:
    r"""$\hat y^2\le\sum_{k<L}(R^2/k)^k+(R^2/L)^L(2+q+2r_h^2+\|x\|^2)$; `radius` and `state` are logarithms.

    With $w_k=\|(W_k,b_k)\|_F$ and $s_0^2=1+\|h^\to\|^2+\|h^\leftarrow\|^2+\|z\|^2$ the output of a layer has
    $s_k^2\le1+w_k^2s_{k-1}^2$, so $\hat y^2\le\sum_{k=2}^L\prod_{i\ge k}w_i^2+\prod_iw_i^2\,s_0^2$, and the product of
    $j$ squares is at most $(R^2/j)^j$ (inequality of means). The encoding has $\|z\|^2=\|x\|^2+1+q$.
    """
    products = [k * (2 * radius - math.log(k)) if radius > -math.inf else -math.inf for k in range(1, depth + 1)]
    start = log_sum([log(2 + sparsity), math.log(2) + 2 * state])
    offset = log_sum([*products[:-1], products[-1] + start])
    return Predictions(offset, products[-1], Tail(log(token_moment) + log(dimension)))


def left_out(predictions: Predictions, labels: Tail, truncation: float) -> tuple[float, float]:
    """Logarithms of what is left out, predictions and labels, at the best split; `truncation` is a logarithm."""
    splits = (
        (
            predictions.beyond(truncation + 2 * math.log(share)) - math.log(share),
            labels.beyond(truncation + 2 * math.log1p(-share)) - math.log1p(-share),
        )
        for share in _SPLITS
    )
    return min(splits, key=log_sum)


def whole_risk(predictions: Predictions, labels: Tail) -> float:
    r"""Logarithm of $(\sqrt{\mathbb E\hat y^2}+\sqrt{\mathbb Ey^2})^2$, which no network of the class exceeds."""
    return 2 * log_sum([predictions.square() / 2, labels.square() / 2])


def _error(name: str, source: str, predictions: Predictions, labels: Tail, truncation: float) -> Bound:
    predicted, labelled = left_out(predictions, labels, log(truncation))
    terms = {"predictions": exp(predicted), "labels": exp(labelled)}
    return Bound(name, terms, explicit=True, source=source, trivial=exp(whole_risk(predictions, labels)))


@checked
def truncation_error(
    *,
    truncation: Truncation,
    tokens: Tokens,
    dimension: TokenDimension,
    sparsity: Sparsity,
    heads: Heads,
    readout_norm: ReadoutNorm,
    hidden_norm: HiddenNorm,
    token_moment: TokenMoment = 1.0,
    label_moment: LabelMoment = 1.0,
    label_exponent: LabelExponent = 1.0,
) -> Bound:
    r"""Risk of a Transformer minus its truncated risk (mousavi2025, Lemma 20).

    $\min_\theta\frac1\theta\mathbb E(\hat y^2-\theta^2\tau)_++\frac1{1-\theta}\mathbb E(y^2-(1-\theta)^2\tau)_+$ with
    $\hat y^2\le A+B\max_j\|x_j\|^2$, $B=Hr_{m,a}^2R_{m,w}^2$, $A=r_{m,a}^2R_{m,w}^2+Bd(1+\frac1q)$: the first is at
    most $\frac{BN}\theta ve^{-v/(2C_xed)}$ at $v=(\theta^2\tau-A)/B\ge2C_xed$, the second $\frac
    w{1-\theta}e^{-\frac s{2e}(w/C_y)^{1/s}}$ at $w=(1-\theta)^2\tau\ge(2e)^sC_y$. So $n^{-1/2}$ needs a $\tau$ of order
    $\kappa^2\log(\kappa^2N\sqrt n)+\log^s\sqrt n$, as the lemma says, with $\kappa^2=Br_z^2$.
    """
    lipschitz = log(readout_norm) + log(hidden_norm)
    return _error(
        "truncation-error",
        "mousavi2025, Lemma 20",
        attention_predictions(heads, sparsity, dimension, tokens, lipschitz, token_moment),
        Tail(log(label_moment), label_exponent),
        truncation,
    )


@checked
def rnn_truncation_error(
    *,
    truncation: Truncation,
    dimension: TokenDimension,
    sparsity: Sparsity,
    output_depth: OutputDepth,
    parameter_norm: Norm,
    state_radius: StateRadius,
    token_moment: TokenMoment = 1.0,
    label_moment: LabelMoment = 1.0,
    label_exponent: LabelExponent = 1.0,
) -> Bound:
    r"""Risk of a bidirectional recurrent network minus its truncated risk (mousavi2025, Lemma 34).

    As `truncation_error`, with $\hat y^2\le A+B\|x\|^2$ for the token of one position: $B=(R^2/L)^L$ for an output
    network of depth $L$, $A=\sum_{k<L}(R^2/k)^k+B(2+q+2r_h^2)$. The tokens' number does not enter.
    """
    return _error(
        "rnn-truncation-error",
        "mousavi2025, Lemma 34",
        recurrent_predictions(
            int(output_depth), log(parameter_norm), log(state_radius), sparsity, dimension, token_moment
        ),
        Tail(log(label_moment), label_exponent),
        truncation,
    )
