r"""Parity of T bits, bit by bit or in one pass: what the weights of both constructions weigh, and what follows.

Source: lintilhac2026, Theorems 7, 8 and 16, with Theorem 10 (norms) and Theorems 13 and 14 (traces).
Departures: the formulas are lost in the text at hand and derived here. The chain compares positions by an identity with
as many entries as their codes have, where the paper counts one: T with one-hot codes, and far fewer with short ones
(`dim`), whose scores are divided by what separates two codes. The paper's exponential is a probability over training
samples (`reading="delta"`); risk is compared with risk in `reading="risk"`.
Guarantee: norms and traces are exact for the constructions, up to the mass on inactive positions (1e-6). The bounds on
top are orders of magnitude and no certificates: they leave out how the trace changes under the noise, and ask the
trained network to be as short and as flat as the construction.

Both networks read the bits through one attention, $a=(1-\lambda)j/k$ for $j$ ones among $k$ bits, turn $a$ into the
parity by a wave of ReLUs with slope $2k$, and read that out: $k=T$ in one pass, $k=2$ for a step of the chain.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from genscope.bounds._base import Bound
from genscope.bounds._parameters import Choice, Number, checked, count
from genscope.refusal import Refusal

LEAKAGE = 0.5
INACTIVE = 1e-6
MARGIN = 0.25  # squared loss of an output halfway between the bits
Codes = tuple[int, float]  # dimension of the positions' codes, and the largest inner product of two of them

Method = Literal["one-pass", "chain"]
Weights = Literal["paper", "tuned"]
Length = Annotated[
    float, Number("context length T, the bits of the parity", low=2, high=10**9, closed=(True, True), whole=True)
]
Samples = Annotated[float, count("sample size n", most=1e200)]
Dimension = Annotated[
    float | None,
    Number("dimension of the positions' codes in a chain; by default T, one-hot", 1, 10**9, (True, True), whole=True),
]
Coherence = Annotated[
    float, Number("largest inner product of two positions' codes, of length 1", -1, 1, closed=(True, False))
]
Width = Annotated[
    float | None, Number("width σ of the posterior; by default the best one", 1e-90, 1e90, closed=(True, True))
]


@dataclass(frozen=True)
class WeightBlocks:
    r"""Squared norms of the weights, and mean squared gradients of the output, which are zero for all other blocks."""

    norm_squared: Mapping[str, float]
    gradient_squared: Mapping[str, float]

    @property
    def total(self) -> float:
        r"""$\|\theta\|^2$."""
        return sum(self.norm_squared.values())

    @property
    def trace(self) -> float:
        r"""$\mathrm{Tr}\,\nabla^2L=2\,\mathbb E\|\nabla f\|^2$ at an interpolator of the mean squared loss."""
        return 2 * sum(self.gradient_squared.values())

    def rescaled(self, square: float) -> "WeightBlocks":
        r"""After $(E,b,F)\mapsto(cE,cb,F/c)$, which keeps the function; `square` is $c^2$."""
        factor = {"expand": square, "threshold": square, "contract": 1 / square}
        norms = {name: value * factor.get(name, 1.0) for name, value in self.norm_squared.items()}
        gradients = {name: value / factor.get(name, 1.0) for name, value in self.gradient_squared.items()}
        return WeightBlocks(norms, gradients)


def one_pass(context_length: int, *, leakage: float = LEAKAGE, limit: bool = False) -> WeightBlocks:
    r"""The construction for one component of degree k = T; `limit` gives the gradients without leakage.

    The output position, whose bit is 0, is the only other one, so $a=(1-\lambda)j/k$ exactly, $\lambda=\rho/4k$,
    $j\sim\mathrm{Bin}(k,\frac12)$. Of the thresholds $\vartheta_u$, $2(j+1)$ lie below $a$, and without leakage
    $\sum_u(j-k\vartheta_u)_+=(j+1)^2$, $\sum_u(j-k\vartheta_u)_+^2=\frac23j(j+1)(j+2)+\frac58(j+1)$.
    """
    k = context_length
    pairs = k // 2 + 1  # even numbers of ones
    leak = 0.0 if limit else leakage / (4 * k)
    first, second, third = k / 2, k * (k + 1) / 4, k * k * (k + 3) / 8  # moments of j
    squares = 2 / 3 * (third + 3 * second + 2 * first) + 5 / 8 * (first + 1)
    squares += -2 * leak * (third + 2 * second + first) + 2 * leak**2 * (third + second)
    sharpness, select = math.log((4 * k / leakage - 1) / k), math.log(k / INACTIVE)
    quarters = 16 * (pairs - 1) * pairs * (2 * pairs - 1) / 6 + 5 / 4 * pairs
    return WeightBlocks(
        {
            "score": float(k),
            "key": (k + 1) * sharpness**2,
            "value": 1.0,
            "expand": 4.0 * pairs,
            "threshold": quarters / k**2,
            "contract": 16.0 * k * k * pairs,
            "select": k * select**2,
            "readout": 1.0,
        },
        {
            "readout": 1.5,
            "contract": squares / k**2,
            "threshold": 4.0 * k * k * (k + 2),
            "expand": 8 * (1 - leak) ** 2 * (third + second),
        },
    )


def chain(
    context_length: int,
    *,
    step: int = 1,
    leakage: float = LEAKAGE,
    limit: bool = False,
    codes: Codes | None = None,
) -> WeightBlocks:
    r"""One step of the chain, $y_t=x_t\oplus y_{t-1}$, by attention to the two positions with id $t$.

    $a=(1-\lambda)\frac j2+\lambda m$ with $j=x_t+y_{t-1}$ and $m$ the mean of the $T+t-1$ other visible bits, of which
    that at position T is 0. On the plateaus the leakage moves $a$ across no threshold, so the gradients need the
    moments of $m$ given $y_{t-1}$ only. `limit` leaves the leakage out: all steps $t\ge1$ are then alike. With `codes`
    other positions leak by their distance, so that gradients are known in the limit alone.
    """
    if codes is not None and not limit:
        raise Refusal("chain got codes without limit=True: closed forms exist only in the limit. Give limit=True.")
    t, k = step, 2
    sharpness, select = chain_scales(context_length, leakage=leakage, codes=codes)
    dim = context_length if codes is None else codes[0]
    others = context_length + t - 1
    leak = 0.0 if limit else others / (k * math.exp(sharpness) + others)
    thresholds = [(1 + quarter) / k for quarter in (-0.75, -0.25, 0.25, 0.75)]
    gradients = {"readout": 1.5, "contract": 0.0, "threshold": 0.0, "expand": 0.0}
    before = (0,) if t == 0 else (0, 1)  # y_{t-1}
    for y in before:
        mean, variance = _other_bits(context_length, t, y)
        spread = (leak / others) ** 2 * variance
        for x in (0, 1):
            middle = (1 - leak) * (x + y) / k + leak * mean / others
            passed = [threshold for threshold in thresholds if threshold < (x + y) / k]
            share = 1 / (2 * len(before))
            slope = (2 * k) ** 2
            gradients["contract"] += share * sum((middle - each) ** 2 + spread for each in passed)
            gradients["threshold"] += share * slope * len(passed)
            gradients["expand"] += share * slope * len(passed) * (middle**2 + spread)
    norms = {
        "score": float(dim),
        "key": dim * sharpness**2,
        "value": 1.0,
        "expand": float(len(thresholds)),
        "threshold": sum(each**2 for each in thresholds),
        "contract": (2.0 * k) ** 2 * len(thresholds),
        "select": dim * select**2,
        "readout": 1.0,
    }
    return WeightBlocks(norms, gradients)


def chain_scales(context_length: int, *, leakage: float = LEAKAGE, codes: Codes | None = None) -> tuple[float, float]:
    r"""Scores of the chain's two attentions: $c=\log\frac{(2T-2)(8/\rho-1)}2$ and $M=\log(2T/\tau)$.

    Both are differences between the positions that are looked for and the others. Codes of length 1 whose inner
    products are at most $\mu$ leave $1-\mu$ of a scale, so that both are divided by it.
    """
    gap = 1.0 if codes is None else 1 - codes[1]
    first, second = math.log((context_length - 1) * (8 / leakage - 1)), math.log(2 * context_length / INACTIVE)
    return first / gap, second / gap


def _other_bits(context_length: int, step: int, y: int) -> tuple[float, float]:
    r"""Mean and variance of the number of ones at the other visible positions, given $y_{t-1}=y$.

    $y_0,\dots,y_{t-1}$ are independent and $x_s=y_s\oplus y_{s-1}$. Given the last of them, the pairs of dependent bits
    are $x_0=y_0$, $x_{t-1}=y_{t-2}\oplus y$ and, at t = 2, $x_0$ with $x_1$.
    """
    if step == 0:
        return (context_length - 1) / 2, (context_length - 1) / 4
    if step == 1:  # x_0 = y
        return y + (context_length - 2) / 2, (context_length - 2) / 4
    bits, sign = context_length + step - 2, 1 - 2 * y
    pairs = 1 + sign + (sign if step == 2 else 0)
    return bits / 2, bits / 4 + 2 * pairs / 4


def blocks(
    method: Method, context_length: int, *, weights: Weights = "paper", codes: Codes | None = None
) -> WeightBlocks:
    """The blocks of a method, gradients in the limit of no leakage, where they are largest."""
    if method == "one-pass":
        built = one_pass(context_length, limit=True)
    else:
        built = chain(context_length, limit=True, codes=codes)
    return built if weights == "paper" else _tuned(built, method, context_length, codes)


def _tuned(built: WeightBlocks, method: Method, context_length: int, codes: Codes | None) -> WeightBlocks:
    r"""Three changes that keep the function: balanced factors, centered scores, and the best rescaling of the ReLUs.

    $AK$ has the singular value $c\sqrt T$ (one pass) or $T$ times $c$ (chain), and balanced factors weigh twice their
    sum. A constant may be taken off each row of the second scores: $T/(T+1)$ times $M^2$ is left of one row with
    $T$ entries $-M$ and a zero, $(T-1)M^2$ of $M$ times an identity over one-hot codes; short ones are centered.
    """
    size = context_length
    if method == "one-pass":
        sharpness, select = math.sqrt(built.norm_squared["key"] / (size + 1)), built.norm_squared["select"] / (size + 1)
        factors = sharpness * math.sqrt(size)
    else:
        sharpness, select = chain_scales(size, codes=codes)
        factors = sharpness * (size if codes is None else codes[0])
        select = (size - 1) * select**2 if codes is None else built.norm_squared["select"]
    lighter = replace(built, norm_squared={**built.norm_squared, "score": factors, "key": factors, "select": select})

    def cost(log_square: float) -> float:
        scaled = lighter.rescaled(math.exp(log_square))
        return scaled.total * scaled.trace  # sums of exponentials in log c^2: their product has one minimum

    return lighter.rescaled(math.exp(_smallest(cost, -10.0, 40.0)))


def _smallest(function, low: float, high: float) -> float:
    """Where a function with one minimum is smallest, by golden sections."""
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if function(left) < function(right) else (left, high)
    return (low + high) / 2


@checked
def parity_chain(
    *,
    context_length: Length,
    samples: Samples,
    method: Annotated[Method, Choice("one-pass: all bits at once; chain: T steps of two bits each")] = "chain",
    weights: Annotated[
        Weights, Choice("paper: as constructed; tuned: rescaled to a smaller product of norm and trace")
    ] = "paper",
    reading: Annotated[
        Literal["risk", "delta"],
        Choice("risk: chance of a wrong answer; delta: log chance, over training samples, of a loss of 1/4"),
    ] = "risk",
    constant: Annotated[
        float, Number("constant C of the loss (the paper fits 0.01 to 0.1)", 1e-9, 1e9, closed=(True, True))
    ] = 0.1,
    sigma: Width = None,
    dim: Dimension = None,
    coherence: Coherence = 0.0,
) -> Bound:
    r"""Error of parity in one pass or by a chain of thought (lintilhac2026, Theorems 7, 8 and 16).

    Risk: $4S\big(\frac{\sigma^2}2H+C\|\theta\|/(\sigma\sqrt n)\big)$, at the best $\sigma$
    $6S(C^2\|\theta\|^2H/n)^{1/3}$, with $S=T$ steps of the chain (1 in one pass): a wrong bit needs a squared loss of
    1/4 (Markov), and the first wrong step has a right prefix (union over the steps). Delta: the paper solves its bound
    at loss 1/4 for the confidence, $\log\delta=\log S+\frac{\|\theta\|^2}{2\sigma^2}-\frac n{2C^2}(\frac14-
    \frac{\sigma^2}2H)_+^2$; what exceeds 0 says nothing. $\delta$ is a probability of training samples, not of inputs.
    That codes of the given dimension and coherence exist is the caller's word (`constructions.cyclic_code` finds some).
    """
    if (dim is None and coherence) or (dim is not None and method == "one-pass"):
        raise Refusal(
            f"parity-chain got dim={dim} and coherence={coherence} with method={method}: short codes encode the "
            "positions of a chain, and one-hot codes (no dim) have coherence 0. Give dim with the chain, or leave both "
            "out."
        )
    built = blocks(method, int(context_length), weights=weights, codes=None if dim is None else (int(dim), coherence))
    steps = context_length if method == "chain" else 1
    source = f"lintilhac2026, {'Theorem 7' if method == 'chain' else 'Theorem 8'}, derived"
    if reading == "risk":
        noise = _risk_sigma(built, constant, samples) if sigma is None else sigma
        terms = {
            "sharpness": 2 * steps * noise**2 * built.trace,
            "complexity": 4 * steps * constant * math.sqrt(built.total / samples) / noise,
        }
        return Bound("parity-chain", terms, explicit=False, source=source, kind="estimate", trivial=1.0)
    noise = _delta_sigma(built, constant, samples) if sigma is None else sigma
    room = max(MARGIN - noise**2 * built.trace / 2, 0.0)
    terms = {
        "union": math.log(steps),
        "complexity": built.total / (2 * noise**2),
        "samples": -samples / (2 * constant**2) * room**2,
    }
    return Bound("parity-chain", terms, explicit=False, source=source, kind="estimate", trivial=0.0)


def _risk_sigma(built: WeightBlocks, constant: float, samples: float) -> float:
    r"""$\sigma_*^3=C\|\theta\|/(H\sqrt n)$."""
    return math.cbrt(constant * math.sqrt(built.total / samples) / built.trace)


def _delta_sigma(built: WeightBlocks, constant: float, samples: float) -> float:
    r"""The width with the smallest $\delta$, or, where every width is vacuous, one that leaves no room at all.

    With $u=\sigma^2$, $\log\delta$ falls until $\frac{n}{C^2}Hu^2(\frac14-\frac{uH}2)=\|\theta\|^2$, whose left side
    rises up to $u=1/3H$.
    """
    trace = built.trace

    def surplus(square: float) -> float:
        return samples / constant**2 * trace * square**2 * (MARGIN - square * trace / 2) - built.total

    low, high = 0.0, 1 / (3 * trace)
    if surplus(high) < 0:
        return math.sqrt(1 / (2 * trace))
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if surplus(middle) > 0 else (middle, high)
    return math.sqrt(high)
