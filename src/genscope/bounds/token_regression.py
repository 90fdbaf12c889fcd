r"""How many samples a Transformer needs for token regression: covers and risks, logarithmic in the number of tokens.

The class: $\hat y_i=a^\top\sigma(Wf_i+b)$ on the outputs $f_i=(\sum_j\alpha^{(h)}_{ij}z_j)_{h\le H}\in\mathbb R^{HD}$
of $H$ heads with $\alpha^{(h)}_{ij}=\mathrm{softmax}_j\langle z_i,W^{(h)}_{QK}z_j\rangle$; $\|a\|\le r_{m,a}$,
$\|(W,b)\|_F\le R_{m,w}$, $\|W^{(h)}_{QK}\|_{2,1}\le r_{QK}$ and all $\|z_j\|\le r_z$. Below, $L=r_{m,a}R_{m,w}$.

Source: mousavi2025, Proposition 17 (with Lemmas 12 to 16), Lemma 18, Corollary 19, Theorems 3 and 10.
Departures: constants are explicit. Lemma 16's first branch is false for a supremum over the sample (see
`token_regression_cover`); the matrix cover of `covering` takes its place.
Guarantee: explicit forms are proved; order forms hold up to a constant that is not known.
"""

import math
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log, log_sum, softplus
from genscope.bounds._parameters import Choice, Constant, Epsilon, Form, checked, count, norm, positive
from genscope.bounds.covering import matrix_size, refuse_options
from genscope.bounds.packing import ball_size
from genscope.bounds.risk import Confidence, Samples, dudley, generalization
from genscope.bounds.token_limits import Sparsity, TokenDimension, Tokens

Heads = Annotated[float, count("number of heads H")]
Embedding = Annotated[float, count("dimension D of a token with its encoding")]
Width = Annotated[float, count("hidden units m")]
ReadoutNorm = Annotated[float, norm("bound of ‖a‖, the output weights")]
HiddenNorm = Annotated[float, norm("bound of ‖(W, b)‖ (Frobenius), the hidden weights")]
QueryKey21 = Annotated[float, norm("bound of ‖W_QK‖₂,₁ of each head")]
TokenNorm = Annotated[float, norm("bound of all ‖z‖")]
Truncation = Annotated[float, positive("largest loss counted: min((ŷ − y)², τ)")]
EmpiricalRisk = Annotated[float, norm("risk on the sample")]
TokenMoment = Annotated[float, positive("C_x: the r-th moment of ‖x‖ is at most (C_x d r)^(r/2); Gaussian: 1")]
ReadoutScale = Annotated[float, norm("r_a, where ‖a_g‖ ≤ r_a / √m_g")]
HiddenScale = Annotated[float, norm("r_w, where ‖(W_g, b_g)‖ ≤ r_w √m_g (Frobenius)")]
LinkWidth = Annotated[float, count("hidden units m_g of the link")]
Approximation = Annotated[float, norm("squared error of the two-layer link")]


class Sizes(NamedTuple):
    """Nats of the parts of the cover; norms and accuracy are logarithms."""

    heads: float
    embedding: float
    width: float
    lipschitz: float
    query_key: float
    token: float
    accuracy: float

    def readout(self) -> float:
        """The two-layer network, by volumes."""
        rho = softplus(log(self.heads) + 2 * self.token) / 2
        return ball_size(
            self.width * (self.heads * self.embedding + 2), math.log(4) + self.lipschitz + rho - self.accuracy
        )

    def volume(self) -> float:
        """Scores, by volumes."""
        return ball_size(self.heads * self.embedding**2, self._ratio() - log(self.heads) / 2)

    def matrix(self, points: float) -> float:
        """Scores, by the matrix cover of so many points (a logarithm)."""
        return matrix_size(2 * self._ratio(), log(self.heads * self.embedding) + points)

    def maurey(self) -> float:
        """Scores, as printed: not valid for a supremum over the sample."""
        return exp(2 * self._ratio() + log(log(2 * self.heads * self.embedding**2)))

    def _ratio(self) -> float:
        """Of H r_QK r_z, the reach of all heads, to the accuracy of their scores."""
        return math.log(4) + log(self.heads) + self.query_key + 3 * self.token + self.lipschitz - self.accuracy


