"""What a run keeps for its page: baselines, dependence, facts, and the rows it shows."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from piefs.data import Dataset, Split
from piefs.data.encoder import ColumnEncoding, TableEncoder
from piefs.data.table import Table
from piefs.report import evidence, rows
from piefs.report.rows import pack, unpack
from piefs.report.scores import probe_scores_by_maps


def classes(n=200, n_features=3):
    """Two classes that the first feature tells apart."""
    rng = np.random.default_rng(0)

    def split(n):
        x = rng.normal(size=(n, n_features))
        return Split(x, (x[:, 0] > 0).astype(np.int32))

    names = tuple("abcdef"[:n_features])
    return Dataset("halves", split(n), split(60), split(60), ("low", "high"), names, "")


class Linear:
    """Coordinates (a, 2b), and probabilities by the sign of a."""

    def transform(self, x):
        return np.stack([x[:, 0], 2 * x[:, 1]], axis=1)

    def predict_proba(self, x):
        p = 1 / (1 + np.exp(-4 * x[:, 0]))
        return np.stack([1 - p, p], axis=1)


def test_packed_arrays_come_back_and_foreign_types_are_refused():
    for kind in ("uint8", "int32", "float32"):
        values = np.arange(6, dtype=kind).reshape(2, 3)
        back = unpack(json.loads(json.dumps(pack(values, kind))))
        np.testing.assert_array_equal(back, values)
    with pytest.raises(ValueError, match="unknown type"):
        unpack(pack(np.zeros(2)) | {"type": "object"})


def test_baselines_are_scored_on_the_same_splits():
    found = {one["name"]: one for one in evidence.baselines(classes(), "classification", 2)}
    assert set(found) == {"majority class", "logistic regression", "random forest"}
    assert found["logistic regression"]["scores"]["accuracy"]["test"] > 0.9
    assert found["majority class"]["scores"]["accuracy"]["test"] < 0.7
    assert all(one["note"] == "" for one in found.values())


def test_baselines_see_a_sample_of_large_data_and_say_so(monkeypatch):
    monkeypatch.setattr(evidence, "BASELINE_CELLS", 300)
    found = evidence.baselines(classes(), "unsupervised", 2)
    assert [one["note"] for one in found] == ["fitted on 100 rows"] * 3
    assert found[-1]["name"] == "logistic regression on 2 principal components"


def test_a_baseline_that_refuses_the_rows_is_noted_and_not_fatal():
    data = classes()
    data.train.x[0, 0] = np.nan
    found = {one["name"]: one for one in evidence.baselines(data, "classification", 2)}
    assert found["logistic regression"]["scores"] == {}
    assert found["logistic regression"]["note"].startswith("not fitted: ")


def test_scores_by_maps_kept_are_those_of_a_probe_on_the_first_maps():
    data = classes()
    phi = {name: part.x[:, [1, 0, 2]] for name, part in data.splits.items()}
    found = probe_scores_by_maps(phi, data)
    assert found["kept"] == [1, 2, 3]
    first, second, _ = found["scores"]["test"]
    assert first < 0.7 < 0.9 < second


def test_dependence_moves_one_input_and_leaves_the_others():
    data = classes()
    shares = np.array([[0.9, 0.0], [0.1, 0.8], [0.0, 0.2]])
    found = {one["name"]: one for one in evidence.dependence(Linear(), data, shares)}
    curves, values = np.array(found["a"]["curves"]), np.array(found["a"]["values"])
    np.testing.assert_allclose(curves[:, 0], values, atol=1e-9)
    np.testing.assert_allclose(curves[:, 1], 2 * data.train.x[:, 1].mean(), atol=1e-6)


def test_rows_that_are_in_training_too_are_counted():
    data = classes()
    data.test.x[:5] = data.train.x[:5]
    data.train.x[10] = data.train.x[11]
    encoder = TableEncoder((ColumnEncoding("k", "dropped", reason="constant"),))
    facts = evidence.data_facts(data, encoder)
    assert (facts["leaked"], facts["repeated"]) == (5, 1)
    assert facts["constant_columns"] == ["k"]
    assert facts["class_counts"]["train"] == np.bincount(data.train.y).tolist()


def test_losses_are_those_of_the_true_class_or_absolute_errors():
    part = classes().test
    judged = rows.judge(Linear(), part, 2)
    p = Linear().predict_proba(part.x)
    np.testing.assert_allclose(judged.loss, -np.log(p[np.arange(len(part)), part.y]))
    numbers = SimpleNamespace(predict=lambda x: x[:, 0])
    judged = rows.judge(numbers, Split(part.x, part.x[:, 0] + 2.0), 0)
    np.testing.assert_allclose(judged.loss, 2.0)


def shown(data, relevance=(1.0, 0.5, 0.1)):
    model = Linear()
    phi = {name: model.transform(part.x) for name, part in data.splits.items()}
    judged = {name: rows.judge(model, part, 2) for name, part in data.splits.items()}
    return rows.shown_rows(data, phi, judged, np.array(relevance)), judged


def test_all_rows_are_shown_if_they_fit_and_the_hardest_are_test_rows():
    data = classes()
    document, judged = shown(data)
    assert document["n"] == 320
    np.testing.assert_array_equal(np.bincount(unpack(document["split"])), [200, 60, 60])
    assert [column["name"] for column in document["columns"]] == ["a", "b", "c"]
    places = unpack(document["place"])[document["hardest"]]
    np.testing.assert_array_equal(places, np.argsort(-judged["test"].loss)[: rows.N_HARDEST])


def test_of_many_rows_a_sample_is_shown_with_the_hardest(monkeypatch):
    monkeypatch.setattr(rows, "MAX_ROWS", 50)
    document, judged = shown(classes())
    assert 50 <= document["n"] <= 50 + rows.N_HARDEST
    places = unpack(document["place"])[document["hardest"]]
    np.testing.assert_array_equal(places, np.argsort(-judged["test"].loss)[: rows.N_HARDEST])


def test_of_many_columns_those_that_matter_are_shown(monkeypatch):
    monkeypatch.setattr(rows, "MAX_COLUMNS", 3)
    document, _ = shown(classes(n_features=5), (0.0, 1.0, 0.0, 0.5, 0.2))
    assert [column["name"] for column in document["columns"]] == ["b", "d", "e"]


def test_rows_of_a_file_appear_as_its_user_knows_them():
    data = classes()
    parts = {}
    for name, part in data.splits.items():
        columns = {
            "id": np.array([f"{name}{i}" for i in range(len(part))], object),
            "a": part.x[:, 0],
            "y": part.y,
        }
        parts[name] = Split(part.x, part.y, Table(columns, unit="line"))
    data = Dataset("own", *parts.values(), ("low", "high"), ("a", "b", "c"), "")
    document, _ = shown(data)
    columns = {column["name"]: column["cells"] for column in document["columns"]}
    assert set(columns) == {"id", "a"}
    assert columns["id"][200] == "validation0"
    assert document["unit"] == "line"
