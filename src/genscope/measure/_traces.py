r"""Traces of a symmetric matrix that is known by its products with vectors.

All estimators but XNysTrace also give the traces of diagonal blocks from the same products: for a projection
$P=QQ^\top$ and $\bar P=I-P$, $A=(PA+AP-PAP)+\bar PA\bar P$, where the diagonal of the bracket is known from $AQ$
and that of the rest is estimated by $\tilde\omega\circ\bar PA\tilde\omega$, $\tilde\omega=\bar P\omega$.

Source: Hutchinson 1989; Meyer, Musco, Musco and Woodruff 2021 (Hutch++); Epperly, Tropp and Webber 2024 (XTrace,
XNysTrace, with their normalization); Lanczos 1950.
Departures: blocks, which the papers do not have; summed over blocks the estimates are the papers'. Written here in
NumPy, because products come from one compiled program and all else is small: matfree, which agrees (tests), compiles
programs of its own for every size, tests the rank by absolute size (a small enough matrix passes for one of low rank),
divides by 0 at the zero matrix, and has no blocks.
Guarantee: unbiased estimates (linear algebra in float64). Values of different probes are independent for Hutchinson and
for Hutch++ given its sketch; those of XTrace are not, see `OPTIMISM`.
"""

from collections.abc import Callable, Sequence

import numpy as np

Products = Callable[[np.ndarray], np.ndarray]

OPTIMISM = 1.5
"""By how much the spread of leave-one-out estimates, taken as independent, understates their error at most: measured
with 400 draws each on ten spectra (flat, polynomial, exponential, steps, indefinite; p = 400, 4 to 64 probes) the
factor is 0.95 to 1.46, and 1.8 for a step of 20 large eigenvalues met by 16 probes."""


_RANK = 1e-13  # relative size below which a column of a QR factorization depends on the others
_PSEUDO, _LEVERAGE = 1e-12, 1e-8  # of a pseudo-inverse: eigenvalues taken for 0, and how far from 1 leverage is less


def hutchinson(products: Products, probes: np.ndarray, starts: Sequence[int]) -> np.ndarray:
    r"""$v_g^\top(Av)$ for every probe and block, from one product each."""
    return _blocks(probes * products(probes), starts)


def hutchpp(products: Products, sketch: np.ndarray, probes: np.ndarray, starts: Sequence[int]) -> np.ndarray:
    """The trace on the range of a sketch, and Hutchinson's estimate on its complement, for every probe and block."""
    basis = np.linalg.qr(products(sketch).T)[0]
    image = products(basis.T).T
    known = _blocks(_within(basis, image).T[None], starts)
    rest = (probes.T - basis @ (basis.T @ probes.T)).astype(float)
    outside = products(rest.T).T
    outside -= basis @ (basis.T @ outside)
    return known + _blocks((rest * outside).T, starts)


def xtrace(products: Products, probes: np.ndarray, starts: Sequence[int]) -> np.ndarray:
    """The trace on the range of all products but one, and the estimate of the rest by that one, in turn."""
    number, size = probes.shape
    omega = probes.T.astype(float)
    image = products(probes).T
    basis, triangle = np.linalg.qr(image)
    image_of_basis = products(basis.T).T
    # Without column i, the projection is Q(I - s_i s_i^T)Q^T with s_i the i-th column of R^-T, normalized; where the
    # columns depend on each other, the others span the same space.
    left_out = np.zeros_like(triangle)
    sizes = np.abs(np.diag(triangle))
    if sizes.min() > _RANK * sizes.max():
        left_out = np.linalg.inv(triangle).T
        left_out /= np.linalg.norm(left_out, axis=0)
    coordinates = basis.T @ omega
    kept = coordinates - left_out * np.sum(left_out * coordinates, axis=0)
    rest = omega - basis @ kept
    outside = image - image_of_basis @ kept
    seen = basis.T @ outside
    outside -= basis @ (seen - left_out * np.sum(left_out * seen, axis=0))
    # The rest of a probe is uniform on a sphere of its subspace: give it the length that is expected there.
    scale = (size - number + 1) / np.maximum(np.sum(rest**2, axis=0), np.finfo(float).tiny)
    known = _within(basis, image_of_basis)[:, None] - _without(basis, image_of_basis, left_out)
    return _blocks((known + scale * rest * outside).T, starts)


