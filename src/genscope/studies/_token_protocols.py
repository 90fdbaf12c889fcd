r"""What the text of MH25 says about its experiments, what its public code does, and what its theory is about.

Source: mousavi2025, Appendix E, Section 3.1 and the captions of Figures 1 to 3 (protocol "text"); its public code
(protocol "code"); Sections 3 and 4.1 with Appendices A.1 and B.1 (protocol "theory").
Departures: "theory" trains the networks of the theorems with the text's optimizer and test set, since no theorem names
any; recurrent networks are the trained ones, with states that exclude the token and a two-layer read-out. Where the
text is silent its value is the code's, or ours: steps between checks, budget, draws of link and encodings.
Guarantee: exact; settings are numbered as in docs/decisions.md.
"""

from dataclasses import dataclass, replace
from typing import Literal

from genscope.refusal import Refusal
from genscope.tasks.token_regression import Scale

Attention = Literal["scaled", "separate", "full"]


@dataclass(frozen=True)
class Protocol:
    """Everything in which text, public code and theory of mousavi2025 differ."""

    recurrent: str  # 1: the recurrent rival
    units_grow: bool  # 1: its units are 500 q, not 500
    weight_decay: float  # 2
    test_size: int  # 3
    simple_test: bool  # 4: test prompts are simple-1STR whatever is trained
    check_every: int  # 5: steps, on 1STR (the text does not say)
    check_every_simple: int  # 5: steps, on simple-1STR (the text does not say)
    scale: Scale  # 6: factor of the encodings that a Transformer reads
    rival_scale: Scale  # 6: the same for RNN and FFN (theory; the experiments have none)
    attention: Attention  # 7: root, biases, output projection; or separate projections alone; or one full matrix
    output_bias: bool  # 8: of the head network
    include_token: bool  # 9: in the states, with a linear read-out; or excluded, with a two-layer one (theory)
    shared_draw: bool  # 10: link and encodings are shared by the runs of a draw (the text does not say)
    block_simple: bool  # 11: Figure 2 trains on simple-1STR
    budget: int  # 12: samples at which a run is given up (the text has none: this is ours)
    states_threshold: bool  # 13: the documented commands leave the thresholds out; both use the text's
    covers_sparsity: bool  # 14: there is no code for Figure 3

    def scale_for(self, architecture: str) -> Scale:
        """The factor of the encodings that a network reads."""
        return self.scale if architecture == "transformer" else self.rival_scale


TEXT = Protocol(
    recurrent="rnn",
    units_grow=True,
    weight_decay=0.1,
    test_size=10_000,
    simple_test=False,
    check_every=10,
    check_every_simple=100,
    scale="sqrt_d_over_q",
    rival_scale="none",
    attention="separate",
    output_bias=False,
    include_token=True,
    shared_draw=False,
    block_simple=False,
    budget=1_000_000,
    states_threshold=True,
    covers_sparsity=True,
)
CODE = replace(
    TEXT,
    recurrent="gru",
    units_grow=False,
    weight_decay=0.01,
    test_size=5_000,
    simple_test=True,
    scale="none",
    attention="scaled",
    output_bias=True,
    shared_draw=True,
    block_simple=True,
    states_threshold=False,
    covers_sparsity=False,
)
THEORY = replace(TEXT, rival_scale="sqrt_d_over_q", attention="full", include_token=False)
PROTOCOLS = {"text": TEXT, "code": CODE, "theory": THEORY}

# Recurrent kinds with their units; those of the published size grow with q where the protocol says so.
RECURRENT = {"rnn": ("rnn", 500), "gru": ("gru", 500), "lstm": ("lstm", 500), "gru-128": ("gru", 128)}
ARCHITECTURES = ("transformer", "ffn", *RECURRENT)


def settings(protocol: str, architecture: str) -> Protocol:
    """The protocol of that name, once the names make sense."""
    if protocol not in PROTOCOLS or architecture not in ARCHITECTURES:
        raise Refusal(
            f"got {protocol=}, {architecture=}: protocols are {', '.join(PROTOCOLS)}, architectures "
            f"{', '.join(ARCHITECTURES)}. Choose among these."
        )
    return PROTOCOLS[protocol]
