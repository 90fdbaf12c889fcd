r"""Sparse Fourier-Walsh expansions as functions of bits, in the basis of characters or of even-parity indicators.

Source: lintilhac2026, Equation (1) (the basis $\varphi_S$), Section 2.1 (random functions of a degree and sparsity),
Appendix E.3 (tilings) and Section 3 (parity).
Departures: coefficients of random functions are scaled to length 1 and the function, not its coefficients, is
centered: the paper's "centered with variance 1" would make coefficients negative, which its construction forbids.
Guarantee: exact up to the rounding of one sum of `sparsity + 1` terms, in float64 for NumPy arrays. Truth tables serve
up to 24 bits; values at given inputs have no such limit.

With $\chi_S(x)=(-1)^{\sum_{i\in S}x_i}$ and $\varphi_S=(1+\chi_S)/2$, a function in basis "chi" is
$c+\sum_i\alpha_i\chi_{S_i}$, and in basis "phi" $c+\sum_i\alpha_i\varphi_{S_i}$.
"""

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from genscope.display import Card, Displayed, Table
from genscope.fourier.cube import LARGEST, check_bits
from genscope.fourier.transform import fwht
from genscope.refusal import Refusal

Basis = Literal["chi", "phi"]

_BLOCK = 2**14  # inputs evaluated at once: their packed bits stay in the cache
SHOWN = 10  # components of a function that is printed
_DENSE = 64  # components beyond which a short function is read from its table
_TABLED = 20  # bits of such a function


