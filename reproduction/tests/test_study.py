import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from piefs.errors import InputError, StorageError
from reproduction.study import Study

HISTORY = [
    {"step": 250, "map": 1, "loss": 0.1 + 0.2},
    {"step": 500, "map": 1, "loss": 5e-324, "validation_loss": 1 / 3},
]


@pytest.fixture
def study(tmp_path):
    made = Study(tmp_path / "moons.v2")
    made.add("b/1", {"accuracy": 0.1, "text": "é\u2028"}, HISTORY)
    made.add("a/10", {})
    made.add("a/2", {"loss": float("nan")}, HISTORY[:1])
    return made


def test_what_was_added_is_read_by_whoever_opens_the_study(study, tmp_path):
    opened = Study(tmp_path / "moons.v2")
    assert list(opened) == ["a/10", "a/2", "b/1"]
    assert opened["b/1"] == {"accuracy": 0.1, "text": "é\u2028"}
    assert opened["a/2"] == {"loss": None}
    assert "a/1" not in opened
    with pytest.raises(KeyError):
        opened["a/1"]


def test_a_history_comes_back_to_the_last_bit_without_what_its_rows_lack(study):
    assert study.history("b/1") == HISTORY
    assert study.history("a/2") == HISTORY[:1]
    assert study.history("a/10") == []


def test_a_record_takes_the_place_of_the_one_before(study):
    study.add("b/1", {"accuracy": 0.2}, HISTORY[1:])
    assert study["b/1"] == {"accuracy": 0.2}
    assert study.history("b/1") == HISTORY[1:]
    assert len(study) == 3


def test_a_study_sees_what_others_add(study, tmp_path):
    Study(tmp_path / "moons.v2").add("c/0", {"accuracy": 1.0}, HISTORY)
    assert study["c/0"] == {"accuracy": 1.0}
    assert study.history("c/0") == HISTORY


def test_one_line_is_one_record_sorted_by_name(study):
    lines = [json.loads(line) for line in study.file.read_text().strip().split("\n")]
    assert [line["name"] for line in lines] == ["a/10", "a/2", "b/1"]


def _add_ten(path: Path, first: int) -> None:
    for i in range(first, first + 10):
        Study(path).add(f"run/{i}", {"i": i}, HISTORY)


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(_add_ten, [tmp_path / "s"] * 2, (0, 10)))
    study = Study(tmp_path / "s")
    assert sorted(study[name]["i"] for name in study) == list(range(20))
    assert all(study.history(name) == HISTORY for name in study)


@pytest.mark.parametrize("damage", ["{", "[1]", '{"name": 1, "record": {}}', '{"name": "a/1"}'])
def test_a_damaged_line_is_named(study, damage):
    with study.file.open("a") as file:
        file.write(f"{damage}\n")
    with pytest.raises(InputError, match=r"moons\.v2\.jsonl is damaged .*; remove line 4"):
        study["b/1"]


def test_a_damaged_table_of_histories_is_named(study):
    study.table.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"moons\.v2\.parquet is damaged"):
        study.history("b/1")


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written"):
        Study(tmp_path / "file" / "s").add("a/0", {})
