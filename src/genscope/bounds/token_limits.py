r"""What too few heads and too few samples cannot do: lower bounds on the risk of token regression.

Source: mousavi2025, Propositions 4 and 21 (heads), Theorem 9 (fully connected first layers), the remark
that $\Omega(qd)$ samples are the least.
Departures: a sharper form of Proposition 4, proved below; Proposition 21 for every token dimension, by its own proof.
Guarantee: proved, with all constants.
"""

from typing import Annotated, Literal

from genscope.bounds._base import Bound
from genscope.bounds._parameters import Choice, checked, count
from genscope.bounds.risk import Samples
from genscope.refusal import Refusal

Tokens = Annotated[float, count("number of tokens N of a prompt")]
TokenDimension = Annotated[float, count("dimension d of a token, without its encoding")]
Sparsity = Annotated[float, count("tokens per label q")]

_HEADS = {"sharp": "Proposition 4, sharpened", "printed": "Proposition 4", "block": "Proposition 21"}


@checked
def heads_lower(
    *,
    heads: Annotated[float, count("number of heads H")],
    sparsity: Sparsity,
    dimension: Annotated[float | None, count("dimension d of a token; no matter for the form block")] = None,
    form: Annotated[
        Literal["sharp", "printed", "block"],
        Choice("sharp or printed: any attention; block: no weights between data and positions"),
    ] = "sharp",
) -> Bound:
    r"""Least risk of one attention layer with too few heads (mousavi2025, Propositions 4 and 21).

    Whatever network reads the heads. Sharp: $(1-\frac Hq)_+(1-\frac Hd)_+$. Printed: $1-\frac{H(q+d)}{qd}$. Block:
    $1-\frac Hq$.

    Setting: $x_i\sim\mathcal N(0,I_d)$ for $i\le N/2$ and $x_i=0$ beyond, where $t_i=(1,\dots,q)$ and
    $y_i=\frac1{\sqrt{qd}}\sum_{j\le q}(\|x_j\|^2-d)$, of variance 2. Proof, at a position $i>N/2$: its query is fixed,
    so head $h$ scores token $j$ by $\langle w^{(h)},x_j\rangle$ and what does not depend on $x_1,\dots,x_q$. Given
    these $Hq$ scores and all other tokens, the attention $A\in\mathbb R^{H\times q}$ is fixed, and the heads tell $AX$,
    where $X$ has the rows $x_1,\dots,x_q$. So $X$ is known along row space of $A$ $\otimes\mathbb R^d$ and $\mathbb
    R^q\otimes$ span of the $w^{(h)}$, and Gaussian on the rest, of dimension
    $(q-\mathrm{rank}A)(d-\mathrm{rank}\,w)\ge(q-H)_+(d-H)_+$; there $\mathrm{Var}\|X\|^2$ is twice that. Half of the
    positions are such: $R\ge\frac12\cdot\frac{2(q-H)(d-H)}{qd}$. Without weights between data and positions the scores
    do not depend on $x$, and $(q-H)d$ dimensions are left.
    """
    missed = 1 - _share(heads, sparsity)
    if form != "block":
        if dimension is None:
            raise Refusal(
                f"heads_lower got no dimension with {form=}: scores may depend on the tokens, and the bound then "
                "depends on their dimension. Give the dimension of a token, or choose form='block'."
            )
        told = _share(heads, dimension)
        missed = max(missed - told, 0.0) if form == "printed" else missed * (1 - told)
    return Bound(
        "heads-lower",
        {"risk": missed},
        explicit=True,
        source=f"mousavi2025, {_HEADS[form]}",
        trivial=0.0,
        lower=True,
    )


@checked
def ffn_lower(*, samples: Samples, tokens: Tokens, dimension: TokenDimension) -> Bound:
    r"""Least risk of a fully connected first layer in the span of the sample (mousavi2025, Theorem 9).

    $1-\frac n{Nd}$.

    Setting: simple-1STR, $y=\langle u,x_t\rangle$, $x\sim\mathcal N(0,I_{Nd})$, $t$ uniform; the bound holds for some
    $u$, and in the mean over $u$. Proof: with $V$ an orthonormal basis of the span of $x^{(1)},\dots,x^{(n)}$ the
    network is a function of $(t,Vx)$, so its risk is at least $\frac1N\sum_t(1-\|VP_tu\|^2)$, where $P_t$ embeds token
    $t$. Over $u$ on the sphere the mean of $\|VP_tu\|^2$ is $\frac1d\|VP_t\|_F^2$, and
    $\sum_t\|VP_t\|_F^2=\|V\|_F^2=n$.
    """
    missed = 1 - _share(samples, tokens * dimension)
    source = "mousavi2025, Theorem 9"
    return Bound("ffn-lower", {"risk": missed}, explicit=True, source=source, trivial=0.0, lower=True)


@checked
def oracle_lower(*, samples: Samples, sparsity: Sparsity, dimension: TokenDimension) -> Bound:
    r"""Least risk of any learner, even one that is told which tokens matter (mousavi2025, remark after Theorem 3).

    $1-\frac n{qd}$: the paper's information-theoretic limit $\Omega(qd)$ with its constant.

    Setting: $y=\langle u,X\rangle$ for a direction $u\in\mathbb R^{qd}$ and $q$ distinct tokens
    $X\sim\mathcal N(0,I_{qd})$; the bound holds for some $u$, and in the mean over $u$ on the sphere. Proof: $n$
    samples tell $Pu$, the projection to their span. Given that, $u-Pu$ and its negative are equally likely, so a
    prediction at $X$ errs by at least $\langle u-Pu,X\rangle^2$, in the mean $\mathbb E\|u-Pu\|^2=1-n/(qd)$ over $X$
    and $u$. So a risk of $\epsilon$ needs $n\ge(1-\epsilon)qd$ samples.
    """
    missed = 1 - _share(samples, sparsity * dimension)
    source = "mousavi2025, remark after Theorem 3 (our proof)"
    return Bound("oracle-lower", {"risk": missed}, explicit=True, source=source, trivial=0.0, lower=True)


def _share(part: float, whole: float) -> float:
    """At most 1; whole numbers may exceed every float."""
    return 1.0 if part >= whole else part / whole
