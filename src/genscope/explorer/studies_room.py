"""The room Studies (a stub until it is built).

Source: product.md, Section 8.
Departures: None.
Guarantee: None.
"""

from genscope.explorer.room import Room


def room(store: str) -> Room:
    """The room of a store."""
    return Room("studies", "Studies", "What was measured, and what is being measured now.", {})
