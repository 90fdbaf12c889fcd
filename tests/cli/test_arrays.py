"""Arrays of files, mapped: the values, and what is never read."""

import numpy as np
import pytest
import safetensors.numpy

from genscope.cli._arrays import read_arrays
from genscope.refusal import Refusal

ARRAYS = {
    "x": np.random.default_rng(0).normal(size=(7, 3, 2)),
    "f": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "ids": np.arange(6, dtype=np.int64).reshape(2, 3),
    "bits": np.array([True, False]),
    "none": np.zeros((0, 3)),
}


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_npz_files(tmp_path, write):
    write(tmp_path / "data.npz", **ARRAYS)
    found = read_arrays(tmp_path / "data.npz")
    assert {*found} == {*ARRAYS}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert isinstance(found["x"], np.memmap) == (write is np.savez)  # what is not compressed stays on the disk


def test_safetensors_files(tmp_path):
    safetensors.numpy.save_file(
        {name: np.ascontiguousarray(ARRAYS[name]) for name in ("x", "ids")}, tmp_path / "d.safetensors"
    )
    found = read_arrays(tmp_path / "d.safetensors")
    np.testing.assert_array_equal(found["x"], ARRAYS["x"])
    assert not found["ids"].flags.owndata  # a view of the mapped file


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "odd.npz", x=np.array([None, {}]), y=np.zeros(2))
    with pytest.raises(Refusal, match="pickled objects"):
        read_arrays(tmp_path / "odd.npz")
    with pytest.raises(Refusal, match="are not read"):
        read_arrays(tmp_path / "odd.pkl")
