"""Docstrings as Markdown: facts in bold, examples in fences, what looks like HTML escaped.

Guarantee: words are kept; formulas stay between their dollar signs.
"""

import re

FACTS = ("Source:", "Departures:", "Guarantee:")
_SPANS = re.compile(r"(`[^`]*`|\$[^$]*\$)")


def markdown(text: str) -> str:
    r"""The text of a docstring, without its indentation, as Markdown.

    >>> print(markdown("Two.\n\nSource: a book.\nGuarantee: exact."))
    Two.
    <BLANKLINE>
    **Source:** a book.
    <BLANKLINE>
    **Guarantee:** exact.
    """
    return "\n\n".join(filter(None, map(_paragraph, re.split(r"\n\s*\n", text.strip("\n")))))


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if any(line.startswith(">>> ") for line in lines):
        first = next(place for place, line in enumerate(lines) if line.startswith(">>> "))
        before = _paragraph("\n".join(lines[:first])) + "\n\n" if first else ""
        return before + "\n".join(["```python", *lines[first:], "```"])
    if lines and all(line.startswith("    ") for line in lines if line):
        return "\n".join(["```text", *(line[4:] for line in lines), "```"])
    found: list[str] = []
    for line in lines:
        fact = next((fact for fact in FACTS if line.startswith(fact)), None)
        if fact:
            found += [""] * bool(found) + [f"**{fact}**{line[len(fact) :]}"]
        else:
            found.append(line)
    return _escaped("\n".join(found))


def _escaped(text: str) -> str:
    parts = _SPANS.split(text)
    return "".join(part if place % 2 else re.sub(r"<(?=[A-Za-z/!])", r"\\<", part) for place, part in enumerate(parts))


def summary(text: str) -> str:
    r"""The first sentence of a docstring, on one line.

    >>> summary("What learns: definitions, a page each. More.\n\nSource: a book.")
    'What learns: definitions, a page each.'
    """
    first = " ".join(re.split(r"\n\s*\n", text.strip("\n"))[0].split())
    return _escaped(re.split(r"(?<=[a-z)`$\]]\.)\s", first)[0])
