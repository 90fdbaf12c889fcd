"""Processor seconds from the call of a command to its end, for commands that compute next to nothing.

The least of some runs each, all commands in turns, as a busy machine disturbs them alike; beside them Python itself and
the library that reads the command line, which no command can do without. `list` reads a store that is named by
GENSCOPE_STORE, or none, and has been called before: the first call after an installation loads every study.
"""

import os
import subprocess
import sys
import tempfile

from benchmarks._timing import children, show

COMMANDS = {
    # what is called, and the seconds that are wanted
    "--help": (["--help"], 0.15),
    "bound": (["bound", "vc-cover", "--vc-dimension", "5", "--points", "100"], 0.3),
    "probe": (["probe", "x0 & x1", "--bits", "4"], 0.6),
    "list": (["list"], 0.7),
}
REPEATS = 5


def measured() -> dict[str, float]:
    """The least processor seconds of each command, of an empty program, and of one that loads typer alone."""
    programs = {name: ["-m", "genscope", *request] for name, (request, _) in COMMANDS.items()}
    programs |= {"python": ["-c", "pass"], "typer": ["-c", "import typer.rich_utils"]}
    found: dict[str, list[float]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory() as directory:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        for _ in range(REPEATS + 1):  # the first fills caches
            for name, program in programs.items():
                before = children()
                call = [sys.executable, *program]
                subprocess.run(call, check=True, capture_output=True, cwd=directory, env=environment)
                found[name].append(children() - before)
    return {name: min(seconds[1:]) for name, seconds in found.items()}


def main() -> None:
    seconds = measured()
    rows = {f"{name}: CPU seconds (wanted: {wanted})": seconds[name] for name, (_, wanted) in COMMANDS.items()}
    rows["of which Python"] = seconds["python"]
    rows["of which Python and typer"] = seconds["typer"]
    show("start: commands that compute next to nothing", rows)


if __name__ == "__main__":
    main()
