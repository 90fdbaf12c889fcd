"""Tutorials as notebooks: their blocks of Python and of the console are cells, and the site shows what they print.

A page is plain Markdown. A block of Python that starts with the name of a file (`# mine.py`) writes that file; one
with prompts is what they say, without the outputs that the page shows (the tests compare those); a console's lines
are run by the shell.

Guarantee: the words of a page and its code are those of the Markdown, in their order; a command that fails ends the
build.
"""

import doctest
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = {
    "my-pytorch-classifier": ("torch", "torchax", "sklearn"),
    "my-hugging-face-encoder": ("torch", "torchax", "transformers"),
}
WITHOUT = "This page needs PyTorch and is executed by `make test-torch`; its outputs are not shown here."
HEAD = """---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3, language: python}
language_info: {name: python, pygments_lexer: ipython3}
---
"""
# What every executed page starts with: a shell whose failures are errors, lines of 80 characters, vector pictures.
BEFORE = """import os, subprocess, sys
os.environ.update(COLUMNS="80", NO_COLOR="1", JPY_PARENT_PID="1")

def _shell(line):
    done = subprocess.run(line, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"{line} ended with status {done.returncode}")

get_ipython().system = _shell
sys.path.insert(0, "")
import matplotlib_inline.backend_inline
matplotlib_inline.backend_inline.set_matplotlib_formats("svg")"""


@dataclass(frozen=True)
class Cell:
    """A piece of a page: words, or code."""

    code: bool
    text: str


def cells(page: str) -> list[Cell]:
    r"""The pieces of a page in order.

    >>> [cell.text for cell in cells("Type:\n```console\n$ genscope list\n```\n")]
    ['Type:', '! genscope list']
    """
    found: list[Cell] = []
    place = 0
    for block in BLOCK.finditer(page):
        found.append(Cell(False, page[place : block.start()].strip()))
        found += [Cell(True, code) for code in _code(block[1], block[2])]
        place = block.end()
    found.append(Cell(False, page[place:].strip()))
    return [cell for cell in found if cell.text]


def _code(language: str, text: str) -> list[str]:
    if language == "console":
        lines = re.findall(r"^\$ (.*)$", text.replace("\\\n", ""), re.MULTILINE)
        return ["\n".join(f"! {re.sub('  +', ' ', line)}" for line in lines)]
    if file := re.match(r"# (\w+\.py)\n", text):
        return [f"%%writefile {file[1]}\n{text}".rstrip()]
    if ">>> " in text:
        return _answered(text)
    return [text.rstrip()]


def _answered(text: str) -> list[str]:
    """What is typed at prompts, cut after each answer, because a cell shows its last value alone."""
    found = [""]
    for example in doctest.DocTestParser().get_examples(text):
        found[-1] += example.source
        if example.want:
            found.append("")
    return [code.rstrip() for code in found if code]


def missing(page: Path) -> list[str]:
    """Packages that a page needs and this environment lacks."""
    return [name for name in NEEDS.get(page.stem, ()) if importlib.util.find_spec(name) is None]


def myst(page: Path) -> str:
    """The page as a notebook of MyST; as it is, with a remark, where its packages are missing."""
    text = page.read_text(encoding="utf-8")
    if missing(page):
        remark = f"```{{note}}\n{WITHOUT}\n```"
        head, _, rest = text.partition("\n\n")
        return f"{head}\n\n{remark}\n\n{rest}"
    link = f'<a class="notebook" href="{page.stem}.ipynb" download>Download as a notebook</a>'
    parts = [f"```{{code-cell}} python\n:tags: [remove-cell]\n{BEFORE}\n```"]
    for number, cell in enumerate(cells(text)):
        if cell.code:
            parts.append(f"````{{code-cell}} python\n{cell.text}\n````")
        else:
            title, _, rest = cell.text.partition("\n") if number == 0 else ("", "", cell.text)
            parts.append("\n\n".join(filter(None, [title, link if title else "", rest.strip()])))
    return HEAD + "\n\n".join([parts[1], parts[0], *parts[2:]]) + "\n"


def ipynb(page: Path) -> str:
    """The page as a notebook of Jupyter, without outputs."""
    import nbformat.v4 as v4
    from nbformat import writes

    text = page.read_text(encoding="utf-8")
    before = [Cell(True, "%matplotlib inline")] if "matplotlib" in text or ".plot" in text else []  # for figures
    made = [
        v4.new_code_cell(cell.text, id=f"cell-{number}")
        if cell.code
        else v4.new_markdown_cell(cell.text, id=f"cell-{number}")
        for number, cell in enumerate(before + cells(text))
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return writes(v4.new_notebook(cells=made, metadata=kernel))
