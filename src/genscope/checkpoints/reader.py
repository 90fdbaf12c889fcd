"""Tensors of a safetensors file, or of several in a directory, as arrays mapped from the disk.

Source: the safetensors format: eight bytes with the length of the header, the header in JSON, the tensors.
Departures: stricter than the format, whose headers may have 100 MB: ours have 16 MiB, those of all shards of a model
32 MiB together, and tensors eight axes.
Guarantee: exact; nothing in a file is executed, no array reaches beyond its file, and the memory used is that of the
header, under half a GiB whatever it declares. A file that breaks a rule is refused, never repaired.
"""

import json
import math
import mmap
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from genscope.refusal import Refusal

HEADER_LIMIT = 16 * 2**20
HEADERS_LIMIT = 2 * HEADER_LIMIT  # of all shards: 200,000 tensors and more
_MOST_SHARDS = 10_000
_MOST_AXES = 8

_DTYPES: Mapping[str, np.dtype[Any]] = {
    **{"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype(ml_dtypes.bfloat16)},
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
    **{"I64": np.dtype("<i8"), "I32": np.dtype("<i4"), "I16": np.dtype("<i2"), "I8": np.dtype("i1")},
    **{"U64": np.dtype("<u8"), "U32": np.dtype("<u4"), "U16": np.dtype("<u2"), "U8": np.dtype("u1")},
    **{"BOOL": np.dtype("?"), "C64": np.dtype("<c8")},
}
_CONVERT = (
    "genscope runs no pickle. Where the file comes from, write it anew with "
    "safetensors.torch.save_model(model, 'model.safetensors')."
)
_FOREIGN: Mapping[bytes, str] = {
    b"PK\x03\x04": f"a zip archive, as torch.save writes it. {_CONVERT}",
    **{b"\x80" + bytes([protocol]): f"a pickle. {_CONVERT}" for protocol in range(2, 6)},
    b"GGUF": "a GGUF file. Take the safetensors file that it was made from.",
    b"\x89HDF": "an HDF5 file. Write its tensors with safetensors.numpy.save_file.",
    b"version https://git-lfs": "a pointer that stands for the file in a git repository. Fetch the file: git lfs pull.",
}


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Every tensor by name; `path` is a safetensors file, the `.index.json` that lists its shards, or their directory.

    The arrays are views of the mapped file: read-only, in the stored type, on the disk until they are used.
    """
    if path.is_dir():
        return _read_directory(path)
    return _read_shards(path) if path.suffix == ".json" else _read_file(path)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    _check_file(path)
    with path.open("rb") as file:
        text = file.read(HEADER_LIMIT + 1)
    if len(text) > HEADER_LIMIT:
        _refuse(
            path, f"more than {HEADER_LIMIT} bytes of JSON", "a description of a model is shorter. Give another file."
        )
    return _parse(text, path)


def _read_directory(path: Path) -> dict[str, np.ndarray]:
    """The whole model.safetensors if there is one, else what an index lists, else every safetensors file."""
    files = sorted(file for file in path.iterdir() if file.name.endswith((".safetensors", ".safetensors.index.json")))
    indices = [file for file in files if file.suffix == ".json"]
    usual = [file for file in files if file.name in ("model.safetensors", "model.safetensors.index.json")]
    for chosen in (usual[:1], indices):
        if len(chosen) == 1:
            return read_tensors(chosen[0])
    shards = [file for file in files if file not in indices]
    if not shards or indices:
        named = ", ".join(_short(file.name) for file in sorted(indices or path.iterdir())[:8])
        found = named if indices else f"no safetensors file{f', but {named}' if named else ''}"
        _refuse(path, found, f"a model is model.safetensors, or shards with at most one index. {_CONVERT}")
    _check_complete(path, shards)
    tensors: dict[str, np.ndarray] = {}
    _check_shards(path, shards)
    for shard in shards:
        read = _read_file(shard)
        if twice := next((name for name in read if name in tensors), None):
            _refuse(path, f"{_short(twice)} in two files", "nothing says which to use. Give one file, or an index.")
        tensors |= read
    return tensors


def _check_complete(path: Path, shards: list[Path]) -> None:
    """Shards say in their names how many they are."""
    counts: dict[tuple[str, int], set[int]] = {}
    for shard in shards:
        if said := re.fullmatch(r"(.*)-([0-9]{5})-of-([0-9]{5})\.safetensors", shard.name):
            counts.setdefault((said[1], int(said[3])), set()).add(int(said[2]))
    for (name, total), numbers in counts.items():
        if numbers != set(range(1, total + 1)):
            found = f"{len(numbers)} of the {total} shards of {_short(name)}"
            _refuse(path, found, "norms are taken of whole models. Fetch the others.")


def _check_shards(path: Path, shards: list[Path]) -> None:
    """Shards are different files, few enough, and short to describe: a link costs nothing, and reading does."""
    if len(shards) > _MOST_SHARDS:
        _refuse(path, f"{len(shards)} shards", f"a model has at most {_MOST_SHARDS}. Write it anew in larger ones.")
    seen: dict[tuple[int, int], Path] = {}
    total = 0
    for shard in shards:
        _check_file(shard)
        with shard.open("rb") as file:
            found = os.fstat(file.fileno())
            length = int.from_bytes(file.read(8), "little")
        total += length if length <= HEADER_LIMIT else 0  # what is no header is told when it is read
        other = seen.setdefault((found.st_dev, found.st_ino), shard)
        if other != shard:
            twice = f"one file as {_short(other.name)} and {_short(shard.name)}"
            _refuse(path, twice, "each shard is a file of its own. Fetch the shards again.")
    if total > HEADERS_LIMIT:
        found = f"headers of {total} bytes in {len(shards)} shards"
        _refuse(path, found, f"at most {HEADERS_LIMIT} are read. Fetch the shards again, or give them one by one.")


def _read_shards(path: Path) -> dict[str, np.ndarray]:
    shard_of = read_json(path).get("weight_map")
    if not isinstance(shard_of, dict) or not shard_of:
        _refuse(path, "no weight_map", "an index names the file of every tensor. Give model.safetensors.index.json.")
    for shard in shard_of.values():
        if not isinstance(shard, str) or Path(shard).name != shard or not shard.endswith(".safetensors"):
            _refuse(
                path,
                f"the shard {_short(shard)}",
                "shards are .safetensors files next to their index. Correct the index.",
            )
    names = sorted(set(shard_of.values()))
    _check_shards(path, [path.parent / name for name in names])
    shards = {name: _read_file(path.parent / name) for name in names}
    for name, shard in shard_of.items():
        if name not in shards[shard]:
            _refuse(path, f"{_short(name)} in {shard}", "that file does not hold it. Fetch index and shards again.")
    return {name: shards[shard][name] for name, shard in shard_of.items()}


def _read_file(path: Path) -> dict[str, np.ndarray]:
    _check_file(path)
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(32)
        length = int.from_bytes(start[:8], "little")
        if start[8:9] != b"{":
            unknown = "not a safetensors file: after eight bytes there is no JSON object. Give model.safetensors."
            kind = next((kind for magic, kind in _FOREIGN.items() if start.startswith(magic)), unknown)
            raise Refusal(f"{path} is {kind}")
        if length > min(HEADER_LIMIT, size - 8):
            most = f"at most {HEADER_LIMIT} fit, and the file has {size}. Fetch the file again."
            _refuse(path, f"a header of {length} bytes", most)
        file.seek(8)
        header = _parse(file.read(length), path)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    header.pop("__metadata__", None)
    entries = {name: _entry(path, name, entry) for name, entry in header.items()}
    _check_places(path, entries, size - 8 - length)
    return {
        name: np.ndarray(shape, dtype, buffer=mapped, offset=8 + length + begin)
        for name, (dtype, shape, begin, _) in entries.items()
    }


Entry = tuple[np.dtype[Any], tuple[int, ...], int, int]


def _entry(path: Path, name: str, entry: object) -> Entry:
    """Type, shape, and where the bytes begin and end after the header."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        _refuse(path, f"{_short(name)}: {_short(entry)}", "a tensor has dtype, shape and data_offsets. Write it anew.")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        known = ", ".join(_DTYPES)
        _refuse(path, f"{_short(name)} of type {_short(dtype)}", f"known are {known}. Write it anew in one of these.")
    if not _counts(shape, most=_MOST_AXES) or not _counts(offsets, most=2) or len(offsets) != 2:
        found = f"{_short(name)} of shape {_short(shape)} at {_short(offsets)}"
        _refuse(path, found, f"sizes are whole numbers, of {_MOST_AXES} axes at most. Write it anew.")
    if math.prod(max(size, 1) for size in shape) * _DTYPES[dtype].itemsize >= 2**63:  # even where an axis is empty
        _refuse(path, f"{_short(name)} of shape {_short(shape)}", "no array is so large. Write it anew.")
    if offsets[1] - offsets[0] != math.prod(shape) * _DTYPES[dtype].itemsize:
        found = f"{_short(name)} of shape {_short(shape)} and type {dtype} in {offsets[1] - offsets[0]} bytes"
        _refuse(path, found, f"it takes {math.prod(shape) * _DTYPES[dtype].itemsize}. Write it anew.")
    return _DTYPES[dtype], tuple(shape), offsets[0], offsets[1]


def _counts(numbers: object, *, most: int) -> bool:
    return (
        isinstance(numbers, list)
        and len(numbers) <= most
        and all(type(number) is int and 0 <= number < 2**63 for number in numbers)
    )


def _check_places(path: Path, entries: Mapping[str, Entry], size: int) -> None:
    """The tensors lie one after the other and fill the file."""
    place = 0
    for name, (_, _, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin != place:
            how = "overlaps another tensor" if begin < place else "leaves a hole before it"
            _refuse(path, f"{_short(name)} at byte {begin}", f"it {how}. Write the file anew.")
        place = end
    if place != size:
        _refuse(path, f"{size} bytes of tensors", f"its header promises {place}. Fetch the file again.")


def _parse(text: bytes, path: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        reason = f"({_short(str(error))}): it is one JSON object in UTF-8, each name once. Fetch the file again."
        raise Refusal(f"{path} has a description that cannot be read {reason}") from None
    if not isinstance(parsed, dict):
        _refuse(path, _short(parsed), "a description is one JSON object. Fetch the file again.")
    return parsed


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise Refusal("a name appears twice")
    return made


def _no_number(word: str) -> NoReturn:
    raise Refusal(f"{word} is not a number")


def _check_file(path: Path) -> None:
    if not path.is_file():
        what = "a directory" if path.is_dir() else "not a file"
        raise Refusal(
            f"got {path}, which is {what}: weights come from model.safetensors, model.safetensors.index.json or their "
            "directory, and sizes from config.json. Give the path of such a file."
        )


def _refuse(path: Path, found: str, advice: str) -> NoReturn:
    raise Refusal(f"{path} has {found}: {advice}")


def _short(value: object) -> str:
    """A value from a file, short and without control characters."""
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
