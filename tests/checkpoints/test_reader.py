import json
import os
import pickle
import struct
import tracemalloc
import zipfile

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genscope.checkpoints import reader
from genscope.checkpoints.reader import HEADER_LIMIT, read_json, read_tensors
from tests.checkpoints.files import BFLOAT16, header_of, pack, save

TENSORS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([1.5, -2.0], np.float16),
    "c": np.array([[3.0]], BFLOAT16),
    "d": np.array(7, np.int64),
    "e": np.zeros((0, 4), np.float64),
    "f": np.array([True, False]),
    "g": np.array([0.5], ml_dtypes.float8_e4m3fn),
    "h": np.array([1e300], np.float64),  # at an odd address
}


@pytest.fixture
def refusal(tmp_path):
    """The message that refuses a file of these bytes."""

    def refusal(content):
        path = tmp_path / "model.safetensors"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"model\.safetensors") as caught:
            read_tensors(path)
        assert len(str(caught.value)) < 1000
        return str(caught.value)

    return refusal


def test_tensors_come_back_as_they_were_written(tmp_path):
    read = read_tensors(save(tmp_path / "x.safetensors", TENSORS, metadata={"format": "pt"}))
    assert list(read) == list(TENSORS)
    for name, tensor in TENSORS.items():
        assert read[name].dtype == tensor.dtype
        assert read[name].shape == tensor.shape
        assert read[name].tobytes() == tensor.tobytes()
    with pytest.raises(ValueError, match="read-only"):
        read["a"][0, 0] = 1


def test_a_header_may_be_padded_and_a_file_may_be_empty_of_tensors(tmp_path):
    (tmp_path / "x").write_bytes(pack(b"{}   "))
    assert read_tensors(tmp_path / "x") == {}


def test_a_header_whose_length_looks_like_a_pickle_is_read(tmp_path):
    header = json.dumps(header_of(TENSORS)).encode().ljust(0x0480)
    data = b"".join(tensor.tobytes() for tensor in TENSORS.values())
    (tmp_path / "x").write_bytes(pack(header, data))
    assert (tmp_path / "x").read_bytes()[:2] == pickle.PROTO + b"\x04"
    assert len(read_tensors(tmp_path / "x")) == len(TENSORS)


def entry(**changes):
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"", "Give model.safetensors"),
        (b"\x02", "Give model.safetensors"),
        (struct.pack("<Q", 5), "Give model.safetensors"),
        (struct.pack("<Q", 500) + b'{"a"', "a header of 500 bytes: at most"),
        (struct.pack("<Q", 2**64 - 1) + b"{}", "the file has 10. Fetch the file again"),
        (struct.pack("<Q", HEADER_LIMIT + 1) + b"{", "Fetch the file again"),
        (pack(b'{"a": '), "Fetch the file again"),
        (pack(b'{"a": \xff}'), "in UTF-8"),
        (pack(b'{"a": NaN}'), "NaN is not a number"),
        (pack(b'{"a": 1' + b"0" * 5000 + b"}"), "Fetch the file again"),
        (pack(b'{"a":' * 100_000), "Fetch the file again"),
        (pack(b'{"a": {}, "a": {}}'), "a name appears twice"),
        (pack(b'{"a": {"dtype": "F32", "dtype": "F32"}}'), "a name appears twice"),
        (pack({"a": [1]}), "dtype, shape and data_offsets"),
        (pack({"a": entry(more=1)}, bytes(8)), "dtype, shape and data_offsets"),
        (pack({"a": entry(dtype="F4")}, bytes(8)), "known are F64, F32"),
        (pack({"a": entry(dtype=["F32"])}, bytes(8)), "known are F64, F32"),
        (pack({"a": entry(shape=[2.0])}, bytes(8)), "whole numbers"),
        (pack({"a": entry(shape=[True, 2])}, bytes(8)), "whole numbers"),
        (pack({"a": entry(shape=[-2])}, bytes(8)), "whole numbers"),
        (pack({"a": entry(shape=[10**30])}, bytes(8)), "whole numbers"),
        (pack({"a": entry(shape=[1] * 9)}, bytes(8)), "8 axes at most"),
        (pack({"a": entry(shape="2")}, bytes(8)), "whole numbers"),
        (pack({"a": entry(data_offsets=[0])}, bytes(8)), "whole numbers"),
        (pack({"a": entry(data_offsets=[8, 0])}, bytes(8)), "it takes 8"),
        (pack({"a": entry(shape=[2**40, 2**40])}, bytes(8)), "Write it anew"),
        (pack({"a": entry(shape=[0, 2**62], data_offsets=[0, 0])}), "no array is so large. Write it anew"),
        (pack({"a": entry(dtype="U8", shape=[2**32, 2**32, 0], data_offsets=[0, 0])}), "no array is so large"),
        (pack({"a": entry(shape=[2**40], data_offsets=[0, 2**42])}, bytes(8)), "promises 4398046511104. Fetch"),
        (pack({"a": entry(data_offsets=[4, 12])}, bytes(12)), "leaves a hole"),
        (pack({"a": entry(), "b": entry(data_offsets=[4, 12])}, bytes(12)), "overlaps"),
        (pack({"a": entry(), "b": entry()}, bytes(8)), "overlaps"),
        (pack({"a": entry()}, bytes(7)), "promises 8. Fetch"),
        (pack({"a": entry()}, bytes(9)), "promises 8. Fetch"),
        (b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00", "runs no pickle"),
        (pickle.dumps({"a": 1}, protocol=2), "safetensors.torch.save_model"),
        (b"GGUF\x03\x00\x00\x00\x00\x00\x00\x00", "made from"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1", "git lfs pull"),
        (b"\x89HDF\r\n\x1a\n\x00\x00", "safetensors.numpy.save_file"),
    ],
)
def test_files_that_break_a_rule_are_refused(refusal, content, advice):
    assert advice in refusal(content)


