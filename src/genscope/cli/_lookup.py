"""Finding what a request names: a study that is shipped or in the user's file, and a store that may not exist yet.

Guarantee: exact; a user's file is run as Python runs it, and what it raises is shown as Python shows it.
"""

import difflib
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import typer

from genscope.cli._errors import complain
from genscope.lab import Selection, Store, Study, select
from genscope.lab.execution.reference import load
from genscope.lab.plans.selection import parse_where
from genscope.lab.storage import database
from genscope.refusal import Refusal


def find_study(name: str) -> Study:
    """The shipped study of that name, or the one in `file.py:name`."""
    if name.startswith("learn:"):
        return _study_of_question(name)
    file, colon, attribute = name.rpartition(":")
    if colon and file.endswith(".py"):
        return _study_in(Path(file), attribute)
    if name.endswith(".py"):
        raise Refusal(f"got the study {name!r}, which is a file: name the study in it as well. Write {name}:study")
    from genscope import studies

    shipped = {study.name: study for study in studies.ALL}
    if name in shipped:
        return shipped[name]
    near = difflib.get_close_matches(name, shipped, n=1, cutoff=0.5)
    advice = f"Did you mean {near[0]}?" if near else "Choose a name that genscope list shows."
    raise Refusal(
        f"there is no study {name!r} among the {len(shipped)} shipped ones; your own are written file.py:study. "
        f"{advice}"
    )


def _study_of_question(text: str) -> Study:
    """The study of a question that was asked by `genscope learn`."""
    from genscope.questions.question import parsed
    from genscope.questions.study import study

    return study(parsed(text))


def find_selection(
    study: str, budget: str, where: Sequence[str] | None, seeds: int | None, seed: int | None
) -> tuple[Study, Selection]:
    """The study, and what the options of `genscope run` select of it."""
    chosen = find_study(study)
    return chosen, select(chosen, str(budget), parse_where(chosen, where or ()), seeds, seed, reference=study)


def _study_in(file: Path, attribute: str) -> Study:
    if not file.is_file():
        raise FileNotFoundError(
            f"got the study {file}:{attribute}, but there is no file {file}: a study of your own lives in a Python "
            "file. Correct the path."
        )
    module = _load(file)
    found = getattr(module, attribute, None)
    if isinstance(found, Study):
        _check_name(found, file)
        return found
    names = [name for name, value in vars(module).items() if isinstance(value, Study)]
    is_there = hasattr(module, attribute)
    what = f"is of type {type(found).__name__}" if is_there else f"is not in {file}"
    raise Refusal(
        f"got the study {file}:{attribute}, but {attribute!r} {what}: its studies are {', '.join(names) or 'none'}. "
        "Name a genscope.Study."
    )


def _check_name(study: Study, file: Path) -> None:
    """Results are stored under a study's name: two studies of one name would be taken for one."""
    from genscope import studies

    if any(study.name == shipped.name and study is not shipped for shipped in studies.ALL):
        raise Refusal(
            f"got a study in {file} with the name {study.name!r}, which a shipped study already has: their results "
            "would mix. Give yours a different name."
        )


def _load(file: Path) -> ModuleType:
    """Run the file; what it raises ends the program with status 1."""
    try:
        return load(file)
    except (Exception, SystemExit) as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != str(file):
            trace = trace.tb_next
        shown = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
        complain(f"{file} could not be loaded. It says:\n{shown}")
        raise typer.Exit(1) from None


def find_store(url: str) -> Store | None:
    """The store, opened for reading; None where nothing is stored yet."""
    parts = database.parse(url)
    if parts.get_backend_name() == "sqlite":
        path = Path(str(parts.database))
        if path.parent.is_dir() and (not path.exists() or (path.is_file() and path.stat().st_size == 0)):
            return None
    return Store(url, read_only=True)
