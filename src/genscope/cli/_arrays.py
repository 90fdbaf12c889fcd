"""Arrays of a .npz or .safetensors file, mapped where the file allows it, so that large ones are read in parts.

Guarantee: nothing in a file is ever run: pickles are refused. What is compressed is read at once.
"""

import zipfile
from pathlib import Path

import numpy as np

from genscope.checkpoints.reader import read_tensors
from genscope.refusal import Refusal

HOW = "Write one with numpy.savez('data.npz', x=x, y=y), with numbers or truth values in both."
_LOCAL_HEADER = 30  # bytes before the name in a member of a zip file


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays by name."""
    if path.suffix not in (".safetensors", ".npz"):
        raise Refusal(
            f"got {path} for the data: it must be a .safetensors or .npz file with arrays x and y; pickles and "
            f"other files that may run code are not read. {HOW}"
        )
    with open(path, "rb"):  # that it cannot be opened is the system's message
        pass
    if path.suffix == ".npz" and not zipfile.is_zipfile(path):
        raise Refusal(f"{path} is not a .npz file, or not all of one: its end is missing. {HOW}")
    try:
        return read_tensors(path) if path.suffix == ".safetensors" else _npz(path)
    except Exception as error:  # whatever the libraries make of a broken file
        reason = "it holds pickled objects" if "allow_pickle" in str(error) else str(error)
        raise Refusal(f"{path} cannot be read as arrays of numbers ({reason}). {HOW}") from error


def _npz(path: Path) -> dict[str, np.ndarray]:
    # Opened here: of a torn file NumPy would leave its own open.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive, zipfile.ZipFile(path) as members:
        stored = {
            member.filename.removesuffix(".npy"): member
            for member in members.infolist()
            if member.compress_type == zipfile.ZIP_STORED
        }
        return {name: _mapped(path, stored[name]) if name in stored else archive[name] for name in archive.files}


def _mapped(path: Path, member: zipfile.ZipInfo) -> np.ndarray:
    """An array that lies in the file as it is."""
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL_HEADER)
        lengths = (int.from_bytes(header[place : place + 2], "little") for place in (26, 28))  # of name and extra field
        file.seek(member.header_offset + _LOCAL_HEADER + sum(lengths))
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise ValueError("allow_pickle")
        if 0 in shape or not shape:
            return np.fromfile(file, dtype, int(np.prod(shape))).reshape(shape)
        return np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran else "C")