def test_archives_of_pickles_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("data.pkl", pickle.dumps([1]))
    with pytest.raises(ValueError, match=r"torch\.save .* runs no pickle"):
        read_tensors(tmp_path / "model.pt")


def test_what_is_no_file_is_refused(tmp_path):
    for read, path, what in ((read_json, tmp_path, "a directory"), (read_tensors, tmp_path / "absent", "not a file")):
        with pytest.raises(ValueError, match=f"which is {what}: .* Give the path of such a file"):
            read(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a file"):
        read_tensors(tmp_path / "pipe")


def shards(directory, weight_map):
    path = directory / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return path


def test_shards_are_read_through_their_index(tmp_path):
    save(tmp_path / "1.safetensors", {"a": TENSORS["a"], "unlisted": TENSORS["b"]})
    save(tmp_path / "2.safetensors", {"c": TENSORS["c"]})
    read = read_tensors(shards(tmp_path, {"c": "2.safetensors", "a": "1.safetensors"}))
    assert list(read) == ["c", "a"]
    assert read["a"].tobytes() == TENSORS["a"].tobytes()


def test_a_directory_is_read_by_the_whole_file_the_index_or_all_files(tmp_path):
    save(tmp_path / "one-00001-of-00002.safetensors", {"a": TENSORS["a"], "unlisted": TENSORS["b"]})
    save(tmp_path / "one-00002-of-00002.safetensors", {"c": TENSORS["c"]})
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
    assert sorted(read_tensors(tmp_path)) == ["a", "c", "unlisted"]
    listed = {"a": "one-00001-of-00002.safetensors", "c": "one-00002-of-00002.safetensors"}
    index = shards(tmp_path, listed).rename(tmp_path / "one.safetensors.index.json")
    assert sorted(read_tensors(tmp_path)) == ["a", "c"]
    save(tmp_path / "model.safetensors", {"d": TENSORS["d"]})
    assert list(read_tensors(tmp_path)) == ["d"]
    (tmp_path / "model.safetensors").unlink()
    index.with_name("two.safetensors.index.json").write_bytes(index.read_bytes())
    with pytest.raises(ValueError, match=r"'one.safetensors.index.json', 'two.safetensors.index.json': .* one index"):
        read_tensors(tmp_path)


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        ({}, "has no safetensors file: a model is model.safetensors"),
        ({"pytorch_model.bin": "a"}, "has no safetensors file, but 'pytorch_model.bin': .*runs no pickle"),
        (
            {"m-00001-of-00003.safetensors": "a", "m-00003-of-00003.safetensors": "b"},
            "2 of the 3 shards of 'm': .*Fetch",
        ),
        ({"m-00001-of-00001.safetensors": "a", "m-00002-of-00002.safetensors": "b"}, "1 of the 2 shards of 'm'"),
        ({"1.safetensors": "a", "2.safetensors": "a"}, "'a' in two files: .* Give one file"),
    ],
)
def test_a_directory_that_holds_no_whole_model_is_refused(tmp_path, files, advice):
    for name, tensor in files.items():
        save(tmp_path / name, {tensor: TENSORS[tensor]})
    with pytest.raises(ValueError, match=advice):
        read_tensors(tmp_path)


