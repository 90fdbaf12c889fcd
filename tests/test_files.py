import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from genscope import files
from genscope.files import check_place, draft
from genscope.lab import Store


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    return path


def write(path, text="new", error=None):
    with draft(path) as beside:
        beside.write_text(text)
        if error is not None:
            raise error


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_file_is_made_at_once_for_whom_the_user_allows(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write(tmp_path / "new.txt")
    finally:
        os.umask(before)
    assert (tmp_path / "new.txt").stat().st_mode & 0o777 == mode
    assert os.listdir(tmp_path) == ["new.txt"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_that_is_replaced_keeps_its_permissions(old, mode):
    old.chmod(mode)
    write(old)
    assert old.read_text() == "new"
    assert old.stat().st_mode & 0o777 == mode
    assert os.listdir(old.parent) == ["out.txt"]


@pytest.mark.parametrize("error", [KeyError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_an_end_before_the_end_leaves_the_old_file(old, error):
    with pytest.raises(type(error)):
        write(old, error=error)
    assert old.read_text() == "old"
    assert os.listdir(old.parent) == ["out.txt"]


def test_a_full_disk_leaves_the_old_file_and_says_so(old):
    with pytest.raises(OSError, match=r"could not be written \(No space left.*unchanged. Free some space"):
        write(old, error=OSError(28, "No space left on device"))
    assert old.read_text() == "old"
    assert os.listdir(old.parent) == ["out.txt"]


def test_a_full_disk_leaves_nothing_where_nothing_was(tmp_path):
    with pytest.raises(OSError, match=r"could not be written \(No space left.*: no file was made. Free some space"):
        write(tmp_path / "new.txt", error=OSError(28, "No space left on device"))
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_is_named(old, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.os, "open", refused)
    with pytest.raises(OSError, match=r"cannot be written \(Permission denied\).*Choose another directory"):
        write(old)


@pytest.mark.parametrize("target", ["out.txt", "absent.txt"])
def test_a_link_is_followed_and_stays(old, target):
    link = old.with_name("link.txt")
    link.symlink_to(target)
    check_place(link, "the trials", "trials.csv")
    write(link)
    assert os.readlink(link) == target
    assert old.with_name(target).read_text() == "new"


def test_a_link_to_nowhere_is_refused_and_one_in_a_circle_told(tmp_path):
    (tmp_path / "link").symlink_to("absent/x.csv")
    with pytest.raises(ValueError, match=r"no directory .*absent: it must be a file"):
        check_place(tmp_path / "link", "the trials", "trials.csv")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="symbolic links"):
        write(tmp_path / "circle")
    assert (tmp_path / "circle").is_symlink()


def test_a_pipe_gets_what_is_complete_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text)
        with pytest.raises(KeyError):
            write(pipe, error=KeyError("x"))
        assert not read.done()
        write(pipe)
        assert read.result(timeout=60) == "new"
    assert pipe.is_fifo()


@pytest.fixture
def full(tmp_path):
    """A device that is always full, and the test's own: a mistake would replace the system's."""
    device = tmp_path / "full"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        device.write_bytes(b"")
    except OSError:
        pytest.skip("only root makes devices, and on Linux")
    return device


def test_a_full_device_is_an_error_and_stays(full):
    with pytest.raises(OSError, match=r"full could not be written \(No space left.*Give the name of a file"):
        write(full)
    assert full.is_char_device()


def test_a_disk_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "is_block_device", lambda _: True)
    with pytest.raises(ValueError, match="a disk: it must be a file"):
        check_place(tmp_path / "sda", "the trials", "trials.csv")


def test_a_database_is_not_replaced_and_other_files_are(old):
    check_place(old, "the trials", "trials.csv")
    with Store(f"sqlite:///{old.parent / 'genscope.db'}") as store:
        store.put_verdict("A1", "quick", {"verdict": "holds"})
    with pytest.raises(ValueError, match=r"genscope.db for the trials, which is a database.*such as trials.csv"):
        check_place(old.parent / "genscope.db", "the trials", "trials.csv")


def test_what_cannot_become_a_file_is_refused(tmp_path):
    check_place(tmp_path / "fine.csv", "the trials", "trials.csv")
    with pytest.raises(ValueError, match=r"for the trials, a directory.*such as trials.csv"):
        check_place(tmp_path, "the trials", "trials.csv")
    with pytest.raises(ValueError, match=r"no directory .*absent.*create the directory first"):
        check_place(Path(tmp_path / "absent" / "x"), "a model", "model.safetensors")
