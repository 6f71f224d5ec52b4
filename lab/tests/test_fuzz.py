"""Strangers' files: whatever is in them, readers accept them or say in one line what is wrong."""

import io
import json
import re
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from commands import piefs

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from lab.fuzz import RESULTS  # noqa: E402
from lab.fuzz.cases import judged, outcome, spoiled  # noqa: E402
from lab.fuzz.seeds import make_seeds  # noqa: E402
from lab.fuzz.targets import TARGETS  # noqa: E402
from piefs.data import files  # noqa: E402

N_FILES = {"model": 15, "run": 15, "records": 10, "large-parquet": 25, "large-zarr": 15}
HOSTILE = "<img src=x onerror=alert(1)>"
DEEP = 100_000


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    make_seeds(folder)
    return folder


@pytest.fixture
def copied(seeds, tmp_path):
    def copy(name):
        return Path(shutil.copytree(seeds / name, tmp_path / name))

    return copy


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_spoiled_files_are_accepted_or_refused_by_a_typed_error(seeds, name):
    verdicts = []
    for index in range(1, 1 + N_FILES.get(name, 40)):
        verdict, said = outcome(name, index, 1, seeds)
        assert verdict != "crashed", f"file {index}: {said}"
        verdicts.append(verdict)
    assert "refused" in verdicts


@pytest.mark.slow
def test_a_case_is_the_same_whatever_came_before(seeds, tmp_path):
    made = []
    for order in ([7], [1, 2, 3, 4, 5, 6, 7]):
        for index in order:
            folder = tmp_path / str(len(made)) / str(index)
            spoiled("config", index, 0, seeds, folder)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0] == made[1]


def refused(name, folder):
    verdict, said = judged(name, folder)
    assert verdict == "refused", said
    return said


def edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def npy_header(shape, kind="<f8"):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize("shape", ["(1000000000000000, 3)", "(3, -1)", "(0, 1000000000)", "()"])
def test_an_array_that_claims_more_than_is_there_is_not_allocated(tmp_path, shape):
    (tmp_path / "table.npy").write_bytes(npy_header(shape) + bytes(64))
    refused("npy", tmp_path)


@pytest.mark.parametrize("code", [0x110000, 0x300000, 0x6E000000, 0xFFFFFFFF, 0xD800])
@pytest.mark.parametrize(("kind", "order"), [("<U1", "little"), (">U1", "big")])
def test_text_that_is_no_unicode_makes_no_broken_strings(tmp_path, code, kind, order):
    with zipfile.ZipFile(tmp_path / "table.npz", "w") as archive:
        archive.writestr("name.npy", npy_header("(2,)", kind) + code.to_bytes(4, order) * 2)
    assert "damaged" in refused("npz", tmp_path)


def test_an_archive_that_blows_up_a_thousandfold_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FREE_BYTES", 1_000_000)
    with zipfile.ZipFile(tmp_path / "table.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy_header("(1000000,)") + bytes(8_000_000))
    assert "would unpack to" in refused("npz", tmp_path)


def test_names_in_an_archive_are_names_of_columns_and_no_places(tmp_path):
    content = io.BytesIO()
    np.save(content, np.arange(12.0) ** 2)
    folder = tmp_path / "inside"
    folder.mkdir()
    with zipfile.ZipFile(folder / "table.npz", "w") as archive:
        archive.writestr("../../escaped.npy", content.getvalue())
    assert judged("npz", folder)[0] == "accepted"
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "table.npz"]


def test_a_parquet_file_that_claims_more_rows_than_its_bytes_could_hold_is_refused(
    tmp_path, monkeypatch
):
    import pyarrow as pa
    from pyarrow import parquet

    monkeypatch.setattr(files, "FREE_BYTES", 1_000_000)
    parquet.write_table(pa.table({"a": np.zeros(1_000_000)}), tmp_path / "table.parquet")
    assert "would unpack to" in refused("parquet", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    ["[" * DEEP, '{"a":' * DEEP, "9" * 1_000_000, "NaN", "-Infinity", "1e999", '"\\ud83e"', "\x00"],
)
@pytest.mark.parametrize(("name", "file"), [("model", "model.json"), ("config", "settings.json")])
def test_json_out_of_bounds_is_damage(copied, name, file, value):
    folder = copied(name)
    (folder / file).write_text(f'{{"n_components": {value}')
    assert "damaged" in refused(name, folder)


@pytest.mark.slow
@pytest.mark.parametrize("preset", [[], {}, 3, None])
def test_a_preset_that_is_no_name_is_refused(copied, preset):
    folder = copied("config")
    edit(folder / "settings.json", lambda settings: settings.update(preset=preset))
    assert "preset" in refused("config", folder)


