"""Norms of a model's heads as heat maps: layers downwards, heads to the right.

Guarantee: exact up to shades; shades are logarithmic where the largest norm is five times the smallest or more.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from genscope.checkpoints.norms import LayerNorms

_NORMS = {"spectral": "spectral", "frobenius": "Frobenius", "two_one": "(2,1)"}


def draw_norms(layers: Sequence[LayerNorms], *, title: str) -> Figure:
    """Three norms of both maps; each panel has a scale of its own."""
    width, height = 3.6 + 0.6 * len(layers[0].value.spectral), 2.4 + 0.4 * len(layers)
    figure = Figure(figsize=(min(max(9.0, width), 24), min(max(5.0, height), 24)), layout="constrained")
    figure.suptitle(title)
    panels = figure.subplots(2, 3)
    for row, kind in enumerate(LayerNorms._fields):
        for column, (norm, name) in enumerate(_NORMS.items()):
            axes = panels[row, column]
            image = _draw(axes, np.stack([getattr(getattr(layer, kind), norm) for layer in layers]))
            scale = figure.colorbar(image, ax=axes, ticks=_ticks(image), format="%.4g")
            scale.minorticks_off()
            axes.set_title(f"{kind.replace('_', '-')}, {name}", fontsize="medium")
            if row == 1:
                axes.set_xlabel("head")
            if column == 0:
                axes.set_ylabel("layer")
    return figure


def _draw(axes: Axes, norms: np.ndarray) -> AxesImage:
    low, high = float(norms.min()), float(norms.max())
    shades = LogNorm(low, high) if 0 < 5 * low <= high else Normalize(low, high)
    image = axes.imshow(norms, norm=shades, cmap="viridis", aspect="auto", interpolation="nearest")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
    return image


def _ticks(image: AxesImage) -> np.ndarray:
    """Numbers to read shades by, the least and the largest norm among them."""
    spaced = np.geomspace if isinstance(image.norm, LogNorm) else np.linspace
    return spaced(*image.get_clim(), 5)