@checked
def token_regression_cover(
    *,
    epsilon: Epsilon,
    heads: Heads,
    embedding: Embedding,
    width: Width,
    readout_norm: ReadoutNorm,
    hidden_norm: HiddenNorm,
    query_key_21: QueryKey21,
    token_norm: TokenNorm,
    points: Annotated[float | None, count("tokens n N of the sample (default: any number)")] = None,
    form: Annotated[
        Literal["explicit", "printed"], Choice("explicit: proved; printed: with a false branch")
    ] = "explicit",
) -> Bound:
    r"""Log covering number of one-layer Transformers, in the sup norm over a sample (mousavi2025, Proposition 17).

    Explicit (Proposition 17): $m(HD+2)\log(1+8L\rho/\epsilon)+\min\{\mathrm{mat},HD^2\log(1+8\sqrt
    Hr_{QK}r_z^3L/\epsilon)\}$ with $\rho=\sqrt{1+Hr_z^2}$ and `matrix_cover` of $z\mapsto\Theta^\top z$,
    $\|\Theta\|_{2,1}\le Hr_{QK}$, at $\epsilon_{QK}=\epsilon/(4Lr_z^2)$ on `points`. Without points only the second
    branch is left, which needs none.

    Proof. Read-out: $|a^\top\sigma(Wf+b)-\hat a^\top\sigma(\hat Wf+\hat b)|\le\rho(R_{m,w}\|a-\hat a\|+r_{m,a}
    \|(W,b)-(\hat W,\hat b)\|_F)$, each half of $\epsilon/2$ by volumes. Attention: softmax turns scores into weights
    with constant 2 (Lemma 15), so $\|f_i-\hat f_i\|\le2r_z^2\|(\Theta-\hat\Theta)^\top z_i\|$, which the read-out
    multiplies by at most $L$: together $\epsilon/2$.

    Printed: $\min\{16r_z^6L^2H^2r_{QK}^2\log(2HD^2)/\epsilon^2,\dots\}$ instead. The first branch, Lemma 16, is NOT
    VALID for a supremum over the sample: its lemma is about a mean over the sample. For one head whose $W_{QK}$ has a
    single column $w\in\mathbb R^{100}$, and tokens that are a fine net of the unit sphere, a cover of all $\|w\|\le1$
    at $\epsilon_{QK}=\frac12$ has more than $e^{69}$ elements; the branch says $e^{39.6}$.
    """
    lipschitz = log(readout_norm) + log(hidden_norm)
    sizes = Sizes(heads, embedding, width, lipschitz, log(query_key_21), log(token_norm), log(epsilon))
    if form == "printed":
        refuse_options("token_regression_cover", form, points=points)
        branch = sizes.maurey()
    else:
        branch = math.inf if points is None else sizes.matrix(log(points))
    terms = {"readout": sizes.readout(), "query-key": min(branch, sizes.volume())}
    source = "mousavi2025, Proposition 17" + (" (erratum: its first branch is false)" if form == "printed" else "")
    return Bound("token-regression-cover", terms, explicit=form == "explicit", source=source)


@checked
def token_regression_risk(
    *,
    samples: Samples,
    tokens: Tokens,
    heads: Heads,
    embedding: Embedding,
    width: Width,
    readout_norm: ReadoutNorm,
    hidden_norm: HiddenNorm,
    query_key_21: QueryKey21,
    token_norm: TokenNorm,
    truncation: Truncation = 1.0,
    empirical_risk: EmpiricalRisk = 0.0,
    confidence: Confidence = 0.95,
    form: Form = "explicit",
    constant: Constant = None,
) -> Bound:
    r"""Truncated risk of one-layer Transformers, on tokens of bounded length (mousavi2025, Corollary 19).

    Explicit (Corollary 19): $\hat R_\tau+2\hat{\mathfrak R}+3\tau\sqrt{\log(2/\delta)/(2n)}$ by Dudley's integral of
    `token_regression_cover`, since $\min(\cdot^2,\tau)$ is $2\sqrt\tau$-Lipschitz. Gaussian tokens are as short as
    `token_radius` says with probability $1-(nN)^{-1/2}$, which is to be added to $\delta$.
    Order (Corollary 19): $\hat R_\tau+c_0\tau\sqrt{(mHD+\min(r_z^6L^2H^2r_{QK}^2,HD^2))/n}$; $\delta$ is in $c_0$.
    """
    lipschitz = log(readout_norm) + log(hidden_norm)
    sizes = Sizes(heads, embedding, width, lipschitz, log(query_key_21), log(token_norm), 0.0)
    name, source = "token-regression-risk", "mousavi2025, Corollary 19"
    if form == "order":
        norms = 2 * (3 * sizes.token + lipschitz + log(heads) + sizes.query_key)
        capacity = log_sum([log(width * heads * embedding), min(norms, log(heads * embedding**2))])
        complexity = exp(log(constant or 1.0) + log(truncation) + (capacity - log(samples)) / 2)
        terms = {"empirical risk": empirical_risk, "complexity": complexity}
        return Bound(name, terms, explicit=False, source=source, trivial=truncation)
    refuse_options("token_regression_risk", form, constant=constant)

    def log_cover(accuracy: float) -> float:
        at = sizes._replace(accuracy=accuracy)
        return at.readout() + min(at.matrix(log(samples) + log(tokens)), at.volume())

    return truncated_risk(
        name,
        source,
        log_cover,
        samples=samples,
        truncation=truncation,
        empirical_risk=empirical_risk,
        confidence=confidence,
    )


