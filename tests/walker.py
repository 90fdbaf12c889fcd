"""A reader who does what a page says: `python walker.py PAGE`, in an empty directory.

Files are written, lines typed, cells executed, and Python compared with what the page shows; the first thing that
differs ends the walk with status 1. A process of its own, because a reader's JAX has none of the test suite's
strictness.
"""

import doctest
import re
import runpy
import shlex
import sys
from pathlib import Path

from typer.testing import CliRunner

from genscope.cli._app import app

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def walk(page: Path) -> int:
    """The number of lines that were typed or compared."""
    done, names = 0, {}
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "console":
            for line in re.findall(r"^\$ (.*)$", text.replace("\\\n", ""), re.MULTILINE):
                type_line(line)
                done += 1
        elif file := re.match(r"# (\w+\.py)\n", text):
            Path(file[1]).write_text(text, encoding="utf-8")
        elif ">>> " not in text:  # a cell of a notebook
            exec(compile(text, page.name, "exec"), names)
            done += 1
        else:
            example = doctest.DocTestParser().get_doctest(text, names, page.stem, str(page), 0)
            if doctest.DocTestRunner().run(example, clear_globs=False).failed:
                sys.exit(1)
            names = example.globs
            done += len(example.examples)
    return done


def type_line(line: str) -> None:
    """One line of a console, whose program is genscope or python."""
    program, *arguments = shlex.split(line, comments=True)
    if program == "python":
        runpy.run_path(arguments[0], run_name="__main__")
        return
    result = CliRunner().invoke(app, arguments, prog_name=program)
    if program != "genscope" or result.exit_code:
        sys.exit(f"$ {line}\n{result.output}\n{result.exception!r}")


if __name__ == "__main__":
    sys.path.insert(0, "")
    print(walk(Path(sys.argv[1])))
