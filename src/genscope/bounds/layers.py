r"""Covering numbers of several layers of attention.

The network is $X^{(i+1)}=\Pi(\sum_hg_h(X^{(i)}))$, $g(X)=\sigma(\Pi(\mathrm{RowSoftmax}(XW_{QK}X^\top)XW_V))W_C$, with
output $w^\top X^{(L+1)}_{CLS}$, where $\Pi$ projects rows on the unit ball. A layer multiplies the largest distance of
two inputs' rows by at most
$$\lambda_i=\sum_hL_\sigma B_CB_V(1+2cB_{QK}),$$
since rows stay in the unit ball and $|x_\tau^\top Wx_t-\hat x_\tau^\top W\hat x_t|\le2B_{QK}\Delta$. Cover the layers
one after the other, layer $i$ at the activations that the elements chosen before produce: true weights at these points
against their cover lose $\epsilon_C+L_\sigma B_C\epsilon_V+cL_\sigma B_CB_VB_XB_z\epsilon_{QK}$ per head ($B_X=B_z=1$
after the first layer), the later layers multiply it by $\Lambda_i=\prod_{j>i}\lambda_j$, and
$$\epsilon=\epsilon_w+B_w\sum_i\Lambda_i\sum_h(\epsilon_C+L_\sigma B_C\epsilon_V+cL_\sigma B_CB_VB_XB_z\epsilon_{QK}).$$
Only true weights enter with their norms, so covers may be external.

Source: edelman2022, Theorem 4.7 (recalled; its order form hides the constant of an exponent).
Departures: biases absent. Residual connections (added before $\Pi$) replace $\lambda_i$ by $1+\lambda_i$.
Guarantee: as in `covering`.
"""

import math
from collections.abc import Iterator
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._heads import Several, broadcast
from genscope.bounds._logarithms import log, softplus
from genscope.bounds._parameters import (
    Choice,
    Constant,
    Epsilon,
    Form,
    Number,
    Points,
    checked,
    count,
    norm,
    positive,
)
from genscope.bounds.attention import (
    QUERY_KEY_21,
    VALUE_21,
    VALUE_SPECTRAL,
    Dimension,
    Lipschitz,
    SoftmaxConstant,
    Width,
)
from genscope.bounds.covering import linear_size, matrix_size, order, refuse_options
from genscope.bounds.split import Cover, allocate

UNIT = (True, True)


@checked
def deep(
    *,
    value_21: Annotated[Several, VALUE_21],
    value_spectral: Annotated[Several, VALUE_SPECTRAL],
    query_key_21: Annotated[Several, QUERY_KEY_21],
    query_key_spectral: Annotated[Several, norm("bound of the spectral norm of W_QK")],
    output_21: Annotated[Several, norm("bound of ‖W_C‖₂,₁")],
    output_spectral: Annotated[Several, norm("bound of the spectral norm of W_C")],
    readout_norm: Annotated[float, norm("bound of ‖w‖, the linear read-out")],
    layers: Annotated[int, count("number of layers", most=1000)],
    input_norm: Annotated[float, Number("bound of the tokens, ‖x‖", high=1, closed=UNIT)] = 1.0,
    context_norm: Annotated[float, Number("bound of the first layer's contexts, ‖z‖", high=1, closed=UNIT)] = 1.0,
    lipschitz: Lipschitz = 1.0,
    epsilon: Epsilon,
    width: Width,
    dimension: Dimension,
    points: Points,
    heads: Annotated[int, count("number of equal heads in a layer", most=1e6)] = 1,
    residual: Annotated[bool, Choice("residual connections")] = False,
    readout_points: Annotated[float | None, count("examples m that are read out (default: points)")] = None,
    softmax_constant: SoftmaxConstant = None,
    form: Form = "explicit",
    constant: Constant = None,
    depth_exponent: Annotated[float | None, positive("constant of the order form's exponent (default 1)")] = None,
) -> Bound:
    r"""Log covering number of several layers of attention (edelman2022, Theorem 4.7).

    A norm is one number for all layers, or, in Python, a list with one per layer.

    Explicit: the least $\mathrm{lin}(B_w,\epsilon_w)+\sum_i[\mathrm{mat}(B_C^{2,1},\epsilon_C)+\mathrm{mat}(B_V^{2,1},
    \epsilon_V)+\mathrm{mat}(B_{QK}^{2,1},\epsilon_{QK})]$ over splits of $\epsilon$ as above.
    Order: $c_0(C_2L_\sigma)^{aL}B_X^2B_w^2C_{2,1}^2\epsilon^{-2}\log(dN)$ for one head per layer, with all spectral
    norms at most $C_2\ge1/L_\sigma$, all (2,1)-norms at most $C_{2,1}$, and $a$ the `depth_exponent`.
    """
    spectral = {"value": value_spectral, "query_key": query_key_spectral, "output": output_spectral}
    sums = {"value_21": value_21, "query_key_21": query_key_21, "output_21": output_21}
    rows = broadcast("deep", layers, **spectral, **sums)
    source = "edelman2022, Theorem 4.7"
    cells = log(points) + log(dimension)
    if form == "order":
        refuse_options("deep", form, heads=heads if heads > 1 else None, residual=residual or None)
        refuse_options("deep", form, readout_points=readout_points)
        growth = max(0.0, log(lipschitz) + max(row[name] for row in rows for name in spectral))
        largest = max(row[name] for row in rows for name in sums)
        leading = 2 * (log(input_norm) + log(readout_norm) + largest - log(epsilon))
        size = order((depth_exponent or 1.0) * layers * growth + leading, cells, constant)
        return Bound("deep", {"cover": size}, explicit=False, source=source)

    refuse_options("deep", form, constant=constant, depth_exponent=depth_exponent)
    softmax, sigma, outer = log(softmax_constant or 1.0), log(lipschitz), log(readout_norm)

    def covers() -> Iterator[Cover]:
        examples = log(readout_points) if readout_points else log(points)
        yield Cover("readout", "readout", outer, lambda log_kappa: linear_size(log_kappa, examples), wide=True)
        later = outer  # log of B_w Λ_i
        for i in range(layers, 0, -1):
            row = rows[i - 1]
            token, context = (log(input_norm), log(context_norm)) if i == 1 else (0.0, 0.0)
            mixed = later + sigma + row["output"]
            radii = {
                "output": later + sigma + row["output_21"],
                "value": mixed + token + row["value_21"],
                "query-key": mixed + softmax + row["value"] + 2 * token + context + row["query_key_21"],
            }
            outputs = {"output": cells, "value": log(points) + log(width), "query-key": cells}
            for kind, radius in radii.items():
                size = _size(outputs[kind])
                yield Cover(f"layer {i}: {kind}", kind, radius, size, heads)
            lipschitz_layer = math.log(heads) + sigma + row["output"] + row["value"]
            lipschitz_layer += softplus(math.log(2) + softmax + row["query_key"])
            later += softplus(lipschitz_layer) if residual else lipschitz_layer

    return Bound("deep", allocate(list(covers()), log(epsilon)), explicit=True, source=source)


def _size(log_cells: float):
    return lambda log_kappa: matrix_size(log_kappa, log_cells)
