"""The room Construction (a stub until it is built).

Source: product.md, Section 8.
Departures: None.
Guarantee: None.
"""

from genscope.explorer.room import Room


def room(store: str) -> Room:
    """The room; it needs no store."""
    return Room("construction", "Construction", "A Transformer whose weights are written down instead of learned.", {})
