"""Second labels: copies are noticed, agreement gets a verdict where there is enough of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.audit import audit_set
from goldset.audit.integrity import Integrity
from goldset.audit.reliability import copier, doubles
from goldset.errors import DataError
from goldset.formats.raters import find_labels, read_labels
from goldset.formats.sets import LabelledSet

MakeSet = Callable[..., LabelledSet]
Label = tuple[str, str, str, float]
Cells = dict[tuple[int, int], int]


def labels(rows: Sequence[Label]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip(("question_id", "span_id", "assessor", "grade"), map(list, columns), strict=True)))


def twice(cells: Cells, first: str = "ann", second: str = "bo") -> list[Label]:
    """(grade of the first, grade of the second) -> how many pairs -> labels."""
    rows: list[Label] = []
    for (one, other), count in cells.items():
        for i in range(count):
            pair = (f"q{first}{second}{one}{other}", f"d{i}")
            rows += [(*pair, first, float(one)), (*pair, second, float(other))]
    return rows


def findings(make_set: MakeSet, rows: Sequence[Label], **facts: Any) -> dict[tuple[str, str], Any]:
    labelled = make_set({"q1": ["d1"]}, labels=labels(rows), **facts)
    table = audit_set(labelled, {}, checks=[Integrity()])
    return {(row["subject"], row["reason"]): row for row in table.to_pylist()}


def test_an_assessor_who_never_differs_is_a_copier(make_set: MakeSet) -> None:
    # 59 pairs without one difference: one-sided upper bound 1 - .05^(1/59) = .0495, below .05; 58 pairs: .0503.
    assert copier(doubles(labels(twice({(0, 0): 29, (1, 1): 30})))) == ("ann", 59)
    assert copier(doubles(labels(twice({(0, 0): 29, (1, 1): 29})))) is None
    assert copier(doubles(labels(twice({(0, 0): 300, (1, 1): 300, (0, 1): 1})))) is None
    # One answer nearly throughout: agreement by chance is (99/100)^2 + (1/100)^2 = .98, and never to differ is no sign.
    assert copier(doubles(labels(twice({(0, 0): 99, (1, 1): 1})))) is None
    # The other grade counts even where the decision is the same.
    assert copier(doubles(labels(twice({(2, 2): 50, (1, 1): 50, (2, 3): 1})))) is None


def test_copies_are_told_and_left_out_of_the_agreement(make_set: MakeSet) -> None:
    honest = {(1, 1): 40, (1, 0): 8, (0, 1): 7, (0, 0): 65}
    rows = findings(make_set, [*twice({(0, 0): 40, (1, 1): 40}, "cy", "zoe"), *twice(honest)])
    copied = rows["assessor cy", "copied_labels"]
    assert (copied["verdict"], copied["n"]) == ("warn", 80)
    # Of 120 pairs (40 + 65) agree: .875; p_e = (48*47 + 72*73)/120^2 = .522; kappa = (.875 - .522)/(1 - .522) = .739.
    agreed = rows["assessors", "reliable"]
    assert (agreed["verdict"], agreed["n"]) == ("pass", 120)
    assert agreed["measured"] == pytest.approx(0.7388, abs=5e-4)
    assert "4 assessors; without the copies, 120 pairs labelled twice" in agreed["message"]


def test_people_who_do_not_agree_are_a_warning(make_set: MakeSet) -> None:
    # Agreement 100 of 200, p_e = .5: kappa 0.
    rows = findings(make_set, twice({(1, 1): 50, (1, 0): 50, (0, 1): 50, (0, 0): 50}))
    row = rows["assessors", "unreliable"]
    assert (row["verdict"], row["measured"]) == ("warn", 0)


@pytest.mark.parametrize(("rows", "says"), [
    (twice({(1, 1): 20, (0, 0): 20, (0, 1): 5}), "fewer than 100 allow no verdict"),
    (twice({(0, 0): 120}), "one answer only, so kappa is not defined"),
    ([("q1", "d1", "ann", 1.0), ("q1", "d2", "bo", 0.0)], "no pair was labelled by two people independently"),
])
def test_without_enough_there_is_no_verdict(make_set: MakeSet, rows: Any, says: str) -> None:
    row = findings(make_set, rows)["assessors", "agreement"]
    assert row["verdict"] == "pass"
    assert says in row["message"]


def test_the_threshold_of_the_set_makes_the_decision(make_set: MakeSet) -> None:
    rows = twice({(2, 2): 60, (1, 0): 60})
    assert findings(make_set, rows, relevant_from=2)["assessors", "reliable"]["measured"] == 1
    # From grade 1 on the first says yes throughout and the second in half: agreement .5 is what chance gives, kappa 0.
    assert findings(make_set, rows, relevant_from=1)["assessors", "unreliable"]["measured"] == pytest.approx(0)


def test_a_manifest_that_records_the_agreement_is_enough(make_set: MakeSet) -> None:
    table = {"n": 200, "agreement": 0.9, "kappa": 0.7, "kappa_interval": [0.6, 0.8], "positive_agreement": 0.8,
             "margins": [60, 62], "enough": True}
    rows = audit_set(make_set({"q1": ["d1"]}, manifest={"agreement": table}), {}, checks=[Integrity()]).to_pylist()
    assert [(row["reason"], row["measured"]) for row in rows if row["subject"] == "assessors"] == [("reliable", 0.7)]


def test_tables_of_labels_are_found_by_their_header(tmp_path: Path) -> None:
    (tmp_path / "notes.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "human.tsv").write_bytes(b"\xef\xbb\xbfquery-id\tcorpus-id\trater\trating\r\nq1\td1\tr9\t3\r\n\r\n"
                                         b"q1\td1\tr4\t2.5\r\n")
    path = find_labels(tmp_path)
    assert path == tmp_path / "human.tsv"
    table, said = read_labels(path)
    assert table.to_pylist() == [
        {"question_id": "q1", "span_id": "d1", "assessor": "r9", "grade": 3.0, "where": f"{path}, line 2"},
        {"question_id": "q1", "span_id": "d1", "assessor": "r4", "grade": 2.5, "where": f"{path}, line 4"}]
    assert "question = 'query-id', passage = 'corpus-id', assessor = 'rater', grade = 'rating'" in said


@pytest.mark.parametrize(("content", "says"), [
    ("a,b\n1,2\n", "no table of labels; its first line must name"),
    ("qid,docid,rater,grade\nq,d,r\n", "line 2: 3 fields where the header has 4"),
    ("qid,docid,rater,grade\nq,d,r,good\n", "line 2: grade 'good' is not a number"),
])
def test_tables_that_are_none(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=says):
        read_labels(path)