@pytest.mark.parametrize(
    ("weight_map", "advice"),
    [
        ({}, "model.safetensors.index.json"),
        (["1.safetensors"], "model.safetensors.index.json"),
        ({"a": "../1.safetensors"}, "Correct the index"),
        ({"a": "/etc/passwd"}, "Correct the index"),
        ({"a": "config.json"}, "Correct the index"),
        ({"a": 1}, "Correct the index"),
        ({"z": "1.safetensors"}, "Fetch index and shards again"),
        ({"a": "3.safetensors"}, "Give the path of such a file"),
    ],
)
def test_an_index_that_makes_no_sense_is_refused(tmp_path, weight_map, advice):
    save(tmp_path / "1.safetensors", {"a": TENSORS["a"]})
    with pytest.raises(ValueError, match=advice):
        read_tensors(shards(tmp_path, weight_map))


@pytest.mark.parametrize("indexed", [False, True])
def test_links_to_one_large_header_are_refused_before_it_is_read(tmp_path, monkeypatch, indexed):
    monkeypatch.setattr(reader, "_parse", None)  # nothing is parsed but the index
    (tmp_path / "blob").write_bytes(pack(b"{}".ljust(1000)))
    for number in "123":
        (tmp_path / f"{number}.safetensors").symlink_to("blob")
    path = tmp_path
    if indexed:
        path = shards(tmp_path, {})
        monkeypatch.setattr(reader, "read_json", lambda _: {"weight_map": {n: f"{n}.safetensors" for n in "123"}})
    with pytest.raises(ValueError, match=r"one file as '1.safetensors' and '2.safetensors': .*Fetch the shards again"):
        read_tensors(path)


def test_headers_of_all_shards_are_bounded_together_and_links_to_different_files_are_fine(tmp_path, monkeypatch):
    (tmp_path / "blobs").mkdir()
    for number, name in enumerate("abc"):
        save(tmp_path / "blobs" / name, {name: TENSORS[name]})
        (tmp_path / f"{number}.safetensors").symlink_to(f"blobs/{name}")  # as the cache of Hugging Face has them
    total = sum(struct.unpack("<Q", (tmp_path / "blobs" / name).read_bytes()[:8])[0] for name in "abc")
    monkeypatch.setattr(reader, "HEADERS_LIMIT", total)
    assert sorted(read_tensors(tmp_path)) == ["a", "b", "c"]
    monkeypatch.setattr(reader, "HEADERS_LIMIT", total - 1)
    with pytest.raises(ValueError, match=rf"headers of {total} bytes in 3 shards: .* or give them one by one"):
        read_tensors(tmp_path)
    (tmp_path / "blobs" / "a").write_bytes(b"version https://git-lfs.github.com/spec/v1")  # no header: its own advice
    with pytest.raises(ValueError, match="git lfs pull"):
        read_tensors(tmp_path)
    monkeypatch.setattr(reader, "_MOST_SHARDS", 2)
    with pytest.raises(ValueError, match=r"3 shards: a model has at most 2\. Write it anew in larger ones"):
        read_tensors(tmp_path)


def test_descriptions_are_objects_of_bounded_size(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("[1]")
    with pytest.raises(ValueError, match="one JSON object"):
        read_json(path)
    with path.open("wb") as file:
        file.truncate(HEADER_LIMIT + 1)
    with pytest.raises(ValueError, match="bytes of JSON"):
        read_json(path)


WHOLE = pack(header_of(TENSORS), b"".join(tensor.tobytes() for tensor in TENSORS.values()))
tokens = st.sampled_from(
    [
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b'"',
        b"0",
        b"9" * 30,
        b"-1",
        b"1e9",
        b"null",
        b"true",
        b"F64",
        b'"a"',
        b"\xff",
    ]
)
places = st.integers(0, len(WHOLE))
edits = st.one_of(
    st.tuples(places, st.integers(0, 12), st.one_of(tokens, st.binary(max_size=6))),  # replace
    st.tuples(places, st.just(len(WHOLE)), st.just(b"")),  # cut off
    st.tuples(st.just(0), st.just(8), st.integers(0, 2**64 - 1).map(lambda n: struct.pack("<Q", n))),
)


@settings(max_examples=800)
@given(st.lists(edits, min_size=1, max_size=4))
def test_mutated_files_are_read_or_refused_in_little_memory(tmp_path_factory, changes):
    content = WHOLE
    for place, length, new in changes:
        content = content[:place] + new + content[place + length :]
    path = tmp_path_factory.getbasetemp() / "mutated.safetensors"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        for tensor in read_tensors(path).values():
            tensor.tobytes()  # lies inside the file
    except ValueError as error:
        assert len(str(error)) < 1000  # noqa: PT017
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 * 2**20