@dataclass(frozen=True)
class WalshFunction(Displayed):
    r"""The function $c+\sum_i\alpha_i\chi_{S_i}$ of `dim` bits, or the same with $\varphi$; call it at bits.

    Each support is an increasing tuple of indices, no support is empty (that component is `constant`) or given twice.

    >>> f = WalshFunction(dim=3, supports=((0, 1), (2,)), coefficients=(1.0, 0.5))
    >>> f(np.array([[0, 0, 0], [1, 0, 0], [1, 1, 1]])).tolist()
    [1.5, -0.5, 0.5]
    """

    dim: int
    supports: tuple[tuple[int, ...], ...]
    coefficients: tuple[float, ...]
    basis: Basis = "chi"
    constant: float = 0.0

    def __post_init__(self):
        if self.basis not in ("chi", "phi"):
            raise Refusal(
                f"WalshFunction got basis={self.basis!r}: the bases are 'chi' (values 1 and -1) and 'phi' (values 1 "
                "and 0). Choose one of them."
            )
        if self.dim < 0:
            raise Refusal(f"WalshFunction got dim={self.dim}: the number of bits must not be negative. Give 0 or more.")
        if len(self.supports) != len(self.coefficients):
            raise Refusal(
                f"WalshFunction got {len(self.supports)} supports and {len(self.coefficients)} coefficients: each "
                "support needs one coefficient. Give equally many of both."
            )
        for support in self.supports:
            increasing = all(low < high for low, high in itertools.pairwise(support))
            if not support or not increasing or support[0] < 0 or support[-1] >= self.dim:
                raise Refusal(
                    f"WalshFunction got the support {support} with dim={self.dim}: a support must list at least one "
                    f"index, distinct and increasing, from 0 to {self.dim - 1}. Sort it and correct the indices; the "
                    "component of the empty set is `constant`."
                )
        if len(set(self.supports)) < len(self.supports):
            double = next(s for s in self.supports if self.supports.count(s) > 1)
            raise Refusal(
                f"WalshFunction got the support {double} more than once: supports must be distinct. Add up the "
                "coefficients of equal supports."
            )
        if not all(math.isfinite(value) for value in (*self.coefficients, self.constant)):
            raise Refusal(
                f"WalshFunction got coefficients {self.coefficients} and constant {self.constant}: all must be finite. "
                "Remove NaN and infinity."
            )

    @property
    def degree(self) -> int:
        """The size of the largest support with a non-zero coefficient; 0 for a constant."""
        return max((len(support) for support in self._present), default=0)

    @property
    def sparsity(self) -> int:
        """The number of non-zero coefficients; the constant is not counted."""
        return len(self._present)

    @property
    def relevant(self) -> tuple[int, ...]:
        """Indices of the bits that the function depends on, in increasing order."""
        return tuple(sorted(set().union(*self._present)))

    @property
    def mean(self) -> float:
        """The mean over uniform bits: the Fourier coefficient of the empty set."""
        return self.constant if self.basis == "chi" else math.fsum((self.constant, math.fsum(self.coefficients) / 2))

    @property
    def variance(self) -> float:
        """The variance over uniform bits: the sum of the other squared Fourier coefficients."""
        return math.fsum(a * a for a in self.coefficients) / (1 if self.basis == "chi" else 4)

    def card(self) -> Card:
        """What is shown: degree, sparsity, and the largest components."""
        order = sorted(zip(self.supports, self.coefficients, strict=True), key=lambda each: -abs(each[1]))
        rows = [(" ".join(f"x{bit}" for bit in support), len(support), value) for support, value in order[:SHOWN]]
        facts = [
            ("degree", self.degree),
            ("components", self.sparsity),
            ("mean", self.mean),
            ("variance", self.variance),
        ]
        basis = {"chi": "characters (values 1 and -1)", "phi": "indicators (values 1 and 0)"}[self.basis]
        more = [f"{len(order) - SHOWN} more components."] if len(order) > SHOWN else []
        tables = [Table(["component", "size", "coefficient"], rows)] if rows else []
        return Card(f"A function of {self.dim} bits, in the basis of {basis}", facts, tables, more)

    def to_chi(self) -> "WalshFunction":
        r"""The same function in the basis of characters: $\hat f(S)=a_S/2$, the constant gains $\sum_Sa_S/2$."""
        if self.basis == "chi":
            return self
        halves = tuple(a / 2 for a in self.coefficients)
        return WalshFunction(self.dim, self.supports, halves, "chi", self.mean)

    def to_phi(self) -> "WalshFunction":
        r"""The same function in the basis of indicators: $a_S=2\hat f(S)$, the constant loses $\sum_S\hat f(S)$."""
        if self.basis == "phi":
            return self
        constant = math.fsum((self.constant, *(-a for a in self.coefficients)))
        return WalshFunction(self.dim, self.supports, tuple(2 * a for a in self.coefficients), "phi", constant)

    def truth_table(self) -> Float[np.ndarray, " points"]:
        """Values at all 2^dim points, bit 0 varying fastest."""
        if self.dim > LARGEST:
            raise Refusal(
                f"truth_table of a function of dim={self.dim} bits: all 2^dim values are listed, so dim must be at "
                f"most {LARGEST}. Evaluate the function at the inputs you need."
            )
        spectrum = np.zeros(2**self.dim)
        chi = self.to_chi()
        spectrum[0] = chi.constant
        for support, coefficient in zip(chi.supports, chi.coefficients, strict=True):
            spectrum[sum(1 << i for i in support)] = coefficient
        return fwht(spectrum)

    def __call__(self, x: Any) -> Any:
        """Values at bits of shape [..., dim]: float64 for NumPy arrays, JAX's default float for its own, in jit too.

        The bits are booleans, or integers 0 and 1; values of integers are checked in NumPy arrays only.
        """
        if np.ndim(x) == 0 or x.shape[-1] != self.dim:
            raise Refusal(
                f"the function of {self.dim} bits got an array of shape {np.shape(x)}: its last axis must hold the "
                f"bits. Give inputs of shape [..., {self.dim}]."
            )
        check_bits(x, "the function")
        if not isinstance(x, np.ndarray):
            return self._at_jax(x, x.__array_namespace__())
        rows = x.reshape(-1, self.dim)
        values = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK):
            values[start : start + _BLOCK] = self._at_block(rows[start : start + _BLOCK])
        return values.reshape(x.shape[:-1])

    # At x = 0 every component is even: f(x) = f(0) - sum of drop_i over the components that are odd at x.

    @functools.cached_property
    def _top(self) -> float:
        return math.fsum((self.constant, *self.coefficients))

    @functools.cached_property
    def _drops(self) -> tuple[float, ...]:
        return tuple(2 * a for a in self.coefficients) if self.basis == "chi" else self.coefficients

    @property
    def _present(self) -> list[tuple[int, ...]]:
        return [s for s, a in zip(self.supports, self.coefficients, strict=True) if a != 0]

    @functools.cached_property
    def _table(self) -> Float[np.ndarray, " points"]:
        return self.truth_table()

    @functools.cached_property
    def _masks(self) -> list[list[tuple[int, np.uint64]]]:
        """For each support the words of 64 bits that it touches, with its bits in them."""
        masks = []
        for support in self.supports:
            words: dict[int, int] = {}
            for i in support:
                words[i // 64] = words.get(i // 64, 0) | 1 << i % 64
            masks.append([(place, np.uint64(mask)) for place, mask in words.items()])
        return masks

    def _at_block(self, rows: np.ndarray) -> Float[np.ndarray, " block"]:
        """Parities as population counts of packed bits: one word for 64 bits of an input."""
        octets = np.packbits(rows, axis=1, bitorder="little")
        words = np.zeros((len(rows), -(-octets.shape[1] // 8) * 8), np.uint8)
        words[:, : octets.shape[1]] = octets
        words = np.ascontiguousarray(words.view("<u8").T)
        if self.dim <= _TABLED and len(self.supports) > _DENSE:
            return self._table[words[0]]
        values = np.full(len(rows), self._top)
        for masks, drop in zip(self._masks, self._drops, strict=True):
            odd = functools.reduce(np.bitwise_xor, (words[place] & mask for place, mask in masks))
            values -= drop * (np.bitwise_count(odd) & 1)
        return values

    def _at_jax(self, x: Any, xp: Any) -> Any:
        """Parities of the counts of ones, as one matrix product."""
        dtype = xp.result_type(float)
        member = np.zeros((self.dim, len(self.supports)))
        for column, support in enumerate(self.supports):
            member[list(support), column] = 1
        ones = xp.matmul(x.astype(dtype), xp.asarray(member, dtype), precision="highest")
        odd = (ones.astype(np.int32) & 1).astype(dtype)
        drops = xp.asarray(self._drops, dtype).reshape(-1)
        return xp.asarray(self._top, dtype) - xp.matmul(odd, drops, precision="highest")


def random_function(key: Any, *, dim: int, degree: int, sparsity: int, basis: Basis = "chi") -> WalshFunction:
    """A random homogeneous function: `sparsity` distinct supports of `degree` bits, positive coefficients of length 1.

    Supports are uniform without replacement; coefficients are absolute values of standard normal draws, divided by
    their Euclidean length. Basis "chi" gives mean 0 and variance 1, "phi" variance 1/4. The key is a typed JAX key: its
    annotation would load JAX, which those who only evaluate functions need not wait for.
    """
    number = math.comb(dim, degree) if 1 <= degree <= dim else 0
    if not 1 <= sparsity <= number:
        raise Refusal(
            f"random_function got {degree=} and {sparsity=} with {dim=}: the degree must be 1 to dim, and the sparsity "
            f"1 to {number}, the number of sets of this size. Reduce the sparsity, or change the degree."
        )
    import jax.random as jr  # here, so that the commands which need no JAX do not wait for it

    # Sets are drawn by NumPy: a Python object cannot be traced, and JAX would compile anew for every dim and degree.
    generator = np.random.default_rng(np.asarray(jr.key_data(key)))
    if 2 * sparsity > number:  # listing them all costs no more than the answer
        sets = list(itertools.combinations(range(dim), degree))
        supports = {sets[i] for i in generator.choice(number, sparsity, replace=False)}
    else:
        supports = set()
        while len(supports) < sparsity:  # at most two draws per support on average
            supports.add(tuple(sorted(generator.choice(dim, degree, replace=False).tolist())))
    sizes = np.abs(generator.standard_normal(sparsity))
    return WalshFunction(dim, tuple(sorted(supports)), tuple((sizes / np.linalg.norm(sizes)).tolist()), basis)


def tiling(dim: int, degree: int, basis: Basis = "phi") -> WalshFunction:
    r"""The tiling of `dim` bits by s = dim / degree consecutive blocks, each with coefficient $1/\sqrt s$."""
    if not 1 <= degree <= dim or dim % degree:
        raise Refusal(
            f"tiling got {degree=} with {dim=}: the blocks tile the bits, so the degree must divide dim. Change one of "
            "them."
        )
    blocks = tuple(tuple(range(start, start + degree)) for start in range(0, dim, degree))
    return WalshFunction(dim, blocks, (1 / math.sqrt(len(blocks)),) * len(blocks), basis)


def parity(dim: int, basis: Basis = "phi") -> WalshFunction:
    """The single component of all bits, with coefficient 1."""
    return tiling(dim, dim, basis)
