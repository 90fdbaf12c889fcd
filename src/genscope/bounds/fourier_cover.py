r"""What covering numbers say of the Fourier Transformer, to compare with PAC-Bayes.

The network: $X\mapsto\sum_jp_jZ_j^\top w$ with $p=\mathrm{softmax}(\text{row of }W_2)$, $Z=RX+F\,\mathrm{ReLU}(Ea+b)$
and $a=\mathrm{softmax}(XAKX^\top)XV$, on $N$ tokens of dimension $d$ and norm $\sqrt2$. A matrix $l$ with covering
numbers $\kappa_l^2\log(nNd)/\epsilon_l^2$ at the output (a linear cover times the Lipschitz constant of what follows)
contributes $\kappa_l$; the best split of the accuracy adds up to $C_F=(\sum_l\kappa_l^{2/3})^3$.

Source: lintilhac2026, Appendix E.3, after edelman2022, Theorem 4.2.
Departures: the paper's formula (12) is lost in our text; this composition is ours.
Guarantee: an order; universal constants are 1, which favors this bound in the comparison.
"""

import math
from typing import Annotated

from genscope.bounds._base import Bound
from genscope.bounds._logarithms import exp, log, log_sum
from genscope.bounds._parameters import checked, count, norm
from genscope.bounds.randomised import Trivial
from genscope.bounds.risk import Samples


@checked
def fourier_cover(
    *,
    query_key_21: Annotated[float, norm("‖AK‖₂,₁, the sum of the row norms")],
    value_21: Annotated[float, norm("‖V‖₂,₁")],
    value_spectral: Annotated[float, norm("‖V‖₂")],
    expand_21: Annotated[float, norm("‖E‖₂,₁, by rows or by columns, the smaller one")],
    expand_spectral: Annotated[float, norm("‖E‖₂")],
    contract_21: Annotated[float, norm("‖F‖₂,₁")],
    contract_spectral: Annotated[float, norm("‖F‖₂")],
    threshold_norm: Annotated[float, norm("‖b‖")],
    select_21: Annotated[float, norm("‖W₂‖₂,₁")],
    readout_norm: Annotated[float, norm("‖w‖")],
    width: Annotated[float, count("hidden units m")],
    tokens: Annotated[float, count("tokens N = T + 1")],
    dimension: Annotated[float, count("dimension d = T + 2 of a token")],
    samples: Samples,
    trivial: Trivial = 0.25,
) -> Bound:
    r"""Risk minus empirical risk of the Fourier Transformer by composed covers (lintilhac2026, Appendix E.3).

    $\sqrt{C_F\log(nNd)/n}$ with $\Lambda=\|F\|_2\|E\|_2$, $v=\|w\|$ and $\kappa$: $4\|AK\|_{2,1}\|V\|_2\Lambda v$ of
    the scores, $\sqrt2\|V\|_{2,1}\Lambda v$, $\|E\|_{2,1}\|F\|_2v$, $\|F\|_{2,1}\sqrt{m+\|b\|^2}\,v$,
    $4\sqrt2\|W_2\|_{2,1}v$ and $\sqrt2v$.
    """
    readout, mlp = log(readout_norm), log(contract_spectral) + log(expand_spectral)
    root = math.log(2) / 2
    sizes = [
        math.log(4) + log(query_key_21) + log(value_spectral) + mlp + readout,
        root + log(value_21) + mlp + readout,
        log(expand_21) + log(contract_spectral) + readout,
        log(contract_21) + log_sum([log(width), 2 * log(threshold_norm)]) / 2 + readout,
        math.log(4) + root + log(select_21) + readout,
        root + readout,
    ]
    capacity = 3 * log_sum(2 * size / 3 for size in sizes)
    union = log(log(samples) + log(tokens) + log(dimension))
    terms = {"complexity": exp((capacity + union - log(samples)) / 2)}
    return Bound("fourier-cover", terms, explicit=False, source="lintilhac2026, Appendix E.3", trivial=trivial)
