"""Splits of the accuracy, fewer of them."""

import pytest

from genscope.bounds import split


@pytest.fixture(scope="module")
def coarse():
    """A small family of splits, for what does not depend on how many there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "_EFFORT", 16)
        yield
