r"""Covering numbers of attention heads and of their sums: logarithmic in the number of tokens.

The head is $f(X,z)=\sigma(W_V^\top X^\top\mathrm{softmax}(XW_{QK}^\top z))$ with $\sigma$ elementwise,
$L_\sigma$-Lipschitz and $\sigma(0)=0$. Lemma 4.3, with the softmax constant $c$:
$$\|f-\hat f\|\le cL_\sigma B_VB_X\max_t|\mathrm{Score}-\widehat{\mathrm{Score}}|
  +L_\sigma\max_t\|(W_V-\hat W_V)^\top x_t\|,$$
where $B_V$ bounds the true $W_V$ only, so that covers may be external. Since $|z^\top(W-\hat W)x|$ is at most
$B_z\|(W-\hat W)x\|$, covers of $x\mapsto W_V^\top x$ and $x\mapsto W_{QK}x$ on all tokens give
$\epsilon=L_\sigma\epsilon_V+cL_\sigma B_VB_XB_z\epsilon_{QK}$ (Theorem 4.2). All distances are maxima, so samples and
positions are $N=mT$ points, or as many as are distinct: this is what removes the linear factor $T$.

Source: edelman2022, Theorem 4.2, Lemma 4.3, Corollary 4.5, and the sum over heads in Section 4.
Departures: factors that the lecture notes suppress are restored. The softmax constant is 1 in explicit forms (sharp:
the map from scores to attention has norm 1 from the maximum norm to the sum norm) and the paper's 2 in order forms.
Guarantee: as in `covering`; refinements are proved beside their code, in `_heads`.
"""

import dataclasses
import math
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._heads import PLAIN, HeadSetting, Refine, Several, gather, ways
from genscope.bounds._logarithms import log, log_sum
from genscope.bounds._parameters import Constant, Epsilon, Form, Points, checked, count, norm, positive
from genscope.bounds.covering import order, refuse_options
from genscope.bounds.split import allocate

VALUE_21 = norm("bound of ‖W_V‖₂,₁")
VALUE_SPECTRAL = norm("bound of the spectral norm of W_V")
QUERY_KEY_21 = norm("bound of ‖W_QKᵀ‖₂,₁, where score = zᵀ W_QK x")
TokenNorm = Annotated[float, norm("bound of the tokens, ‖x‖")]
ContextNorm = Annotated[float, norm("bound of the contexts, ‖z‖")]
Lipschitz = Annotated[float, norm("Lipschitz constant of sigma (times ‖W_C‖ where there is an output matrix)")]
Width = Annotated[float, count("value dimension k")]
Dimension = Annotated[float, count("token dimension d")]
SoftmaxConstant = Annotated[float | None, positive("constant of softmax (default: 1 explicit, 2 order)")]


@checked
def head(
    *,
    value_21: Annotated[float, VALUE_21],
    value_spectral: Annotated[float, VALUE_SPECTRAL],
    query_key_21: Annotated[float, QUERY_KEY_21],
    input_norm: TokenNorm,
    context_norm: ContextNorm,
    lipschitz: Lipschitz = 1.0,
    epsilon: Epsilon,
    width: Width,
    dimension: Dimension,
    points: Points,
    softmax_constant: SoftmaxConstant = None,
    form: Form = "explicit",
    constant: Constant = None,
    refine: Refine = PLAIN,
) -> Bound:
    r"""Log covering number of one attention head (edelman2022, Corollary 4.5).

    Explicit: the least $\mathrm{mat}(B_V^{2,1},\epsilon_V)+\mathrm{mat}(B_{QK}^{2,1},\epsilon_{QK})$ over splits
    $\epsilon=L_\sigma\epsilon_V+cL_\sigma B_VB_XB_z\epsilon_{QK}$, where $\mathrm{mat}$ is `matrix_cover`.
    Order: $c_0(L_\sigma B_X)^2((B_V^{2,1})^{2/3}+(cB_{QK}^{2,1}B_VB_XB_z)^{2/3})^3\epsilon^{-2}\log(dN)$.
    """
    found = heads(
        value_21=value_21,
        value_spectral=value_spectral,
        query_key_21=query_key_21,
        input_norm=input_norm,
        context_norm=context_norm,
        lipschitz=lipschitz,
        epsilon=epsilon,
        width=width,
        dimension=dimension,
        points=points,
        heads=1,
        softmax_constant=softmax_constant,
        form=form,
        constant=constant,
        refine=refine,
    )
    return dataclasses.replace(found, name="head", source="edelman2022, Corollary 4.5")


@checked
def heads(
    *,
    value_21: Annotated[Several, VALUE_21],
    value_spectral: Annotated[Several, VALUE_SPECTRAL],
    query_key_21: Annotated[Several, QUERY_KEY_21],
    input_norm: TokenNorm,
    context_norm: ContextNorm,
    lipschitz: Lipschitz = 1.0,
    epsilon: Epsilon,
    width: Width,
    dimension: Dimension,
    points: Points,
    heads: Annotated[int | None, count("number of heads", most=1e6)] = None,
    softmax_constant: SoftmaxConstant = None,
    form: Form = "explicit",
    constant: Constant = None,
    refine: Refine = PLAIN,
) -> Bound:
    r"""Log covering number of a sum of attention heads (edelman2022, Section 4).

    A norm is one number for all heads, or, in Python, a list with one per head.

    Explicit: the least $\sum_h[\mathrm{mat}(B_V^{2,1},\epsilon_V)+\mathrm{mat}(B_{QK}^{2,1},\epsilon_{QK})]$ over
    splits $\epsilon=\sum_h[L_\sigma\epsilon_V+cL_\sigma B_VB_XB_z\epsilon_{QK}]$.
    Order: $c_0(L_\sigma B_X)^2(\sum_h(B_V^{2,1})^{2/3}+(cB_{QK}^{2,1}B_VB_XB_z)^{2/3})^3\epsilon^{-2}\log(dN)$.
    """
    every = gather(
        heads,
        value_21=value_21,
        value_spectral=value_spectral,
        query_key_21=query_key_21,
        query_key_spectral=refine.query_key_spectral,
        query_key_context_21=refine.query_key_context_21,
    )
    setting = HeadSetting(
        softmax=log(softmax_constant or (2.0 if form == "order" else 1.0)),
        sigma=log(lipschitz),
        token=log(input_norm),
        context=log(context_norm),
        width=log(width),
        dimension=log(dimension),
        points=log(points),
    )
    source = "edelman2022, Section 4 (sum of heads)"
    if form == "explicit":
        refuse_options("heads", form, constant=constant)
        found = [allocate(covers, log(epsilon)) for covers in ways(every, setting, refine)]
        return Bound("heads", min(found, key=lambda terms: sum(terms.values())), explicit=True, source=source)
    refuse_options("heads", form, **refine.given())
    scores = setting.softmax + setting.token + setting.context
    each = (
        math.log(one.copies) + log_sum([2 / 3 * one.value_21, 2 / 3 * (scores + one.query_key_21 + one.value_spectral)])
        for one in every
    )
    leading = 2 * (setting.sigma + setting.token - log(epsilon)) + 3 * log_sum(each)
    size = order(leading, setting.dimension + setting.points, constant)
    return Bound("heads", {"cover": size}, explicit=False, source=source)
