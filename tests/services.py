"""Programs of the system that some tests need: without one they are skipped with a loud line.

Where GENSCOPE_REQUIRE_SERVICES is set (`.ci/run` installs the programs and sets it) they fail instead.
"""

import os
import shutil
from pathlib import Path

import pytest

_MARK = "NOT tested"


def program(name: str, *, untested: str, places: str = "") -> str:
    """The path of a program, looked for on PATH and then in `places`, a pattern of absolute directories."""
    found = shutil.which(name)
    if found is None and places:
        found = next((str(path) for path in sorted(Path("/").glob(f"{places.lstrip('/')}/{name}"), reverse=True)), None)
    if found is not None:
        return found
    message = f"{name} is not installed: {untested} is {_MARK}"
    if os.environ.get("GENSCOPE_REQUIRE_SERVICES"):
        pytest.fail(f"{message}, and GENSCOPE_REQUIRE_SERVICES asks for it. Install it, or unset the variable.")
    pytest.skip(message)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once, at the end and in red, what this machine could not test."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = {str(report.longrepr[2]) for report in reports if isinstance(report.longrepr, tuple)}
    for reason in sorted(reason for reason in reasons if _MARK in reason):
        terminalreporter.write_line(reason.removeprefix("Skipped: "), red=True, bold=True)