def nystrom(products: Products, probes: np.ndarray) -> np.ndarray:
    r"""XNysTrace, for positive semidefinite matrices and half the products: one value per probe.

    Without probe i, $Y(\Omega^\top Y)^+Y^\top$ with $Y=A\Omega$ loses $zz^\top$, z proportional to $Y$ times the i-th
    column of the inverse; the rest of the trace is estimated by $(z^\top\omega_i)^2$, normalized as in `xtrace`.
    """
    number, size = probes.shape
    omega, image = probes.T.astype(float), products(probes).T
    values, vectors = np.linalg.eigh((omega.T @ image + image.T @ omega) / 2)
    kept = values > _PSEUDO * max(values[-1], 0)
    root = vectors[:, kept] / np.sqrt(values[kept])
    factor = image @ root
    lengths = np.linalg.norm(root, axis=1)
    # A probe without which the space stays the same loses nothing: its leverage is below 1.
    needed = np.sum(vectors[:, kept] ** 2, axis=1) > 1 - _LEVERAGE
    lost = (factor @ root.T) * np.where(needed, 1 / np.where(needed, lengths, 1), 0)
    left_out = np.linalg.inv(np.linalg.qr(omega)[1])
    rest = 1 / np.sum(left_out**2, axis=1)  # squared length of each probe outside of the span of the others
    scale = (size - number + 1) / rest
    return np.sum(factor**2) - np.sum(lost**2, axis=0) + scale * np.sum(lost * omega, axis=0) ** 2


def lanczos(products: Products, start: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Ritz values in increasing order, each with a distance within which there is an eigenvalue.

    Every new vector is made orthogonal to all before it, twice; the iteration ends where nothing new is left.
    """
    basis = [start / np.linalg.norm(start)]
    matrix, step, residual = np.zeros((depth, depth)), 0, 0.0
    for step in range(depth):
        image = products(basis[step][None])[0]
        rest = image
        for _ in range(2):
            known = np.zeros_like(rest)
            for vector in basis:  # one at a time: of a large model, copies of all would not fit
                known += (vector @ rest) * vector
            rest = rest - known
        matrix[step, step] = basis[step] @ image
        residual = float(np.linalg.norm(rest))
        if step + 1 == min(depth, start.size) or not residual > _RANK * np.linalg.norm(image):
            break
        matrix[step, step + 1] = matrix[step + 1, step] = residual
        basis.append(rest / residual)
    values, vectors = np.linalg.eigh(matrix[: step + 1, : step + 1])
    return values, np.abs(vectors[-1]) * residual


def _within(basis: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Diagonal of PA + AP - PAP."""
    return np.sum(basis * (2 * image - basis @ (basis.T @ image)), axis=1)


def _without(basis: np.ndarray, image: np.ndarray, left_out: np.ndarray) -> np.ndarray:
    """What that diagonal loses when the direction Qs leaves P, for every column s."""
    matrix = basis.T @ image
    direction, moved = basis @ left_out, image @ left_out
    # P loses uu^T with u = Qs: PA + AP loses uu^TA + Auu^T, PAP loses uu^TAP + PAuu^T - (u^TAu) uu^T.
    inside = basis @ (matrix @ left_out)
    return direction * (2 * moved - 2 * inside + direction * np.sum(left_out * (matrix @ left_out), axis=0))


def _blocks(terms: np.ndarray, starts: Sequence[int]) -> np.ndarray:
    """Sums of rows over the blocks that begin at `starts`."""
    return np.add.reduceat(terms.astype(float), list(starts), axis=1)
