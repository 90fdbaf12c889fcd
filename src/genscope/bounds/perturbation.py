r"""How much noise on the weights of the Fourier construction can change the trace of its Hessian, to first order.

Source: lintilhac2026, Section 2.3 and Theorem 17 (by the chain from Lemma 19 to Theorem 31 in Appendices L and M, whose
formulas are lost in the text we have; the proof below is ours).
Departures: terms of second order in $\sigma$ are left out, as in the paper; here this makes the bound smaller.
Guarantee: for functions with coefficients of one sign, up to $O(\sigma^2)$ and $O(\tau)$, with probability $1-\delta$
over the noise and at every given input, as long as no ReLU unit changes sides (`steady_sigma`).

**Chain.** For the squared loss
$\operatorname{Tr}\nabla^2L=2\,\mathbb E\|\nabla f\|^2+2\,\mathbb E[(f-y)\operatorname{Tr}\nabla^2f]$. Let $f=y$ at
$\theta$, $\|\nabla f\|\le G$ and $\|\nabla^2f\|\le S$ at every input. At $\theta+\epsilon$, with $|f-y|\le\Delta_f$ and
a gradient that moved by $\Delta_g$, the trace is at most $2(G+\Delta_g)^2+2p\,\Delta_f(S+\Delta_H)$, since
$\operatorname{Tr}\le p\,\|\cdot\|$; so it changes, to first order, by at most
$$4G\Delta_g+2p\,\Delta_fS,\qquad \Delta_f=\sigma G\sqrt{2\log\tfrac{4n}\delta},\qquad
\Delta_g=\sigma S\big(\sqrt p+\sqrt{2\log\tfrac2\delta}\big):$$
$\nabla f\cdot\epsilon$ is Gaussian at each of n inputs, and $\|\nabla^2f\,\epsilon\|\le S\|\epsilon\|$.

**G and S.** Let all weights move along one direction of length 1, so that no block moves faster than 1, and let
$q_1,q_2$ bound the first two derivatives of a quantity q. A mean $q=\sum_iP_iv_i$ with $P=\mathrm{softmax}(L)$ has
$q'=\mathrm{Cov}(L',v)+\mathbb Ev'$ and
$q''=\mathrm{Cov}(L'',v)+\kappa(L',L',v)+2\,\mathrm{Cov}(L',v')+\mathbb Ev''$ with the third cumulant $\kappa$, so for v
within r of a point
$$q_1=L_1r+v_1,\qquad q_2=L_2r+2L_1^2r+2L_1v_1+v_2.\tag{1}$$
Tokens have length at most $\sqrt2$, and $\|x^\top A\|\le\sqrt k$, $\|Kx\|=c$: the logits $x_j^\top AKx_i$ have
$L_1=\sqrt2(c+\sqrt k)$, $L_2=4$, and with $v=V^\top x$ ($r=\frac12$, $v_1=\sqrt2$, $v_2=0$) Eq. (1) bounds the
derivatives $a_1,a_2$ of the attended bit. Let n be the root of the number of units that can be on, and H the largest
$\|h\|$ of $h=D(Ey+b)$, at $a=1$, with D the pattern of units that are on. Since $\|DE\|\le n$, $h_1=2+na_1$. The
perceptron adds $Fh$. Its positions are moved by F alone: $z_1=H$, $z_2=2h_1$. Its bit moves by $b_1=H+4kn$,
$b_2=2h_1+4kn\,a_1$ where the wave is flat, since there $FDE=0$; elsewhere its slope adds $2ka_1$, $2ka_2$, which
happens at positions of total weight $\tau$ only, that is $\sqrt\tau$ times in root mean square.
With $\Lambda=\|W_2\|$ and M the largest entry of $W_2$, whose one row meets positions only, and with the bit of the
output position moving by $o_1=H+4kn+2ka_1$, the logits $Z_o^\top W_2Z_j$ have
$$\ell_1=(\Lambda+M)z_1+2,\qquad \ell_2=(\Lambda+M)z_2+2\Lambda z_1^2+2\sqrt2\,(o_1+b_1);$$
the values $Z_j\cdot w$, which lie between 0 and v, have $u_1=vb_1+\sqrt2$, $u_2=vb_2+2b_1$ (both $b_1$ and $o_1$ bound
the whole state, since F moves positions and bit together). Eq. (1) with $r=\frac v2$ gives G and S.
"""

import math
from typing import NamedTuple

from genscope.bounds._base import Bound
from genscope.refusal import Refusal

