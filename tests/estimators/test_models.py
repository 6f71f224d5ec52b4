"""Model folders: what is saved comes back to the bit, and nothing else is let in."""

import io
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest
import safetensors.numpy

import piefs
from piefs.core.metric import Off
from piefs.core.trees import named_arrays
from piefs.data.files import read_folder
from piefs.errors import InputError, ModelFileError
from piefs.estimators.persistence import FORMAT
from toys import flat

SMALL = {
    "n_components": 3,
    "steps_per_component": 20,
    "hidden": (8, 8),
    "metric_hidden": (8,),
    "random_state": 0,
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.array(["low", "high", "mid"])[rng.integers(0, 3, 120)]
    return rng.normal(size=(120, 4)), y


@pytest.fixture(scope="module")
def saved(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    model = piefs.PIEFSClassifier(**flat(metric="trotter", **SMALL)).fit(*rows)
    model.save(folder)
    return model, folder


@pytest.fixture
def copied(saved, tmp_path):
    shutil.copytree(saved[1], tmp_path / "model")
    return tmp_path / "model"


def edit(folder, **changes):
    path = folder / "model.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | changes))


@pytest.mark.parametrize(
    ("metric", "dtype"),
    [("off", "float32"), ("diag", "float64"), ("trotter", "float32"), ("chain", "float64")],
)
def test_a_loaded_model_predicts_the_same_bits(rows, tmp_path, metric, dtype):
    X, y = rows
    model = piefs.PIEFSClassifier(**flat(metric=metric, dtype=dtype, **SMALL)).fit(X, y)
    model.save(tmp_path / "model")
    loaded = piefs.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.transform(X).dtype == dtype
    assert np.array_equal(loaded.energies_, model.energies_)
    leaves, loaded_leaves = named_arrays(model.model_), named_arrays(loaded.model_)
    assert leaves.keys() == loaded_leaves.keys()
    assert all(np.array_equal(leaves[name], loaded_leaves[name]) for name in leaves)


def test_an_unsupervised_transformer_survives_too(rows, tmp_path):
    model = piefs.PIEFSTransformer(**flat(**SMALL)).fit(rows[0])
    model.save(tmp_path / "model")
    loaded = piefs.load(tmp_path / "model")
    assert isinstance(loaded, piefs.PIEFSTransformer)
    assert np.array_equal(loaded.transform(rows[0]), model.transform(rows[0]))


@pytest.mark.parametrize("labels", [[0, 1], [True, False], [1.0, 2.0], ["a", "b"], [-1, 1]])
def test_class_labels_keep_their_type(rows, tmp_path, labels):
    X = rows[0]
    y = np.array(labels)[np.arange(len(X)) % 2]
    model = piefs.PIEFSClassifier(**flat(**SMALL)).fit(X, y)
    model.save(tmp_path / "model")
    loaded = piefs.load(tmp_path / "model")
    assert loaded.classes_.dtype.kind == model.classes_.dtype.kind
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_a_loaded_model_can_be_fitted_again_as_it_was(saved, rows):
    model, folder = saved
    again = piefs.load(folder).fit(*rows)
    assert np.array_equal(again.transform(rows[0]), model.transform(rows[0]))


def test_feature_names_come_back(tmp_path, rows):
    import pandas as pd

    frame = pd.DataFrame(rows[0], columns=list("abcd"))
    piefs.PIEFSClassifier(**flat(**SMALL)).fit(frame, rows[1]).save(tmp_path / "model")
    loaded = piefs.load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "z"}))


def test_a_flipped_byte_in_the_weights_is_noticed(copied):
    path = copied / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match="damaged"):
        piefs.load(copied)


@pytest.mark.parametrize("kept", [0, 4, 100, 1000])
def test_truncated_weights_are_noticed(copied, kept):
    path = copied / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelFileError, match="damaged"):
        piefs.load(copied)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"format_version": 1}', "\x00\xff"])
def test_a_broken_document_is_a_typed_error(copied, text):
    (copied / "model.json").write_text(text)
    with pytest.raises(ModelFileError):
        piefs.load(copied)


def test_another_format_version_names_both(copied):
    edit(copied, format_version=FORMAT + 1)
    with pytest.raises(ModelFileError, match=rf"{FORMAT + 1}.*reads {FORMAT}"):
        piefs.load(copied)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_features": 5},
        {"n_outputs": 4},
        {"n_features": 10**12},
        {"n_features": "four"},
        {"estimator": "os.system"},
        {"estimator": "LogisticRegression"},
        {"settings": {}},
        {"settings": None},
        {"classes": None},
        {"estimator": "PIEFSRegressor"},
        {"classes": {"kind": "U", "labels": ["a"]}},
        {"classes": {"kind": "V", "labels": ["a", "b", "c"]}},
        {"seed": None},
        {"energies": "many"},
    ],
)
def test_a_document_that_does_not_fit_its_weights_is_refused(copied, changes):
    edit(copied, **changes)
    with pytest.raises(ModelFileError):
        piefs.load(copied)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("scaling", "clip"), "three"),
        (("scaling", "clip"), -1.0),
        (("scaling", "kind"), "Readout"),
        (("maps",), None),
        (("readout",), None),
        (("scaling",), None),
    ],
)
def test_a_structure_that_is_no_model_is_refused(copied, place, value):
    structure = json.loads((copied / "model.json").read_text())["structure"]
    inner = structure
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    edit(copied, structure=structure)
    with pytest.raises(ModelFileError):
        piefs.load(copied).transform(np.zeros((1, 4)))


