"""The norms of heads by their definitions, with every d x d product formed."""

import numpy as np


def norms_of(matrix):
    """Spectral, Frobenius, sum of column norms, sum of row norms."""
    matrix = matrix.astype(np.float64)
    columns = sum(np.sqrt((matrix[:, j] ** 2).sum()) for j in range(matrix.shape[1]))
    rows = sum(np.sqrt((matrix[i] ** 2).sum()) for i in range(matrix.shape[0]))
    spectral = np.sqrt(np.linalg.eigvalsh(matrix.T @ matrix)[-1])
    return spectral, np.sqrt((matrix**2).sum()), columns, rows


def layer_norms(layer):
    """Norms of W_V and of W_Q W_K^T for each query head, heads of a group being neighbours."""
    share = len(layer.query) // len(layer.key)
    value = [norms_of(layer.value[h // share]) for h in range(len(layer.query))]
    products = [
        query.astype(np.float64) @ layer.key[h // share].astype(np.float64).T for h, query in enumerate(layer.query)
    ]
    return np.array(value).T, np.array([norms_of(product) for product in products]).T
