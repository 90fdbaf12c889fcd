"""Seeds of statistical tests: fixed, or fresh and printed when GENSCOPE_FRESH_SEEDS is set (make test-all)."""

import os
import secrets


def seed(default: int = 0) -> int:
    if not os.environ.get("GENSCOPE_FRESH_SEEDS"):
        return default
    fresh = secrets.randbits(31)
    print(f"seed {fresh}")
    return fresh
