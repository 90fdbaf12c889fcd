"""Theorems as arithmetic; a place in `ALL` gives a bound its name on the command line."""

from collections.abc import Callable

from genscope.bounds._base import Bound as Bound
from genscope.bounds._heads import Refine as Refine
from genscope.bounds.attention import head as head
from genscope.bounds.attention import heads as heads
from genscope.bounds.binary_kl import kl_inverse as kl_inverse
from genscope.bounds.composition import composed_head as composed_head
from genscope.bounds.covering import linear_cover as linear_cover
from genscope.bounds.covering import matrix_cover as matrix_cover
from genscope.bounds.covering import zhang_cover as zhang_cover
from genscope.bounds.dimensions import fat_cover as fat_cover
from genscope.bounds.dimensions import pseudo_cover as pseudo_cover
from genscope.bounds.dimensions import vc_cover as vc_cover
from genscope.bounds.end_to_end import erm_risk as erm_risk
from genscope.bounds.end_to_end import rnn_erm_risk as rnn_erm_risk
from genscope.bounds.flat_minima import domination as domination
from genscope.bounds.flat_minima import pac_bayes as pac_bayes
from genscope.bounds.fourier_cover import fourier_cover as fourier_cover
from genscope.bounds.information import lower as lower
from genscope.bounds.layers import deep as deep
from genscope.bounds.loss_constant import clipped_constant as clipped_constant
from genscope.bounds.loss_constant import fitted_constant as fitted_constant
from genscope.bounds.loss_constant import one_sided_constant as one_sided_constant
from genscope.bounds.packing import packing as packing
from genscope.bounds.packing import packing_l1 as packing_l1
from genscope.bounds.parity_chain import parity_chain as parity_chain
from genscope.bounds.randomised import alquier as alquier
from genscope.bounds.randomised import seeger as seeger
from genscope.bounds.recurrent import interpolation_norm as interpolation_norm
from genscope.bounds.recurrent import rnn_cover as rnn_cover
from genscope.bounds.recurrent import rnn_min_norm_lower as rnn_min_norm_lower
from genscope.bounds.recurrent import rnn_norm_lower as rnn_norm_lower
from genscope.bounds.recurrent import rnn_risk as rnn_risk
from genscope.bounds.recurrent import rnn_width_lower as rnn_width_lower
from genscope.bounds.risk import dudley as dudley
from genscope.bounds.risk import generalization as generalization
from genscope.bounds.risk import margin as margin
from genscope.bounds.risk import rademacher as rademacher
from genscope.bounds.risk import sample_size as sample_size
from genscope.bounds.split import split_cubic as split_cubic
from genscope.bounds.token_limits import ffn_lower as ffn_lower
from genscope.bounds.token_limits import heads_lower as heads_lower
from genscope.bounds.token_limits import oracle_lower as oracle_lower
from genscope.bounds.token_regression import excess_risk as excess_risk
from genscope.bounds.token_regression import token_radius as token_radius
from genscope.bounds.token_regression import token_regression_cover as token_regression_cover
from genscope.bounds.token_regression import token_regression_risk as token_regression_risk
from genscope.bounds.truncation import rnn_truncation_error as rnn_truncation_error
from genscope.bounds.truncation import truncation_error as truncation_error
from genscope.bounds.volume import crossover as crossover
from genscope.bounds.volume import volumetric as volumetric
from genscope.bounds.volume import volumetric_head as volumetric_head

ALL: dict[str, Callable[..., Bound]] = {
    "linear-cover": linear_cover,
    "zhang-cover": zhang_cover,
    "matrix-cover": matrix_cover,
    "head": head,
    "heads": heads,
    "deep": deep,
    "volumetric": volumetric,
    "volumetric-head": volumetric_head,
    "vc-cover": vc_cover,
    "pseudo-cover": pseudo_cover,
    "fat-cover": fat_cover,
    "rademacher": rademacher,
    "generalization": generalization,
    "margin": margin,
    "lower": lower,
    "token-regression-cover": token_regression_cover,
    "token-regression-risk": token_regression_risk,
    "truncation-error": truncation_error,
    "erm-risk": erm_risk,
    "excess-risk": excess_risk,
    "heads-lower": heads_lower,
    "ffn-lower": ffn_lower,
    "oracle-lower": oracle_lower,
    "rnn-cover": rnn_cover,
    "rnn-risk": rnn_risk,
    "rnn-truncation-error": rnn_truncation_error,
    "rnn-erm-risk": rnn_erm_risk,
    "rnn-width-lower": rnn_width_lower,
    "rnn-norm-lower": rnn_norm_lower,
    "rnn-min-norm-lower": rnn_min_norm_lower,
    "packing": packing,
    "packing-l1": packing_l1,
    "pac-bayes": pac_bayes,
    "parity-chain": parity_chain,
    "fourier-cover": fourier_cover,
}