def truncated_risk(
    name: str,
    source: str,
    log_cover: Callable[[float], float],
    *,
    samples: float,
    truncation: float,
    empirical_risk: float,
    confidence: float,
) -> Bound:
    """Population risk from a cover of the predictions, whose nats are given by the logarithm of its accuracy."""
    lipschitz = math.log(2) + log(truncation) / 2  # of the truncated squared loss
    complexity = dudley(lambda epsilon: log_cover(log(epsilon) - lipschitz), range=truncation, samples=samples)
    gap = generalization(rademacher=complexity.value, range=truncation, samples=samples, confidence=confidence)
    terms = {"empirical risk": empirical_risk, **gap.terms}
    return Bound(name, terms, explicit=True, source=source, trivial=truncation)


@checked
def token_radius(
    *,
    samples: Samples,
    tokens: Tokens,
    dimension: TokenDimension,
    moment: TokenMoment = 1.0,
) -> float:
    r"""$r_x=\sqrt{3C_xed\log(nN)}$: no token is longer, but with probability at most $(nN)^{-1/2}$ (Lemma 12).

    Markov's inequality at the moment $r^2/(C_xed)$: $\mathbb P(\max\|x\|\ge r)\le nNe^{-r^2/(2C_xed)}$. With its
    encoding a token has $\|z\|^2=\|x\|^2+d(1+1/q)$.
    """
    nats = max(log(samples * tokens), 1 / 3)  # Markov's inequality needs a moment of order 1 at least
    return exp((math.log(3) + log(moment) + 1 + log(dimension) + log(nats)) / 2)


@checked
def excess_risk(
    *,
    samples: Samples,
    tokens: Tokens,
    dimension: TokenDimension,
    sparsity: Sparsity,
    width: LinkWidth,
    readout_scale: ReadoutScale = 1.0,
    hidden_scale: HiddenScale = 1.0,
    query_key_21: Annotated[float | None, norm("bound of ‖W_QK‖₂,₁ of each head (Theorem 10)")] = None,
    approximation: Approximation = 0.0,
    constant: Constant = None,
) -> Bound:
    r"""Order of the risk of the ERM with as many heads as tokens per label (mousavi2025, Theorem 10).

    Theorem 10: $\varepsilon+c_0C_1\sqrt{(m_gq(d+q)+\min(r_z^6r_a^2r_w^2r_{QK}^2q^2,q(q^2+d^2)))/n}$,
    $C_1=qr_a^2r_w^2r_z^2$. Without `query_key_21` Theorem 3, for a ball of all parameters:
    $\varepsilon+c_0R^4qd\sqrt{(m_gq(d+q)+q^3+qd^2)/n}$, $R^2=r_a^2/m_g+m_gr_w^2+q^3/d^2$ (exponents of $R$ and $d$ are
    illegible in our text and taken from its proof).

    >>> from genscope.bounds import sample_size
    >>> task = {"dimension": 10, "sparsity": 2, "width": 4, "query_key_21": 1.0}
    >>> few, many = (sample_size(lambda n, N=N: excess_risk(samples=n, tokens=N, **task), 0.1) for N in (10, 10_000))
    >>> 1 < many / few < 2  # a thousand times the tokens
    True
    """
    q, d, units = log(sparsity), log(dimension), log(width)
    lipschitz = log(readout_scale) + log(hidden_scale)
    readout = units + q + log(dimension + sparsity)
    if query_key_21 is None:
        square = log_sum([2 * log(readout_scale) - units, units + 2 * log(hidden_scale), 3 * q - 2 * d])
        scale, source = 2 * square + q + d, "mousavi2025, Theorem 3"
        attention = log_sum([3 * q, q + 2 * d])
    else:
        radius = log(token_radius(samples=samples, tokens=tokens, dimension=dimension))
        token = log_sum([2 * radius, d, d - q])  # log r_z²
        scale, source = q + 2 * lipschitz + token, "mousavi2025, Theorem 10"
        attention = min(3 * token + 2 * (lipschitz + log(query_key_21) + q), log_sum([3 * q, q + 2 * d]))
    rate = exp(log(constant or 1.0) + scale + (log_sum([readout, attention]) - log(samples)) / 2)
    return Bound("excess-risk", {"approximation": approximation, "complexity": rate}, explicit=False, source=source)
