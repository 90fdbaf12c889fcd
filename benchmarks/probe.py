"""Black-box probes: queries and CPU time, against reading the whole table, and against boofun's junta test.

CPU time of the process is counted on one thread, so that a busy machine hardly matters. boofun's test transforms the
whole table in Python (numba, which it can use, is not among its requirements) and answers exactly whether at most k
bits matter; ours answer the same: by the table, exactly too, and by flipping bits at random inputs.
"""

import warnings

import numpy as np

from benchmarks._timing import cpu_seconds, show
from genscope.fourier import points
from genscope.fourier.transform import walsh_coefficients
from genscope.fourier.walsh import WalshFunction
from genscope.probe import Oracle, influences, probe

DEGREE, SPARSITY = 5, 20
JUNTA, RELEVANT = 16, 5


def sparse_function(dim: int) -> WalshFunction:
    rng = np.random.default_rng(dim)
    supports: set[tuple[int, ...]] = set()
    while len(supports) < SPARSITY:
        supports.add(tuple(sorted(rng.choice(dim, DEGREE, replace=False).tolist())))
    return WalshFunction(dim, tuple(sorted(supports)), tuple(np.abs(rng.normal(size=SPARSITY)).tolist()))


def junta() -> np.ndarray:
    """The table of a function of five of sixteen bits."""
    x = points(JUNTA)
    return x[:, 0] ^ x[:, 3] ^ x[:, 9] ^ (x[:, 5] & x[:, 11])


def boofun_seconds(table: np.ndarray) -> float | None:
    try:
        with warnings.catch_warnings(action="ignore"):
            import boofun  # pyright: ignore[reportMissingImports]  # a peer, in an environment of its own
    except ImportError:
        return None
    function = boofun.create(table.tolist())
    assert function.is_junta(RELEVANT)
    return cpu_seconds(lambda: boofun.create(table.tolist()).is_junta(RELEVANT), repeats=1, warm=False)[0]


def main() -> None:
    rows: dict[str, object] = {}
    for dim in (20, 64, 1000):
        f = sparse_function(dim)
        found = probe(f, dim)
        assert found.function.supports == f.supports
        rows[f"T = {dim}, degree {DEGREE}, s = {SPARSITY}: queries"] = found.queries
        rows[f"T = {dim}, degree {DEGREE}, s = {SPARSITY}: CPU s"] = cpu_seconds(lambda f=f: probe(f, f.dim))[0]
    f = sparse_function(20)
    rows["T = 20: entries of the table / queries"] = 2**20 / probe(f, 20).queries
    table, asked = cpu_seconds(lambda: walsh_coefficients(f(points(20))), lambda: probe(f, 20))
    rows["T = 20: reading and transforming the table / probe, CPU"] = table / asked
    values = junta()
    place = 1 << np.arange(JUNTA)

    def target(x: np.ndarray) -> np.ndarray:
        return values[x @ place]

    exact, flips = cpu_seconds(
        lambda: probe(target, JUNTA), lambda: influences(Oracle(target, JUNTA), rng=np.random.default_rng(0))
    )
    rows[f"n = {JUNTA}: relevant bits by the table, CPU ms"] = 1e3 * exact
    rows[f"n = {JUNTA}: relevant bits by flips, CPU ms"] = 1e3 * flips
    peer = boofun_seconds(values)
    if peer is None:
        rows["boofun"] = "not installed here: its ratio is left out"
    else:
        rows[f"n = {JUNTA}: boofun's junta test / ours by the table"] = peer / exact
        rows[f"n = {JUNTA}: boofun's junta test / ours by flips"] = peer / flips
    show("probe: black boxes", rows)


if __name__ == "__main__":
    main()
