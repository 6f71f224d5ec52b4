"""The command line, as a user meets it: real folders, and real processes where it matters."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from commands import COMMAND, main, piefs, piefs_process
from piefs import PIEFSClassifier
from piefs.app.fit import KEYWORDS

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL = ["-k", "2", "--steps", "20", "--batch-size", "64", "--no-report"]


def write_messy(path, n, columns, seed):
    """A customer table with an ID, a date, a category, gaps, a boolean and a string target."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for i in range(n):
            age, color = rng.normal(40, 10), rng.choice(["red", "green", "blue"])
            writer.writerow(
                {
                    "customer": f"C{i:05d}",
                    "joined": f"2020-0{rng.integers(1, 10)}-1{rng.integers(0, 10)}",
                    "age": "" if rng.random() < 0.05 else f"{age:.1f}",
                    "color": color,
                    "member": rng.choice(["yes", "no"]),
                    "constant": 7,
                    "churn": "leaves" if age / 10 + 2 * (color == "red") > 4.5 else "stays",
                }
            )


COLUMNS = ["customer", "joined", "age", "color", "member", "constant", "churn"]


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A folder with two messy tables, and a run fitted on the first."""
    folder = tmp_path_factory.mktemp("messy")
    write_messy(folder / "train.csv", 400, COLUMNS, 0)
    write_messy(folder / "new.csv", 50, COLUMNS[::-1], 1)
    done = piefs(
        *("fit", "train.csv", "--target", "churn", "--id", "customer", "--missing", "impute"),
        *("-k", "4", "--steps", "200", "--batch-size", "128", "--no-report", "--out", "run"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_help_lists_the_commands_without_loading_the_engine():
    done = piefs_process("--help")
    assert done.returncode == 0
    for command in ("demo", "fit", "transform", "predict", "score", "inspect", "data"):
        assert command in done.stdout
    probe = "import sys, piefs.app; print({'jax', 'sklearn', 'matplotlib'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert loaded.stdout.strip() == "set()"


def test_without_app_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert "pip install 'piefs-learn[app]'" in told
    assert len(told.splitlines()) == 1


def test_an_earlier_run_is_cleared_only_once_the_new_one_trains(messy, tmp_path):
    shutil.copytree(messy[0] / "run", tmp_path / "run")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = piefs(
        *("fit", messy[0] / "train.csv", "--target", "churn", "--missing", "impute", *SMALL),
        *("--metric", "round", "--out", tmp_path / "run", "--force"),
    )
    assert done.returncode == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


EARLY = {
    "--version": "",
    "predict nowhere good.csv": "there is no model at nowhere",
    "export nowhere --format onnx": "there is no model at nowhere",
    "fit nothing.csv --target y": "there is no file nothing.csv",
    "fit three-moons": "no such data set",
    "fit good.csv --target y -k few": "n_components must be a whole number",
    "fit good.csv --target z": "good.csv has no column 'z'",
    "fit good.csv --target y --drop b --metric round": "unknown metric 'round'",
    "fit good.csv --target y --config settings.toml": "unknown setting 'bath_size'",
    "fit good.csv --target y --out finished": "holds a finished run",
    "tune good.csv": "--target",
    "tune good.csv --target y --trials 0": "--trials",
    "transform model nothing.csv": "there is no file nothing.csv",
    "report finished": "finished has no report.json",
    "eigen interval --out file": "--out must name a folder",
}


def test_what_is_wrong_is_said_before_anything_heavy_is_loaded(tmp_path):
    make_bad_files(tmp_path)
    for name in ("finished", "model"):
        (tmp_path / name).mkdir()
    (tmp_path / "finished" / "metrics.json").write_text("{}")
    (tmp_path / "model" / "model.json").write_text("{}")
    probe = (
        "import sys; from piefs.app import main\n"
        f"for command in {list(EARLY)}:\n"
        "    sys.argv = ['piefs', *command.split()]\n"
        "    try: main()\n"
        "    except SystemExit: print('---', file=sys.stderr)\n"
        "print({'jax', 'sklearn', 'matplotlib', 'pyarrow'} & set(sys.modules))"
    )
    run = {"capture_output": True, "text": True, "check": True, "cwd": tmp_path}
    done = subprocess.run([sys.executable, "-c", probe], **run)
    assert done.stdout.split("\n")[-2] == "set()"
    for said, (command, expected) in zip(done.stderr.split("---"), EARLY.items(), strict=False):
        assert expected in said, command


def test_a_file_of_settings_takes_every_keyword_that_decides_a_fit():
    others = {"standardize", "random_state", "verbose", "callbacks"}
    assert set(KEYWORDS) == set(PIEFSClassifier().get_params()) - others


@pytest.mark.slow
def test_json_output_is_the_metrics_file_and_nothing_else(tmp_path):
    done = piefs_process(
        *("fit", "circles", *SMALL, "--metric", "diag", "--no-report", "--out", tmp_path, "--json")
    )
    assert json.loads(done.stdout) == json.loads((tmp_path / "metrics.json").read_text())
    assert json.loads(done.stdout)["config"]["metric"]["name"] == "diag"


def test_settings_come_from_a_file_and_options_win(tmp_path):
    (tmp_path / "settings.toml").write_text(
        'preset = "fast"\nn_components = 5\nsteps_per_component = 20\nbatch_size = 64\n'
        'hidden = [8, 8]\nactivation = "tanh"\n'
    )
    done = piefs(
        *("fit", "two-moons", "--config", tmp_path / "settings.toml", "-k", "2", "--device", "cpu"),
        *("--out", tmp_path / "run", "--json", "--no-report"),
    )
    config = json.loads(done.stdout)["config"]
    assert (config["n_components"], config["activation"], config["hidden"]) == (2, "tanh", [8, 8])
    assert config["preset"] == "fast"  # named in the file


def test_quiet_prints_nothing_and_a_finished_run_is_not_overwritten(tmp_path):
    arguments = ["fit", "two-moons", *SMALL, "--out", tmp_path / "run", "--quiet"]
    done = piefs(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    before = (tmp_path / "run" / "metrics.json").read_bytes()
    again = piefs(*arguments)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert (tmp_path / "run" / "metrics.json").read_bytes() == before
    assert piefs(*arguments, "--resume").returncode == 0
    assert (tmp_path / "run" / "metrics.json").read_bytes() == before
    assert piefs(*arguments, "--force").returncode == 0
    assert (tmp_path / "run" / "metrics.json").read_bytes() != before


def test_a_messy_table_trains_with_one_command_and_says_what_it_did(messy):
    folder, printed = messy
    for said in ("joined: date", "missing values replaced", "3 categories", "boolean", "dropped"):
        assert said in printed
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    assert metrics["accuracy"]["test"] > 0.8
    assert "calibration error" in printed
    assert "the task is classification, since column 'churn' holds text" in printed
    for name in ("f1", "roc_auc", "log_loss", "ece"):
        assert set(metrics[name]) == {"train", "validation", "test"}


def test_predictions_carry_ids_and_do_not_depend_on_column_order(messy):
    folder, _ = messy
    done = piefs("predict", "run", "new.csv", "--out", "p.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((folder / "p.csv").read_text().splitlines()))
    assert list(rows[0]) == ["customer", "prediction", "p(leaves)", "p(stays)"]
    assert [row["customer"] for row in rows] == [f"C{i:05d}" for i in range(50)]
    for row in rows:
        p = {name: float(row[f"p({name})"]) for name in ("leaves", "stays")}
        assert sum(p.values()) == pytest.approx(1)
        assert row["prediction"] == max(p, key=p.get)
    write_messy(folder / "same.csv", 50, COLUMNS, 1)
    assert piefs("predict", "run", "same.csv", cwd=folder).stdout == (folder / "p.csv").read_text()


def test_score_and_transform_work_on_a_second_file(messy):
    folder, _ = messy
    scores = json.loads(piefs("score", "run", "new.csv", "--json", cwd=folder).stdout)
    rows = list(csv.DictReader((folder / "new.csv").read_text().splitlines()))
    predicted = csv.DictReader(piefs("predict", "run", "new.csv", cwd=folder).stdout.splitlines())
    hits = [p["prediction"] == row["churn"] for p, row in zip(predicted, rows, strict=True)]
    assert scores["accuracy"] == pytest.approx(np.mean(hits))
    assert scores["n_rows"] == 50
    assert 0 <= scores["ece"] <= 1
    assert "calibration error" in piefs("score", "run", "new.csv", cwd=folder).stdout
    done = piefs("transform", "run/model", "new.csv", "--out", "phi.npz", cwd=folder)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "phi.npz") as phi:
        assert set(phi) == {"customer", "phi1", "phi2", "phi3", "phi4"}


def test_inspect_tells_columns_classes_and_settings(messy):
    printed = piefs("inspect", "run", cwd=messy[0]).stdout
    for said in ("churn", "leaves, stays", "joined: date", "learning_rate", "energies"):
        assert said in printed
    document = json.loads(piefs("inspect", "run", "--json", cwd=messy[0]).stdout)
    assert document["class_names"] == ["leaves", "stays"]


@pytest.mark.slow
def test_grouped_and_timed_splits_are_offered(messy):
    folder, _ = messy
    for option in (["--group", "color"], ["--time", "joined"]):
        done = piefs(
            *("fit", "train.csv", "--target", "churn", "--missing", "impute", *option, *SMALL),
            *("--out", f"by{option[0]}", "--json"),
            cwd=folder,
        )
        assert done.returncode == 0, done.stderr


def test_unsupervised_needs_no_target(messy):
    folder, _ = messy
    done = piefs(
        *("fit", "train.csv", "--task", "unsupervised", "--missing", "impute", *SMALL),
        *("--drop", "churn", "--out", "unsupervised", "--json"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "accuracy" not in json.loads(done.stdout)
    assert piefs("transform", "unsupervised", "new.csv", cwd=folder).returncode == 0
    refused = piefs("predict", "unsupervised", "new.csv", cwd=folder)
    assert refused.returncode == 2
    assert "without labels" in refused.stderr


@pytest.mark.slow
def test_a_report_without_a_target_says_that_there_are_no_scores(messy):
    rows = ("fit", "train.csv", "--task", "unsupervised", "--missing", "impute")
    assert piefs(*rows, *SMALL, "--report", "--out", "told", cwd=messy[0]).returncode == 0
    page = (messy[0] / "told" / "report.html").read_text()
    assert "There is no target, so there are no scores." in page


def make_bad_files(folder):
    (folder / "header.csv").write_text("a,b,y\n")
    (folder / "empty.csv").write_text("")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 20)
    rows = [f"{i % 5},{i},{'ab'[i % 2]}" for i in range(40)]
    (folder / "good.csv").write_text("\n".join(["a,b,y", *rows]))
    (folder / "oneclass.csv").write_text("\n".join(["a,y", *(f"{i % 7},x" for i in range(40))]))
    (folder / "constant.csv").write_text("\n".join(["a,y", *(f"1,{i % 2}" for i in range(40))]))
    gaps = "\n".join(["a,y", *(f"{'' if i == 3 else i % 7},{i % 2}" for i in range(40))])
    (folder / "gaps.csv").write_text(gaps)
    (folder / "inf.csv").write_text(gaps.replace("\n,", "\ninf,"))
    halves = "\n".join(["a,y", *(f"{i % 7},{i / 2}" for i in range(40))])
    (folder / "numbers.csv").write_text(halves)
    (folder / "slip.csv").write_text(halves.replace("19.5", "much"))
    (folder / "level.csv").write_text("\n".join(["a,y", *(f"{i % 7},1.5" for i in range(40))]))
    (folder / "file").write_text("in the way")
    (folder / "weights.toml").write_text('class_weight = "balanced"')
    (folder / "settings.toml").write_text("bath_size = 3")
    (folder / "broken.toml").write_text("batch_size = ")


FIT = ["fit", "good.csv", "--target", "y"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "nothing.csv", "--target", "y"], "nothing.csv"),
        (["fit", "good.csv"], "--target"),
        (["fit", "good.csv", "--target", "z"], "z"),
        ([*FIT, "--drop", "z"], "z"),
        (["fit", "oneclass.csv", "--target", "y"], "two classes"),
        (["fit", "gaps.csv", "--target", "y"], "--missing impute"),
        (["fit", "inf.csv", "--target", "y"], "--missing impute"),
        (["fit", "constant.csv", "--target", "y"], "no usable feature"),
        (["fit", "header.csv", "--target", "y"], "header.csv"),
        (["fit", "empty.csv", "--target", "y"], "empty.csv"),
        (["fit", "binary.csv", "--target", "y"], "binary.csv"),
        ([*FIT, "-k", "1000"], "n_components"),
        ([*FIT, "-k", "0"], "n_components"),
        ([*FIT, "--metric", "round"], "trotter"),
        ([*FIT, "--preset", "slow"], "paper"),
        ([*FIT, "--out", "file/run"], "--out"),
        ([*FIT, "--config", "settings.toml"], "bath_size"),
        ([*FIT, "--config", "broken.toml"], "broken.toml"),
        ([*FIT, "--config", "no.toml"], "no.toml"),
        ([*FIT, "--device", "abacus"], "cpu"),
        (["fit", "three-moons"], "two-moons"),
        (["fit", "mnist", "--data-dir", "nowhere"], "mnist.npz"),
        (["fit", "two-moons", "--target", "y"], "built-in"),
        (["fit", "two-moons", "--task", "regression"], "is a data set of classes"),
        ([*FIT, "--task", "regression"], "'a' in line 2"),
        ([*FIT, "--task", "ranking"], "regression"),
        (["fit", "slip.csv", "--target", "y"], "'much' in line 41"),
        (["fit", "level.csv", "--target", "y"], "only the value 1.5"),
        (["fit", "numbers.csv", "--task", "regression"], "--target"),
        (["fit", "numbers.csv", "--target", "y", "--task", "classification"], "--task regression"),
        (["fit", "numbers.csv", "--target", "y", "--config", "weights.toml"], "class_weight"),
        (["predict", "nowhere", "good.csv"], "no model"),
        (["predict", "good.csv", "good.csv"], "model"),
        (["data", "path", "mnist", "--data-dir", "nowhere"], "fetch"),
        (["data", "path", "two-moons"], "no file"),
        (["data", "fetch", "cifar10-embedding", "--data-dir", "nowhere"], "cannot be downloaded"),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2_and_leaves_nothing(tmp_path, arguments, said):
    make_bad_files(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    if arguments[0] == "fit" and "--out" not in arguments:
        arguments = [*arguments, "--out", "run"]
    done = piefs(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    if not {"--preset", "ranking"} & set(arguments):  # the parser's own message is framed
        assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_wrong_features_at_predict_are_named(messy):
    folder, _ = messy
    (folder / "short.csv").write_text("customer,age,color,member\nC1,3,red,yes\n")
    (folder / "text.csv").write_text(
        "customer,joined,age,color,member\nC1,2020-01-01,old,red,yes\n"
    )
    for name, said in (("short.csv", "joined"), ("text.csv", "age")):
        done = piefs("predict", "run", name, "--out", "never.csv", cwd=folder)
        assert done.returncode == 2
        assert said in done.stderr
        assert not (folder / "never.csv").exists()


def test_a_model_folder_of_another_version_is_refused(messy, tmp_path):
    document = json.loads((messy[0] / "run" / "model" / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(document | {"format_version": 99}))
    done = piefs("inspect", tmp_path)
    assert done.returncode == 2
    assert "99" in done.stderr


def test_data_list_and_path_know_the_files():
    listed = json.loads(piefs("data", "list", "--json").stdout)
    assert {"two-moons", "mnist"} <= {row["name"] for row in listed}
    if os.environ.get("PIEFS_DATA"):
        assert piefs("data", "path", "mnist").stdout.strip().endswith("mnist.npz")


@pytest.mark.slow
def test_debug_shows_the_traceback(tmp_path):
    done = piefs_process("fit", "three-moons", "--debug", "--out", tmp_path)
    assert "Traceback" in done.stderr


LONG = ["fit", "two-moons", "--preset", "paper", "-k", "2"]
LONG += ["--steps", "100000", "--batch-size", "64"]


def wait_for(path, process, seconds=120):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)


@pytest.mark.slow
def test_interrupting_says_how_to_resume_and_a_second_process_is_kept_out(tmp_path):
    arguments = [*LONG, "--out", str(tmp_path / "run")]
    # Where tests run in the background, Ctrl-C is ignored, and children inherit that.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    process = subprocess.Popen(
        [sys.executable, "-c", heed + COMMAND[-1], *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(tmp_path / "run" / "checkpoint.safetensors", process)
        second = piefs(*arguments, "--resume")
        assert second.returncode == 2
        assert f"process {process.pid} on " in second.stderr
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "--resume" in said
    assert "Traceback" not in said
    unresumed = piefs(*arguments)
    assert unresumed.returncode == 2
    assert "--resume" in unresumed.stderr
