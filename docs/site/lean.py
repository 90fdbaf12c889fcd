"""Formal versions, in public libraries of Lean, of statements that genscope uses."""


def section() -> str:
    """The section of the page of statements."""
    return ""
