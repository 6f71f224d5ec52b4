"""The built-in data sets: splits, scalings, and files that are not what they say."""

import os
from pathlib import Path

import numpy as np
import pytest

from piefs.data import load
from piefs.data.fetch import FILES
from piefs.errors import DamagedDataError, DataNotFoundError, InputError

NEEDS_FILES = {"htru2", "mnist", "cifar10-embedding"}
SIZES = {
    "two-moons": (7000, 1500, 1500),
    "circles": (7000, 1500, 1500),
    "digits": (1257, 270, 270),
    "htru2": (12528, 2685, 2685),
    "mnist": (60000, 5000, 5000),
    "cifar10-embedding": (45000, 5000, 10000),
}


def load_or_skip(name, **keywords):
    if name in NEEDS_FILES and not os.environ.get("PIEFS_DATA"):
        pytest.skip("this data set is a file, and $PIEFS_DATA does not say where files are")
    return load(name, **keywords)


LARGE = [pytest.param(name, marks=pytest.mark.slow) for name in ("mnist", "cifar10-embedding")]


@pytest.mark.parametrize("name", ["two-moons", "circles", "digits", "htru2", *LARGE])
def test_splits_have_the_papers_sizes_and_keep_class_shares(name):
    data = load_or_skip(name)
    assert tuple(len(part) for part in data.splits.values()) == SIZES[name]
    shares = [
        np.bincount(part.y, minlength=len(data.class_names)) / len(part)
        for part in data.splits.values()
    ]
    assert max(np.abs(share - shares[0]).max() for share in shares) < 0.012
    for part in data.splits.values():
        assert part.x.dtype == np.float32
        assert part.x.shape[1] == len(data.feature_names)


@pytest.mark.parametrize("name", ["two-moons", "digits", LARGE[0]])
def test_split_seed_decides_the_rows_and_nothing_else_does(name):
    first, again, other = (load_or_skip(name, split_seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.test.x, again.test.x)
    assert not np.array_equal(first.test.x, other.test.x)
    rows = np.concatenate([first.validation.x, first.test.x])
    other_rows = np.concatenate([other.validation.x, other.test.x])
    if name == "mnist":  # only the 10k test images are dealt anew
        np.testing.assert_array_equal(np.sort(rows.sum(1)), np.sort(other_rows.sum(1)))


def test_splits_do_not_share_rows():
    data = load("two-moons")
    seen = [set(map(tuple, part.x.tolist())) for part in data.splits.values()]
    assert sum(map(len, seen)) == len(set.union(*seen))


def test_circles_are_separable_at_the_chosen_radii():
    data = load("circles")
    radius = np.linalg.norm(data.test.x, axis=1)
    assert np.mean((radius < 0.75) == (data.test.y == 1)) > 0.999


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="two-moons"):
        load("three-moons")


def test_missing_file_says_where_to_put_it(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"mnist\.npz.*--data-dir"):
        load("mnist", data_dir=tmp_path)


def test_data_dir_comes_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PIEFS_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(DataNotFoundError) as error:
        load("mnist", data_dir=tmp_path / "here")
    assert "here" in str(error.value)
    assert "elsewhere" not in str(error.value)


def _fake_mnist(folder: Path, **replaced: np.ndarray) -> None:
    arrays = {
        "x_train": np.zeros((60000, 28, 28), np.uint8),
        "y_train": np.zeros(60000, np.uint8),
        "x_test": np.zeros((10000, 28, 28), np.uint8),
        "y_test": np.zeros(10000, np.uint8),
    }
    path = folder / FILES["mnist"].path
    path.parent.mkdir(parents=True)
    np.savez_compressed(path, **(arrays | replaced))


def test_wrong_content_of_the_right_shape_is_refused(tmp_path):
    _fake_mnist(tmp_path)
    with pytest.raises(DamagedDataError, match="x_train"):
        load("mnist", data_dir=tmp_path)


def test_a_pickled_array_is_refused_unopened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "executed"),))

    _fake_mnist(tmp_path, x_train=np.array([Trap()], dtype=object))
    with pytest.raises(DamagedDataError):
        load("mnist", data_dir=tmp_path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"1,2,3\n4,x,6\n"])
@pytest.mark.parametrize("name", sorted(NEEDS_FILES))
def test_garbage_files_are_refused_with_their_path(tmp_path, name, content):
    path = tmp_path / FILES[name].path
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(DamagedDataError, match=path.name):
        load(name, data_dir=tmp_path)
