"""A user's Python in a question: `my_file.py:name`, known by the content of its file, or a function of this process.

The user's modules that the file imports belong to it, as `lab.plans.sources` sees them.

Guarantee: a file that has changed is another one, so that results never mix; a worker with another file refuses.
"""

import functools
import hashlib
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Array, Key

from genscope.lab.execution.reference import load
from genscope.lab.plans.sources import file_sources
from genscope.questions import identity
from genscope.refusal import Refusal


@dataclass(frozen=True)
class UserFile:
    """A name in a file; `label` is how a stored trial knows it, `path` where the file is on this machine."""

    path: str
    name: str
    digest: str

    @property
    def label(self) -> str:
        """File, name and the first digits of the content's digest."""
        return f"{self.place}@{self.digest[:8]}"

    @property
    def place(self) -> str:
        """File and name, as people write them."""
        return f"{Path(self.path).name}:{self.name}" if self.path else self.name

    def found(self) -> Any:
        """What the name stands for; what the file raises comes out."""
        if not self.path:
            return _TYPED[self.digest]
        if _digest(Path(self.path)) != self.digest:
            raise Refusal(
                f"{self.path}, or a file that it imports, differs from what the question was asked with: it has "
                "changed, or this machine has another version. Do not change it while the question is being "
                "answered, or ask again."
            )
        return _found(self.path, self.name, self.digest)

    def call(self, key: Key[Array, ""], context_length: int) -> Any:
        """What the user's function makes of a key and a context length; what it raises comes out."""
        function = self.found()
        if not callable(function):
            raise Refusal(
                f"got {self.place}, which is of type {type(function).__name__}: it must be a function of a key and "
                "a context length. Name one."
            )
        try:
            inspect.signature(function).bind(key, context_length)
        except TypeError as error:
            raise Refusal(
                f"got {self.place}, which cannot be called with a key and a context length ({error}): it must "
                f"accept {self.name}(key, context_length). Give it these two arguments."
            ) from None
        except ValueError:  # written in C: it has no signature, and says itself what it takes
            pass
        return function(key, context_length)


def is_user_file(text: str) -> bool:
    """Whether a text has the form `my_file.py:name`.

    >>> is_user_file("my_file.py:build"), is_user_file("maj(x0,x1,x2)"), is_user_file("mlp")
    (True, False, False)
    """
    file, colon, name = text.rpartition(":")
    return bool(colon) and file.endswith(".py") and name.isidentifier()


def user_file(text: str) -> UserFile:
    """The file and name of `my_file.py:name`; the file is read, not run."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise Refusal(
            f"got {text!r}, but there is no file {file}: your own code must be written file.py:name. Correct the name."
        )
    return UserFile(str(path.resolve()), name, _digest(path))


def local(function: Any) -> UserFile:
    """A function or a task of this process, known by its source and by the values that it depends on."""
    known = identity.digest(function)
    _TYPED[known] = function
    return UserFile("", getattr(function, "__name__", type(function).__name__), known)


_TYPED: dict[str, Any] = {}


def _digest(path: Path) -> str:
    try:
        imported, _ = file_sources(path)
        return hashlib.sha256(path.read_bytes() + (imported.digest.encode() if imported.parts else b"")).hexdigest()
    except OSError:
        raise Refusal(
            f"got {path}, which cannot be read on this machine. Copy the file to every machine that computes."
        ) from None


_LOADED: dict[str, str] = {}


@functools.cache
def _found(path: str, name: str, digest: str) -> Any:
    if _LOADED.get(path, digest) != digest:  # what it imports may have changed, and is to be loaded anew as well
        for module in file_sources(Path(path))[1]:
            sys.modules.pop(module, None)
    _LOADED[path] = digest
    module = load(Path(path))
    if not hasattr(module, name):
        known = [each for each in vars(module) if not each.startswith("_")]
        raise Refusal(f"got {path}:{name}, but the file has no {name!r}: it has {', '.join(known)}. Name one of these.")
    return getattr(module, name)