def test_settings_of_another_number_of_maps_are_refused(copied):
    settings = json.loads((copied / "model.json").read_text())["settings"]
    edit(copied, settings=settings | {"n_components": 4})
    with pytest.raises(ModelFileError, match="do not fit"):
        piefs.load(copied)


def test_the_file_says_the_precision_of_a_model_whatever_its_settings_say(copied, saved, rows):
    settings = json.loads((copied / "model.json").read_text())["settings"]
    edit(copied, settings=settings | {"optimizer": settings["optimizer"] | {"dtype": "float64"}})
    found, expected = piefs.load(copied).transform(rows[0]), saved[0].transform(rows[0])
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_a_missing_folder_and_a_missing_file_are_told_apart(copied, tmp_path):
    with pytest.raises(ModelFileError, match=r"no model\.json"):
        piefs.load(tmp_path / "nowhere")
    (copied / "weights.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"weights\.safetensors cannot be read"):
        piefs.load(copied)


def test_weights_that_are_a_pickle_are_not_opened(copied, tmp_path):
    import hashlib

    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "executed"),))

    content = pickle.dumps(Trap())
    (copied / "weights.safetensors").write_bytes(content)
    edit(copied, weights_sha256=hashlib.sha256(content).hexdigest())
    with pytest.raises(ModelFileError, match="safetensors"):
        piefs.load(copied)
    assert not (tmp_path / "executed").exists()


def test_saving_before_fitting_is_a_clear_error(tmp_path):
    with pytest.raises(InputError, match="not fitted"):
        piefs.PIEFSClassifier().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_metric_without_a_name_cannot_be_saved(rows, tmp_path):
    model = piefs.PIEFSClassifier(**flat(metric=lambda key, d: Off(), **SMALL)).fit(*rows)
    with pytest.raises(InputError, match="metric of your own"):
        model.save(tmp_path / "model")


def test_document_says_what_wrote_it(saved):
    arrays, document = read_folder(saved[1], (FORMAT,))
    assert document["versions"]["jax"] == jax.__version__
    assert document["settings"]["metric"]["name"] == "trotter"
    assert (
        safetensors.numpy.load((saved[1] / "weights.safetensors").read_bytes()).keys()
        == arrays.keys()
    )


# What version 0.1.0 wrote, and never written again: models of every kind of estimator, and for each
# eight rows with their coordinates and outputs.
FORMAT_2 = zipfile.ZipFile(Path(__file__).parent / "format2.zip")
with np.load(io.BytesIO(FORMAT_2.read("expected.npz"))) as file:
    EXPECTED = dict(file)


REMOVED = "transformer-joint-householder"


@pytest.mark.parametrize("name", sorted({key.split("/")[0] for key in EXPECTED} - {REMOVED}))
def test_models_of_format_2_give_the_numbers_of_then(name, tmp_path):
    FORMAT_2.extractall(tmp_path, [f"{name}/model.json", f"{name}/weights.safetensors"])
    model = piefs.load(tmp_path / name)
    expected = {key.split("/")[1]: EXPECTED[key] for key in EXPECTED if key.startswith(f"{name}/")}
    atol = 1e-12 if model.settings_.optimizer.dtype == "float64" else 1e-6
    coordinates = model.transform(expected["rows"])
    np.testing.assert_allclose(coordinates, expected["coordinates"], rtol=0, atol=atol)
    if "outputs" in expected:
        outputs = getattr(model, "predict_proba", getattr(model, "predict", None))
        np.testing.assert_allclose(outputs(expected["rows"]), expected["outputs"], atol=atol)
    model.save(tmp_path / "again")
    again = piefs.load(tmp_path / "again")
    np.testing.assert_array_equal(again.transform(expected["rows"]), coordinates)
    assert again.settings_ == model.settings_


def test_a_model_with_a_metric_that_was_removed_names_the_version_that_has_it(tmp_path):
    FORMAT_2.extractall(tmp_path, [f"{REMOVED}/model.json", f"{REMOVED}/weights.safetensors"])
    with pytest.raises(ModelFileError, match=r'no metric "householder".*piefs 0\.1\.0'):
        piefs.load(tmp_path / REMOVED)
