"""What a process has loaded of the user's code and of genscope's, by the text as it was then.

A worker may outlive an edit: Python keeps what it has imported, while digests (`plans.sources`) are of the text as it
is on disk. So imports are listened to, and the text of each file is remembered from the moment before it is loaded.

Departures: what was loaded before the listening began, such as the modules that a worker begins with, is remembered a
moment later.
Guarantee: exact for what is imported by name; a text is remembered before it is loaded, so an edit in between is taken
for one after.
"""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from genscope.lab.plans.carried import PACKAGE, is_installed

STUDY_FILE = "study_file_"  # so begin the names of modules that `reference.load` runs anew for each study
Texts = dict[str, tuple[Path, str | None]]  # a module, its file, and a digest of its text


class FromText(SourceFileLoader):
    """Loads a file from its text alone: Python takes bytecode for up to date if length and second are the same."""

    def get_code(self, fullname: str) -> CodeType:
        """The compiled text."""
        return self.source_to_code(self.get_data(self.path), self.path)


class Loaded(MetaPathFinder):
    """Listens to imports, once it is first on `sys.meta_path`.

    A module that a finder before it found (of jaxtyping's hook, say) is remembered when the texts are next asked for.
    """

    def __init__(self) -> None:
        self._texts: Texts = {}
        self._installed: set[str] = set()
        self._known = 0
        self.texts()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find, the user's modules to be loaded from their text."""
        finders = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        found = (finder.find_spec(name, path, target) for finder in finders)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None:
            self._note(name, spec)
            if (
                name in self._texts
                and not self._texts[name][0].is_relative_to(PACKAGE)
                and type(spec.loader) is SourceFileLoader
            ):
                spec.loader = FromText(name, spec.loader.path)
        return spec

    def texts(self) -> Texts:
        """The files of the modules that are loaded, and digests of their texts."""
        if len(sys.modules) != self._known:  # asked after every trial
            self._known = len(sys.modules)
            for name, module in list(sys.modules.items()):
                if name not in self._texts:
                    self._note(name, getattr(module, "__dict__", {}).get("__spec__"))
        return {name: text for name, text in self._texts.copy().items() if name in sys.modules}

    def changed(self) -> list[str]:
        """The files whose text is another than the one that was loaded."""
        return self.unlike(read({name: file for name, (file, _) in self.texts().items()}))

    def unlike(self, meant: Texts) -> list[str]:
        """The files of modules that are loaded with another text than is meant."""
        texts = self.texts()
        return sorted({str(texts[name][0]) for name in texts.keys() & meant.keys() if texts[name] != meant[name]})

    def _note(self, name: str, spec: ModuleSpec | None) -> None:
        """Remember the text of a file that is the user's or ours."""
        first = name.partition(".")[0]
        if first in self._installed or name.startswith(STUDY_FILE):
            return
        if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
            return
        file = Path(str(spec.origin)).resolve()
        if is_installed(file) and not file.is_relative_to(PACKAGE):
            self._installed.add(first)
        else:
            self._texts[name] = file, _digest(file)


def read(files: Mapping[str, Path]) -> Texts:
    """The texts of modules as they are now."""
    return {name: (file, _digest(file)) for name, file in files.items()}


def _digest(file: Path) -> str | None:
    """A digest of a file; None where there is none any more."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None
