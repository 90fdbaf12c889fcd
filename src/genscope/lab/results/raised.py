"""What an exception says in one line, found in its traceback.

Guarantee: type and message of the exception that was raised last (of a group, one of its members), as Python writes
them after its frames: neither a later line of the message, nor a line of dashes, nor a note that a library added, as
JAX does on frames.
"""

import re

_HEADER = "Traceback (most recent call last):"
_NOTE = "For simplicity, JAX has removed its internal frames"  # after a line of dashes
_MARGIN = re.compile(r"^ *[|+] ?", re.MULTILINE)  # of exceptions in a group


def own_line(text: str) -> str:
    r"""The line of the exception itself; of a text without frames, its first.

    >>> own_line("Traceback (most recent call last):\n  File ...\nTypeError: no such shape\n-----\nJAX has removed ...")
    'TypeError: no such shape'
    """
    if f"Exception Group {_HEADER}" in text:
        text = _MARGIN.sub("", text)
    lines = [line for line in text.strip().splitlines() if line.strip(" -") and not line.startswith(_NOTE)]
    lines = lines or ["no message"]
    after = next((place for place in range(len(lines), 0, -1) if lines[place - 1].endswith(_HEADER)), 0)
    own = next((place for place in range(after, len(lines)) if not lines[place].startswith(" ")), 0)
    begun = lines[own].endswith((":", ": "))  # the message begins on the next line
    return " ".join(line.strip() for line in lines[own : own + 1 + begun]).removesuffix(":")
