r"""Recurrent networks for token regression: what they can learn, and how wide or heavy they have to be.

Upper bounds are for the bidirectional network of `genscope.models.mousavi2025` with $\|\mathrm{vec}\,\Theta\|\le R$
whose transitions are $1/N$-Lipschitz in the state. Lower bounds are for any bidirectional network whose states stay in
a ball of radius $r_h$ and whose output is $\mathfrak L/r_h$-Lipschitz in $(U^\to h^\to,U^\leftarrow h^\leftarrow)$, on
1STR with $y_j=\langle u,x_{t_j}\rangle$, $x\sim\mathcal N(0,I)$, $t_j$ uniform; or with labels of the tokens that are
uniform on the sphere of radius $\sqrt N$ (the remark after Proposition 6).

Source: mousavi2025, Lemmas 29 and 30, Corollary 33; Propositions 6 and 35, Theorem 7.
Departures: all constants are explicit. The states of both directions have $2d_h$ coordinates, not $d_h$. The printed
norm bound rests on the false branch of Lemma 41 (`packing_printed`); Sudakov's inequality repairs it, for the Frobenius
norm.
Guarantee: explicit forms are proved, beside their code.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log, log_sum, softplus
from genscope.bounds._parameters import Choice, Constant, Epsilon, Form, Number, checked, count, norm
from genscope.bounds.covering import refuse_options
from genscope.bounds.packing import ball_size
from genscope.bounds.risk import Confidence, Samples, sample_size
from genscope.bounds.token_limits import Tokens
from genscope.bounds.token_regression import EmpiricalRisk, TokenNorm, Truncation, truncated_risk

TransitionParameters = Annotated[float, count("parameters of the transition, for one direction")]
OutputParameters = Annotated[float, count("parameters of the output network")]
TransitionDepth = Annotated[float, Number("layers of the transition", 1, 1000, (True, True), whole=True)]
OutputDepth = Annotated[float, Number("layers of the output network", 1, 1000, (True, True), whole=True)]
Norm = Annotated[float, norm("R, the norm of all parameters together")]
StateRadius = Annotated[float, norm("r_h, the largest norm of a state")]
SeveralTokens = Annotated[float, Number("number of tokens N", low=2, high=1e300, closed=(True, True), whole=True)]
Risk = Annotated[float, Number("mean squared error, of labels with variance 1", closed=(True, False))]
Law = Annotated[
    Literal["gaussian", "sphere"],
    Choice("labels of a prompt: independent normals, or uniform on the sphere of radius √N"),
]
OutputLipschitz = Annotated[float, norm("𝔏, where the output is 𝔏/r_h-Lipschitz in U h")]


# --- Learning --------------------------------------------------------------------------------------------------------


@checked
def rnn_cover(
    *,
    epsilon: Epsilon,
    tokens: Tokens,
    transition_parameters: TransitionParameters,
    output_parameters: OutputParameters,
    transition_depth: TransitionDepth,
    output_depth: OutputDepth,
    parameter_norm: Norm,
    state_radius: StateRadius,
    token_norm: TokenNorm,
) -> Bound:
    r"""Log covering number of bidirectional recurrent networks, by counting parameters (mousavi2025, Lemma 29).

    $p_y\log(1+4RK_y/\epsilon)+2p_h\log(1+8eC_yNRK_h/\epsilon)$, where a network of depth $l$ moves by at most $K$ times
    what its parameters move, and $C_y=(R/\sqrt{L_y})^{L_y}$ bounds the product of the norms of the output's layers.

    Proof. Output: accuracy $\epsilon/2$. States: $\Delta_{i+1}\le(1+\frac1N)\Delta_i+\epsilon_h$, hence $\Delta_i\le
    eN\epsilon_h$ in each direction, which the output multiplies by at most $C_y$; $\epsilon_h=\epsilon/(4eC_yN)$.
    Depth: layers have $\|(W_k,b_k)\|_F\le R$, so with $s_k^2=1+\|x_k\|^2\le1+R^2s_{k-1}^2$ a network moves by at most
    $\sum_kR^{l-k}s_{k-1}\|\Delta(W_k,b_k)\|\le K\|\Delta\Theta\|$, $K^2=\sum_kR^{2(l-k)}s_{k-1}^2$ (Lemma 30).
    """
    output, transitions = rnn_sizes(
        log(epsilon),
        log(tokens),
        (transition_parameters, output_parameters),
        (int(transition_depth), int(output_depth)),
        log(parameter_norm),
        log(state_radius),
        log(token_norm),
    )
    terms = {"output": output, "transitions": transitions}
    return Bound("rnn-cover", terms, explicit=True, source="mousavi2025, Lemma 29")


def rnn_sizes(
    accuracy: float,
    tokens: float,
    parameters: tuple[float, float],
    depths: tuple[int, int],
    radius: float,
    state: float,
    token: float,
) -> tuple[float, float]:
    """Nats of the output network and of both transitions; all but parameters and depths are logarithms."""
    gain = depths[1] * (radius - math.log(depths[1]) / 2)  # C_y: the geometric mean of squares is at most their mean
    output = radius + _movement(depths[1], radius, log_sum([0, math.log(2) + 2 * state, 2 * token])) - accuracy
    states = radius + _movement(depths[0], radius, log_sum([0, 2 * state, 2 * token])) - accuracy
    return (
        ball_size(parameters[1], output + math.log(2)),
        2 * ball_size(parameters[0], states + math.log(4) + 1 + gain + tokens),
    )


def _movement(depth: int, radius: float, square: float) -> float:
    """The logarithm of K for a network of some depth, from that of s_0^2."""
    squares = []
    for layer in range(1, depth + 1):
        squares.append(2 * (depth - layer) * radius + square if depth > layer else square)
        square = softplus(2 * radius + square)
    return log_sum(squares) / 2


@checked
def rnn_risk(
    *,
    samples: Samples,
    tokens: Tokens,
    transition_parameters: TransitionParameters,
    output_parameters: OutputParameters,
    transition_depth: TransitionDepth,
    output_depth: OutputDepth,
    parameter_norm: Norm,
    state_radius: StateRadius,
    token_norm: TokenNorm,
    truncation: Truncation = 1.0,
    empirical_risk: EmpiricalRisk = 0.0,
    confidence: Confidence = 0.95,
    form: Form = "explicit",
    constant: Constant = None,
) -> Bound:
    r"""Truncated risk of bidirectional recurrent networks of bounded norm (mousavi2025, Corollary 33).

    Explicit: Dudley's integral of `rnn_cover`, as in `token_regression_risk`.
    Order (Corollary 33): $\hat R_\tau+c_0\tau\sqrt{p\log(RNn\tau)/n}$ with all $p$ parameters.
    """
    parameters = transition_parameters, output_parameters
    if form == "order":
        nats = max(log(parameter_norm) + log(tokens) + log(samples) + log(truncation), 0.0)
        capacity = log(2 * transition_parameters + output_parameters) + log(nats)
        complexity = exp(log(constant or 1.0) + log(truncation) + (capacity - log(samples)) / 2)
        terms = {"empirical risk": empirical_risk, "complexity": complexity}
        return Bound("rnn-risk", terms, explicit=False, source="mousavi2025, Corollary 33", trivial=truncation)
    refuse_options("rnn_risk", form, constant=constant)
    depths = int(transition_depth), int(output_depth)
    norms = log(parameter_norm), log(state_radius), log(token_norm)
    return truncated_risk(
        "rnn-risk",
        "mousavi2025, Corollary 33, with constants",
        lambda accuracy: sum(rnn_sizes(accuracy, log(tokens), parameters, depths, *norms)),
        samples=samples,
        truncation=truncation,
        empirical_risk=empirical_risk,
        confidence=confidence,
    )


# --- Size ------------------------------------------------------------------------------------------------------------

_GRID = 64  # values of each free parameter of the proof; every choice is valid
SUDAKOV = 4 * math.pi * math.log(2)


def _separated_states(tokens: float, risk: float, law: str = "gaussian") -> Iterator[tuple[float, float]]:
    r"""Pairs of $\mathfrak L\epsilon_h$ and nats $n$: there are $e^n$ prompts whose states differ by $r_h\epsilon_h$.

    Let $M=N-1$ and $\epsilon^2$ the risk at the best position $j$, where we fix a token $x_j$ of at most average risk.
    The network answers all $t_j\ne j$ by $\Phi(h)\in\mathbb R^M$, right answers are $g\sim\mathcal N(0,I_M)$, and
    $\mathbb E\|\Phi(h)-g\|^2\le N\epsilon^2$. Of $P$ independent prompts at most $\delta^2P$, in the mean, have
    $\|\Phi(h)-g\|>\epsilon\sqrt N/\delta$ (Markov), and each pair has $\|g-g'\|<s\sqrt M$ with probability at most
    $\pi=(xe^{1-x})^{M/2}$, $x=s^2/2<1$ (Chernoff for $\chi^2$). Leave out the former, and one of each such pair: for
    the best $P$ at least $(1-\delta^2)^2/(2\pi)$ prompts stay, in the mean. For two of them $s\sqrt M-2\epsilon\sqrt
    N/\delta\le\|\Phi(h)-\Phi(h')\|\le\sqrt M\mathfrak L\|Uh-Uh'\|/r_h$.

    On the sphere of radius $\sqrt N$ the label of $j$ has $g_j^2\le b$ with probability at least $1-\frac1b$ (Markov),
    so a token with that and a risk of at most $\epsilon^2/(1-\frac1b)$ is fixed. The other labels are uniform on a
    sphere of radius $\rho\ge\sqrt{N-b}$ in $\mathbb R^M$, where $\|g-g'\|<s\sqrt M$ asks for a cosine above
    $c=1-xM/\rho^2$, of probability at most $\pi=(1-c^2)^{M/2}$ for $c^2\le\frac12$ and $(2c)^{-M}$ beyond: the cone of
    a cap lies in a ball of that radius. All $b$ of a grid are tried.
    """
    others = tokens - 1
    for slack, kept in _laws(tokens, law):
        lost = 2 * math.sqrt(risk / kept * tokens / others)
        yield from _separated(others, lost, slack)


def _laws(tokens: float, law: str) -> Iterator[tuple[float | None, float]]:
    """Squared radius of the others' labels over their number (None: normal), and the least chance of the fixed one."""
    if law == "gaussian":
        yield None, 1.0
        return
    for power in range(1, _GRID):
        allowed = tokens ** (power / _GRID)
        if 1 < allowed < tokens:
            yield (tokens - allowed) / (tokens - 1), 1 - 1 / allowed


def _separated(others: float, lost: float, sphere: float | None) -> Iterator[tuple[float, float]]:
    for step in range(1, _GRID):
        x = (step / _GRID) ** 2
        if sphere is None:
            nats = others / 2 * (x - 1 - math.log(x))
        elif (cosine := 1 - x / sphere) <= 0:
            continue
        else:
            nats = others * (-math.log1p(-(cosine**2)) / 2 if cosine**2 <= 0.5 else math.log(2 * cosine))
        for share in range(1, _GRID):
            delta = share / _GRID
            separation = math.sqrt(2 * x) - lost / delta
            left = nats + 2 * math.log1p(-(delta**2)) - math.log(2)
            if separation > 0 and left > 0:
                yield separation, left


@checked
def rnn_width_lower(
    *,
    tokens: SeveralTokens,
    risk: Risk,
    lipschitz: OutputLipschitz = 1.0,
    output_spectral: Annotated[float, norm("spectral norm of U = (U→, U←)")] = 1.0,
    law: Law = "gaussian",
) -> Bound:
    r"""Least state size of a recurrent network that solves 1STR to a given risk (mousavi2025, Proposition 6).

    $2d_h\log(1+2\sqrt2\,\|U\|/\epsilon_h)\ge n$: the states $(U^\to h^\to,U^\leftarrow h^\leftarrow)$ lie in a ball of
    radius $\sqrt2\|U\|r_h$ of $\mathbb R^{2d_h}$, which holds $e^n$ points at distance $r_h\epsilon_h$ by volumes only
    if so. The best of many choices of separation and nats is taken; none exists for risks above about ½.
    """
    reach = math.log(math.sqrt(2)) + log(output_spectral) + log(lipschitz)
    widths = [
        left / (2 * ball_size(1, reach - log(apart))) if reach > -math.inf else math.inf
        for apart, left in _separated_states(tokens, risk, law)
    ]
    return _needed("rnn-width-lower", {"width": max(widths, default=0.0)}, "Proposition 6, width", trivial=1.0)


@checked
def rnn_norm_lower(
    *,
    tokens: SeveralTokens,
    risk: Risk,
    lipschitz: OutputLipschitz = 1.0,
    law: Law = "gaussian",
) -> Bound:
    r"""Least norm of the weights on the states, to solve 1STR to a given risk (mousavi2025, Proposition 6).

    $\|U\|_F^2\ge\epsilon_h^2n/(4\pi\log2)$. Proof: for $e^n$ points at mutual distances of at least $r_h\epsilon_h$,
    Sudakov and Fernique give $\mathbb E\sup\langle g,\cdot\rangle\ge\frac{r_h\epsilon_h}{\sqrt2}\sqrt{n/(\pi\log2)}$,
    since the largest of $P$ independent normals is at least $\sqrt{\log P/(\pi\log2)}$ in the mean; and the supremum
    over all states is at most $r_h(\|U^\to\|_F+\|U^\leftarrow\|_F)\le\sqrt2r_h\|U\|_F$. The paper's bound on the
    spectral norm is not proved, and false for the general class: see docs/errata.md.
    """
    norms = [apart * math.sqrt(left / SUDAKOV) for apart, left in _separated_states(tokens, risk, law)]
    largest = max(norms, default=0.0)
    needed = math.inf if largest and not lipschitz else largest and largest / lipschitz
    return _needed("rnn-norm-lower", {"norm": needed}, "Proposition 6, norm, repaired", trivial=0.0)


@checked
def rnn_min_norm_lower(
    *,
    tokens: SeveralTokens,
    risk: Risk,
    output_depth: Annotated[float, Number("layers L_y of the output", 2, 1000, (True, True), whole=True)] = 2,
) -> Bound:
    r"""Number of samples that a minimum-norm recurrent network fits without learning 1STR (mousavi2025, Theorem 7).

    With a state of at least $n$ units and probability at least $\frac16$ over the sample: the $n$ labels are fitted
    with $\|\mathrm{vec}\,\Theta\|^2\le$ `interpolation_norm`, while the risk asks for $\|\mathrm{vec}\,\Theta\|^2\ge
    L_y(\mathfrak L\|U\|_F)^{2/L_y}$, the latter by `rnn_norm_lower` and the inequality of means. The largest $n$ at
    which the first is smaller: of order $N^{1/(3L_y)}$.
    """
    depth = int(output_depth)
    needed = depth * rnn_norm_lower(tokens=tokens, risk=risk).value ** (2 / depth)
    too_many = sample_size(lambda samples: needed / interpolation_norm(samples, depth), 1.0) or math.inf
    return _needed("rnn-min-norm-lower", {"samples": float(too_many - 1)}, "Theorem 7", trivial=0.0)


def interpolation_norm(samples: int, depth: int = 2) -> float:
    r"""Squared norm of all weights that interpolate $n$ Gaussian samples of 1STR, with probability at least $\frac16$.

    $\frac{24}{\sqrt\pi}n^2\sqrt{6n(10n+2)}\approx105\,n^3$ with one hidden layer (Lemma 36,
    `constructions.interpolate`). Deeper, the label and its negative are passed on: $\sqrt2$ times that, balanced anew,
    and 2 per further layer.
    """
    shallow = 24 / math.sqrt(math.pi) * samples**2 * math.sqrt(6 * samples * (10 * samples + 2))
    return shallow if depth == 2 else math.sqrt(2) * shallow + 2 * (depth - 2)


def _needed(name: str, terms: dict[str, float], statement: str, *, trivial: float) -> Bound:
    return Bound(name, terms, explicit=True, source=f"mousavi2025, {statement}", trivial=trivial, lower=True)