_ROOT = math.sqrt(2)


class Derivatives(NamedTuple):
    """Bounds that hold at every input: of the output's gradient and Hessian, and of the attended bit's gradient."""

    gradient: float
    hessian: float
    attended: float


def derivatives(
    *, degree: int, sharpness: float, logits_norm: float, largest_logit: float, value: float, inactive: float
) -> Derivatives:
    r"""G, S and $a_1$ for components of one `degree` k, first attention c, second attention ($\Lambda$, M), value v."""
    if degree < 1 or min(sharpness, logits_norm, largest_logit, value, inactive) <= 0:
        raise Refusal(
            f"derivatives got {degree=}, {sharpness=}, {logits_norm=}, {largest_logit=}, {value=}, {inactive=}: all "
            "must be positive, and the degree must be a whole number, at least 1. Take them from the construction."
        )
    first, second = _ROOT * (sharpness + math.sqrt(degree)), 4.0
    attended = _mean(first, second, 0.5, _ROOT, 0.0)
    below = [1 - (even + t) / degree for even in range(0, degree + 1, 2) for t in (-0.75, -0.25, 0.25, 0.75)]
    on = [height for height in below if height > 0]  # units with a threshold below 1, and their values there
    hidden, root = math.sqrt(sum(height**2 for height in on)), math.sqrt(len(on))
    hidden_first = 2 + root * attended[0]
    position = hidden, 2 * hidden_first
    slope = 2 * degree * math.sqrt(inactive)  # off the flat parts of the wave
    bit = (
        hidden + 4 * degree * root + slope * attended[0],
        2 * hidden_first + 4 * degree * root * attended[0] + slope * attended[1],
    )
    output = hidden + 4 * degree * root + 2 * degree * attended[0]
    reach = logits_norm + largest_logit
    logits = (
        reach * position[0] + 2,
        reach * position[1] + 2 * logits_norm * position[0] ** 2 + 2 * _ROOT * (output + bit[0]),
    )
    values = value * bit[0] + _ROOT, value * bit[1] + 2 * bit[0]
    return Derivatives(*_mean(*logits, value / 2, *values), attended[0])


def trace_change(
    *,
    derivatives: Derivatives,
    sigma: float,
    parameters: int,
    inputs: int,
    failure_probability: float = 0.05,
) -> Bound:
    r"""$4G\Delta_g+2p\,\Delta_fS$, the largest change of the trace under noise $N(0,\sigma^2I)$ to first order."""
    _check(sigma, parameters, inputs, failure_probability)
    gradient, hessian, _ = derivatives
    output = sigma * gradient * math.sqrt(2 * math.log(4 * inputs / failure_probability))
    moved = sigma * hessian * (math.sqrt(parameters) + math.sqrt(2 * math.log(2 / failure_probability)))
    return Bound(
        name="trace-change",
        terms={"gradient": 4 * gradient * moved, "residual": 2 * parameters * output * hessian},
        explicit=True,
        source="lintilhac2026, Theorem 17",
    )


def steady_sigma(
    *, derivatives: Derivatives, degree: int, components: int, leakage: float, inputs: int, failure_probability: float
) -> float:
    r"""The largest $\sigma$ at which, to first order, no unit changes sides at a component, with probability
    $1-\delta$.

    A unit's input $a-\vartheta$ has a gradient of length at most $\sqrt{2+a_1^2}$ and keeps $\frac{1-\rho}{4k}$ from 0;
    there are at most $2(k+2)$ units, at every component and input.
    """
    _check(1.0, components, inputs, failure_probability)
    events = 2 * (degree + 2) * components * inputs
    return (1 - leakage) / (
        4 * degree * math.sqrt(2 + derivatives.attended**2) * math.sqrt(2 * math.log(2 * events / failure_probability))
    )


def _mean(first: float, second: float, radius: float, value_first: float, value_second: float) -> tuple[float, float]:
    """Eq. (1): the first two derivatives of a mean under softmax."""
    return (
        first * radius + value_first,
        second * radius + 2 * first**2 * radius + 2 * first * value_first + value_second,
    )


def _check(sigma: float, count: int, inputs: int, failure_probability: float) -> None:
    if not 0 < sigma < math.inf or min(count, inputs) < 1 or not 0 < failure_probability < 1:
        raise Refusal(
            f"got {sigma=} for {count} parameters or components and {inputs=} with {failure_probability=}: sigma must "
            "be positive, both counts at least 1, and the failure probability between 0 and 1. Correct the one that is "
            "out of range."
        )
