"""One HTML file from a store.

What makes it is loaded on first use: the command line uses `genscope.report.words` and must not wait for the drawing
library.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from genscope.report.page import render, write_report

__all__ = ["render", "write_report"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from genscope.report import page

        return getattr(page, name)
    raise AttributeError(f"module 'genscope.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
