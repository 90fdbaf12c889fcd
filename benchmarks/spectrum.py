"""Spectra of whole tables against pyfwht and boofun (wanted: within 1.5 times, and 50 times faster), and evaluation.

Peers: pyfwht's CPU build, same number type; boofun with pyfwht hidden from it; the product of gathered columns, as one
would write a sum of characters first. CPU seconds, taken in turns, on one thread, as pyfwht's CPU build has one.
Peers that are not installed are left out.
"""

import importlib.util
import sys
import warnings
from typing import Any

import jax.random as jr
import numpy as np

from benchmarks._timing import cpu_seconds, show
from genscope.fourier import WalshFunction, fwht, random_function

SIZES = (20, 24)
TYPES = (np.float32, np.float64)
PEER_SIZES = (16, 20)  # of boofun, in bits


def transforms() -> dict[str, float]:
    """Ours against pyfwht."""
    rows: dict[str, float] = {}
    for n in SIZES:
        for dtype in TYPES:
            a = np.random.default_rng(0).normal(size=2**n).astype(dtype)
            name = f"2^{n} points, {np.dtype(dtype).name}"
            programs = {"ours": lambda a=a: fwht(a)}
            if importlib.util.find_spec("pyfwht"):
                import pyfwht  # pyright: ignore[reportMissingImports]  # a peer, optional and under the GPL

                programs["pyfwht"] = lambda a=a: pyfwht.fwht(a, backend=pyfwht.Backend.CPU)
            seconds = dict(zip(programs, cpu_seconds(*programs.values(), repeats=15 if n < 24 else 5), strict=True))
            rows |= {f"{name}: {program}, CPU seconds": value for program, value in seconds.items()}
            if "pyfwht" in seconds:
                rows[f"{name}: ours / pyfwht (wanted: at most 1.5)"] = seconds["ours"] / seconds["pyfwht"]
    return rows


def against_boofun() -> dict[str, float]:
    """Fourier coefficients of a random Boolean function."""
    if not importlib.util.find_spec("boofun"):
        return {}
    hidden = sys.modules.get("pyfwht")
    sys.modules["pyfwht"] = None  # pyright: ignore[reportArgumentType]  # how Python says "not importable"
    rows: dict[str, float] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # boofun says which optional libraries it misses
            import boofun  # pyright: ignore[reportMissingImports]

            for n in PEER_SIZES:
                table = np.random.default_rng(0).integers(0, 2, 2**n).astype(bool)
                signs = 1 - 2.0 * table
                (ours,) = cpu_seconds(lambda signs=signs: fwht(signs))
                (theirs,) = cpu_seconds(
                    lambda table=table: boofun.create(table.tolist()).fourier(), repeats=1, warm=False
                )
                rows[f"2^{n} points: boofun without pyfwht, CPU seconds"] = theirs
                rows[f"2^{n} points: boofun / ours (wanted: at least 50)"] = theirs / ours
    finally:
        if hidden is None:
            del sys.modules["pyfwht"]
        else:
            sys.modules["pyfwht"] = hidden
    return rows


def gathered(function: WalshFunction, x: np.ndarray) -> Any:
    """The peer."""
    values = np.full(len(x), function.constant)
    for support, coefficient in zip(function.supports, function.coefficients, strict=True):
        values += coefficient * (1 - 2 * x[:, support].astype(np.int8)).prod(axis=1)
    return values


def main() -> None:
    function = random_function(jr.key(0), dim=64, degree=5, sparsity=20)
    x = np.random.default_rng(0).integers(0, 2, (10**6, 64)).astype(bool)
    ours, product = cpu_seconds(lambda: function(x), lambda: gathered(function, x), repeats=3)
    rows = transforms() | against_boofun()
    rows |= {
        "a million inputs of 64 bits, 20 components of degree 5: ours, CPU seconds": ours,
        "the same by products of columns: CPU seconds": product,
        "products of columns / ours": product / ours,
    }
    show("spectrum", rows)


if __name__ == "__main__":
    main()
