"""Extras: what genscope can do only with packages that its core leaves out, by the names that pip knows them by.

Guarantee: exact; what needs an extra is refused before anything is computed, and the refusal says what to install.
"""

import importlib.util

from genscope.refusal import Refusal

EXTRAS = {
    "report": ("jinja2", "matplotlib"),
    "explorer": ("h11", "jinja2", "latex2mathml", "markupsafe", "matplotlib", "plotly", "starlette", "uvicorn"),
    "postgres": ("psycopg",),
    "cluster": ("distributed",),
    "torch": ("torch", "torchax"),
}
"""The packages, as Python imports them, of each extra."""


def need(extra: str, *, given: str) -> None:
    """Refuse what was given where a package of the extra is not installed."""
    missing = [name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise Refusal(
            f"{given}: this needs {', '.join(missing)}, from genscope's extra {extra}. In a clone of genscope, run "
            f"pip install '.[{extra}]'."
        )