@pytest.mark.slow
def test_toml_nested_without_end_is_damage(copied):
    folder = copied("config")
    (folder / "settings.toml").write_text("hidden = " + "[" * DEEP)
    assert "damaged" in refused("config", folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"n_components": 10**9},
        {"metric": "trotter", "metric_scope": "local", "metric_depth": 10**9},
    ],
)
def test_sizes_that_the_weights_do_not_have_are_not_built(copied, changes):
    folder = copied("model")
    edit(folder / "model.json", lambda document: document["settings"].update(changes))
    refused("model", folder)


@pytest.mark.slow
def test_widths_in_the_settings_build_nothing_as_the_structure_has_its_own(copied):
    folder = copied("model")
    many = {"hidden": [4] * 10_000}
    edit(folder / "model.json", lambda document: document["settings"].update(many))
    assert judged("model", folder)[0] == "accepted"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"class_names": ["a"]},
        {"class_names": None},
        {"target": ["kind"]},
        {"id": 7},
        {"table": {"missing": "error", "columns": []}},
        {"n_features": 3.5},
        {"versions": None},
    ],
)
def test_a_model_whose_parts_do_not_fit_together_is_refused(copied, changes):
    folder = copied("model")
    edit(folder / "model.json", lambda document: document.update(changes))
    refused("model", folder)


@pytest.mark.slow
def test_long_words_do_not_keep_a_model_from_being_shown(copied):
    folder = copied("model")
    edit(folder / "model.json", lambda document: document["versions"].update(jax="x" * 100_000))
    assert judged("model", folder)[0] == "accepted"


def strings(value, path=()):
    """Where a document holds text, as the keys that lead there."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items)[:4] if isinstance(value, list) else items:
        if isinstance(item, str):
            yield (*path, key)
        elif isinstance(item, dict | list):
            yield from strings(item, (*path, key))


def replaced(document, keys):
    made = json.loads(json.dumps(document))
    holder = made
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = HOSTILE
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "files", "page"),
    [
        ("run", ("report.json", "metrics.json", "model/model.json"), "report.html"),
        ("records", ("records/two-moons.jsonl",), "report.html"),
    ],
)
def test_no_text_from_a_strangers_folder_is_markup_in_a_page(copied, name, files, page):
    folder, n_pages = copied(name), 0
    for file in files:
        sound = (folder / file).read_text()
        for keys in strings(json.loads(sound)):
            (folder / file).write_text(json.dumps(replaced(json.loads(sound), keys)))
            (folder / page).unlink(missing_ok=True)
            verdict, said = judged(name, folder)
            assert verdict != "crashed", f"{keys}: {said}"
            if verdict == "accepted":
                n_pages += 1
                assert HOSTILE not in (folder / page).read_text(), keys
        (folder / file).write_text(sound)
    assert n_pages


@pytest.mark.slow
def test_a_seed_or_a_kind_of_warning_is_no_markup_either(copied):
    folder = copied("run")

    def spoil(metrics):
        metrics["config"]["seed"] = HOSTILE
        metrics["warnings"] = [{"kind": f"'>{HOSTILE}", "message": HOSTILE}]

    edit(folder / "metrics.json", spoil)
    assert judged("run", folder)[0] == "accepted"
    assert HOSTILE not in (folder / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("content", ["", "{", "[]", '{"loss": "low"}'])
def test_damaged_records_of_trials_say_that_they_can_be_removed(copied, content):
    folder = copied("tuning")
    (folder / "trials.jsonl").write_text(content + "\n")
    assert "remove it" in refused("tuning", folder)


def test_no_duration_depends_on_the_clock_on_the_wall():
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"time\.time\(|\bnow\(|utcnow|today\(", path.read_text()), path


def test_a_file_cannot_steer_the_terminal_that_shows_what_is_wrong_with_it(tmp_path):
    (tmp_path / "t.csv").write_text("\x1b]0;owned\x07,b\n1,2\n")
    done = piefs("fit", tmp_path / "t.csv", "--target", "c", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "owned" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_folder_closed_to_us_is_one_line_on_the_command_line():
    done = piefs("fit", "two-moons", "--steps", "1", "-k", "1", "--out", "/proc/piefs/run")
    assert done.returncode == 2
    assert done.stderr.startswith("piefs: cannot write to /proc/piefs/run")


def test_figures_on_what_was_tried_are_those_of_the_page():
    from lab.fuzz import page

    text = (ROOT / "docs" / "trust.md").read_text()
    assert page.tables() == [part.strip() for part in text.split("<!-- measured -->")[1::2]]


def test_no_file_did_what_no_file_may_do():
    found = RESULTS["fuzz"]
    assert found["readers"].keys() == TARGETS.keys()
    for reader in found["readers"].values():
        assert reader["files"] >= 10_000
        assert reader["crashed"] == reader["died"] == reader["hung"] == 0
    killed = RESULTS["soak"]
    assert killed["kills"] >= 100
    assert killed["failed_to_resume"] == 0
    assert killed["identical"] == killed["runs_finished"] > 0
