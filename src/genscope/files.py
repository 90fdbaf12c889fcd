"""Files that are complete or not there.

Guarantee: whatever goes wrong while a file is written, the one that was there is unchanged and no half is left. Links
and devices stay what they are; what is sent to a device or a pipe is complete before its first byte goes out.
"""

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from genscope.refusal import Refusal

SQLITE = b"SQLite format 3\0"  # how its files begin
PICTURES = ("svg", "png", "pdf")


def check_place(path: Path, what: str, example: str) -> None:
    """Refuse a path that cannot become a file, and a database; `what` is what the file is for."""
    parent, taken = _followed(path).parent, path.is_dir() or path.is_block_device()
    if taken or not parent.is_dir():
        place = ("a directory" if path.is_dir() else "a disk") if taken else f"but there is no directory {parent}"
        raise Refusal(
            f"got {path} for {what}, {place}: it must be a file in an existing directory. Give a file name such as "
            f"{example}, or create the directory first."
        )
    if path.is_file() and _is_database(path):
        raise Refusal(
            f"got {path} for {what}, which is a database: other files are overwritten, but results never are. Give "
            f"another name, such as {example}."
        )


def picture_kind(path: Path) -> str:
    """Which of `PICTURES` the ending of the name says; refused where no such file can be written."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in PICTURES:
        raise Refusal(f"got {path} for a figure: its name must end in .{', .'.join(PICTURES)}. Change the ending.")
    check_place(path, "a figure", "figure.svg")
    return kind


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:  # what cannot be read may still be replaced
        return False


def _followed(path: Path) -> Path:
    """The place that a link leads to: that file is replaced, and the link stays."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _is_stream(path: Path) -> bool:
    """Whether bytes are sent to it, as to a device or a pipe, and nothing can be put in its place."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def draft(path: Path) -> Iterator[Path]:
    """A place to write to, whose content goes to `path` when the block ends well."""
    with _sent(path) if _is_stream(path) else _replaced(_followed(path)) as place:
        yield place


@contextlib.contextmanager
def _sent(path: Path) -> Iterator[Path]:
    try:
        with tempfile.TemporaryDirectory(prefix="genscope-") as directory:
            yield (name := Path(directory, "draft"))
            with name.open("rb") as whole, path.open("wb") as stream:
                shutil.copyfileobj(whole, stream)
    except OSError as error:
        raise OSError(
            f"{path} could not be written ({error.strerror or error}): it is a device or a pipe, and did not take all "
            "of it. Give the name of a file."
        ) from error


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """A file beside `path`, which takes its name."""
    name = path.with_name(f".genscope-{secrets.token_hex(8)}")
    try:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # less what the user's umask takes away
    except OSError as error:
        raise OSError(
            f"got the file {path}, and {path.parent} cannot be written ({error.strerror}): a file is first written "
            "next to it. Choose another directory, or change its permissions."
        ) from error
    try:
        yield name
        with contextlib.suppress(FileNotFoundError):
            os.chmod(name, path.stat().st_mode & 0o777)  # a file that was private stays so
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if not isinstance(error, OSError):
            raise
        left = "the file that was there is unchanged" if path.exists() else "no file was made"
        raise OSError(
            f"{path} could not be written ({error.strerror or error}): {left}. Free some space, or choose another file."
        ) from error
