r"""Explicit weights for parity by a chain of thought: every step adds one bit to the parity so far.

Source: lintilhac2026, Theorem 16 and Appendix G.
Departures: the paper says that the attention matrix "has only a single nonzero entry"; an identity over one-hot
positions has T, and the second attention needs another one. Both shrink with short codes of the positions (`dim`),
since the two positions that a step looks at have the same code. The paper takes the even wave and does not say where
the complement is taken; ours is odd, so that the output is $x_t\oplus y_{t-1}$ itself. A causal network is given too,
with the read-out doubled.
Guarantee: proved below for every T at least 2; `verify_chain` checks all inputs up to 12 bits.

Proof. At step t positions t and T + t have the id t and the bits $x_t$ and $y_{t-1}$ (0 at t = 0). Scores are
$c\,[\mathrm{id}(i)=\mathrm{id}(j)]$ up to a constant of each row, or below that for other ids: with codes $u$ of length
1 and inner products at most $\mu$ they are $\frac c{1-\mu}\langle u_i,u_j\rangle$. So both positions attend to both,
and $a=(1-\lambda)\frac{x_t+y_{t-1}}2+\lambda m$ with $\lambda\le\rho/8$ by the choice of c and $m\in[0,1]$: less than
1/8 from 0, ½ or 1. There the wave is constant: 1 at ½, 0 at 0 and 1. The second attention, with scores $M$ for equal
ids, reads both positions, which carry the same value; all others together weigh at most
$\frac{2T-2}{2e^M}\le\frac\tau2$, and so does the error. Under a causal mask position t does not see T + t: $a=x_t$
there up to leakage, its wave is 0, and half of the output is lost, which $w=2$ restores.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Key

from genscope.bounds.parity_chain import INACTIVE, LEAKAGE, chain, chain_scales
from genscope.constructions.cyclic_code import cyclic_code
from genscope.constructions.verification import ROUNDING, Verification
from genscope.display import Card, Displayed, Table
from genscope.fourier import points
from genscope.models.parity_chain import ChainTransformer
from genscope.precision import float64
from genscope.random import biased_bits
from genscope.refusal import Refusal
from genscope.tasks.parity_chain import ParityChain, prompts

EXHAUSTIVE = 12  # bits
LARGEST = 4096  # positions beyond which the matrices fill the memory


@dataclass(frozen=True)
class ChainConstruction(Displayed):
    """A network and what is promised of it: its largest error at any step, and its squared norms by block."""

    model: ChainTransformer
    error: float
    norm_squared: Mapping[str, float]
    source: str

    def card(self) -> Card:
        """What is shown: the promises, by block."""
        rows = [("largest error promised, at any step", self.error), ("source", self.source)]
        return Card(
            "A chain of thought for parity", rows, [Table(["block", "squared norm"], [*self.norm_squared.items()])]
        )


def parity_chain(
    context_length: int,
    *,
    dim: int | None = None,
    causal: bool = False,
    leakage: float = LEAKAGE,
    readout: float | None = None,
) -> ChainConstruction:
    """The chain for the parity of `context_length` bits; `readout` replaces w (1, or 2 under a causal mask).

    With `dim`, positions have cyclic codes of that dimension instead of one-hot vectors.
    """
    if not 2 <= context_length <= LARGEST // 2 or not 0 < leakage < 1:
        raise Refusal(
            f"parity_chain got context_length={context_length!r} and leakage={leakage!r}: a chain must have 2 to "
            f"{LARGEST // 2} steps, and leakage must be a fraction between 0 and 1. Correct the one that is out of "
            "range."
        )
    scale = readout if readout is not None else 2.0 if causal else 1.0
    code = None if dim is None else cyclic_code(context_length, dim)
    codes = None if code is None else (code.dim, code.coherence)
    sharpness, select = chain_scales(context_length, leakage=leakage, codes=codes)
    entries, thresholds = context_length if code is None else code.dim, np.array([1, 3, 5, 7]) / 8
    where, bit = np.diag([1.0] * entries + [0.0]), np.eye(entries + 1)[-1]
    with float64():
        model = ChainTransformer(
            score=jnp.asarray(where),
            key=jnp.asarray(sharpness * where),
            value=jnp.asarray(np.outer(bit, bit)),
            expand=jnp.asarray(np.outer(np.ones(4), bit)),
            threshold=jnp.asarray(thresholds),
            contract=jnp.asarray(np.outer(bit, [4.0, -4.0, -4.0, 4.0])),
            select=jnp.asarray(select * where),
            readout=jnp.asarray(scale * bit),
            causal=causal,
            frequencies=() if code is None else code.frequencies,
            coded_length=0 if code is None else context_length,
        )
    norms = dict(chain(context_length, leakage=leakage, limit=True, codes=codes).norm_squared) | {"readout": scale**2}
    right = scale == (2.0 if causal else 1.0)
    error = scale * INACTIVE / 2 if right else math.inf
    return ChainConstruction(model, error, norms, "lintilhac2026, Theorem 16")


def verify_chain(built: ChainConstruction, *, key: Key[Array, ""], samples: int = 64) -> Verification:
    """Compare every step with the running parity, and the network's own chain with it: all inputs, or drawn ones.

    A chain that goes wrong anywhere counts as an error of 1.
    """
    length = built.model.context_length
    exhaustive = length <= EXHAUSTIVE
    x = jnp.asarray(points(length).astype(bool)) if exhaustive else biased_bits(key, (samples, length), 0.5)
    with float64():
        errors, wrong = map(np.asarray, _errors(built.model, x))
    largest = float(max(errors.max(), wrong.max()))
    kept = math.isfinite(built.error) and largest <= built.error + ROUNDING
    return Verification(largest, len(x), exhaustive, largest <= ROUNDING, kept)


@eqx.filter_jit
def _errors(model: ChainTransformer, x: Bool[Array, "size T"]) -> tuple[Array, Array]:
    """Largest deviation of a step's output on right prefixes, and whether the chain differs, input by input."""
    length = model.context_length
    task = ParityChain(jnp.ones(length, bool), length)

    def one(bits):
        truth = task.target(bits)
        prompt = prompts(bits, truth)
        outputs = jax.vmap(lambda step: model(prompt, step))(jnp.arange(length))
        return jnp.max(jnp.abs(outputs - truth.astype(outputs.dtype))), jnp.any(model.answer(bits) != (truth > 0.5))

    return jax.lax.map(one, x, batch_size=min(len(x), 256))
