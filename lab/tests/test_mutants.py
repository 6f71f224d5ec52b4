"""What was tried on the maths is on record, and adds up."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from lab.mutants import score  # noqa: E402
from lab.mutants.__main__ import SUBJECTS, files_of, mirroring_tests  # noqa: E402
from lab.mutants.trial import source_of  # noqa: E402


def test_most_changes_are_noticed():
    scores = score.scores()
    assert scores.keys() == {"losses", "maps", "metrics", "rotations", "train", "weighting"}
    assert all(one.share >= 0.85 for one in scores.values())


def test_every_excuse_has_a_reason_and_belongs_to_a_change_that_was_tried():
    trials = [key for found in score.RESULTS.values() for key in found["trials"]]
    excused = json.loads((score.FOLDER / "equivalent.json").read_text())
    assert excused.keys() <= set(map(score.without_line, trials))
    assert all(excused.values())


def test_a_change_that_makes_no_difference_counts_neither_way():
    one = score.Score(changes=9, tried=5, noticed=3, equivalent=1, unnoticed=["piefs.core.maps …"])
    assert one.share == 0.75


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_subject_has_its_sources_and_the_tests_that_mirror_it(subject):
    assert all(source_of(name).is_file() for name in files_of(subject))
    mirrored = SUBJECTS[subject].split(".")[1]
    assert Path(mirroring_tests(subject)[0]).name.startswith(f"test_{mirrored}")
    assert len(mirroring_tests(subject)) > 1
