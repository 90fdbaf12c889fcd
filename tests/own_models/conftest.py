"""Models of PyTorch and Hugging Face: `make test-torch` has an environment for them."""

import pytest


@pytest.fixture(autouse=True)
def _torch():
    """Every test here needs the extra; see tests/SKIPS.md."""
    pytest.importorskip("torch", reason="needs genscope[torch]: run make test-torch")
    pytest.importorskip("torchax", reason="needs genscope[torch]: run make test-torch")
