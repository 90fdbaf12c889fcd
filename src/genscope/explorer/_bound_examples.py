"""Where the sliders of the bounds begin: one example for each argument, and what each bound measures.

Guarantee: every bound has a value at its example (tests/explorer/test_bounds_room.py).
"""

from collections.abc import Mapping

from genscope.bounds import Bound

_COMMON: Mapping[str, float] = {
    **{"samples": 10_000, "points": 100_000, "context_length": 300, "tokens": 16, "epsilon": 0.1},
    **{"width": 64, "dimension": 64, "embedding": 64, "outputs": 64, "heads": 8, "layers": 2, "parameters": 10_000},
    **{"weight_norm": 1, "input_norm": 1, "context_norm": 1, "token_norm": 1, "readout_norm": 1, "hidden_norm": 8},
    **{"value_21": 8, "value_spectral": 2, "query_key_21": 8, "query_key_spectral": 2},
    **{"output_21": 8, "output_spectral": 1, "expand_21": 8, "expand_spectral": 2},
    **{"contract_21": 8, "contract_spectral": 2, "threshold_norm": 1, "select_21": 8},
    **{"radius": 10, "value_radius": 4, "query_key_radius": 4},
    **{"vc_dimension": 10, "pseudo_dimension": 10, "fat_dimension": 10},
    **{"capacity": 1, "range": 1, "rademacher": 0.05, "log_cover": 100, "empirical_error": 0.01},
    **{"support_size": 3, "sparsity": 2, "risk": 0.1, "norm_squared": 100, "trace": 10, "constant": 0.1},
    **{"transition_parameters": 1000, "output_parameters": 1000, "transition_depth": 2, "output_depth": 2},
    **{"parameter_norm": 10, "state_radius": 1, "truncation": 10_000, "encoding_dimension": 64},
}
_OWN: Mapping[str, Mapping[str, float]] = {
    "volumetric-head": {"query_key_radius": 4},
    "heads": {"heads": 8},
    "heads-lower": {"heads": 1, "sparsity": 4, "dimension": 5},
    "ffn-lower": {"samples": 100},
    "oracle-lower": {"samples": 100},
    "token-regression-risk": {"samples": 1_000_000_000},
    "rnn-risk": {"samples": 1_000_000_000},
    "truncation-error": {"heads": 2, "hidden_norm": 1, "dimension": 10},
    "rnn-truncation-error": {"parameter_norm": 2, "dimension": 10},
    "erm-risk": {"samples": 1_000_000_000_000, "dimension": 10, "width": 4},
    "rnn-erm-risk": {"samples": 1_000_000_000_000, "dimension": 10, "width": 4},
    "rnn-width-lower": {"tokens": 10_000},
    "rnn-norm-lower": {"tokens": 10_000},
    "rnn-min-norm-lower": {"tokens": 10_000},
    "parity-chain": {"samples": 1_000_000_000, "context_length": 64},
    "fourier-cover": {"samples": 100_000_000},
}
LEADING = (
    "samples",
    "points",
    "context_length",
    "tokens",
    "epsilon",
    "dimension",
    "parameters",
)  # the axes asked for most


def example(bound: str, argument: str) -> float | None:
    """A value of an argument to begin with, where it has no default of its own."""
    own = _OWN.get(bound, {})
    return own[argument] if argument in own else _COMMON.get(argument)


def forced(bound: str) -> Mapping[str, float]:
    """Arguments that have a default on the command line and yet need a value."""
    return _OWN.get(bound, {})


_MEASURES = {
    "rademacher": "Rademacher complexity",
    "generalization": "risk beyond the sample's",
    "lower": "samples needed",
    "rnn-width-lower": "width needed",
    "rnn-norm-lower": "norm needed",
    "rnn-min-norm-lower": "samples needed",
    "excess-risk": "risk",
    "truncation-error": "risk beyond the truncated",
    "rnn-truncation-error": "risk beyond the truncated",
}


def measure(bound: Bound) -> str:
    """What the value of a bound is, in a few words."""
    if bound.trivial is None and bound.name not in _MEASURES:
        return "log covering number (nats)"
    if bound.name == "parity-chain" and bound.trivial == 0:
        return "log chance"
    return _MEASURES.get(bound.name, "risk")
