"""Work away from the page: export blind, import all or nothing."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goldset.errors import DataError
from goldset.review import ReviewStore, export_items, import_answers
from goldset.schemas import from_rows

TEXT = "Opening times differ. We open at nine, 😀 always. Bring a card."


@pytest.fixture
def store(make: Any, tmp_path: Path) -> Iterator[ReviewStore]:
    docs = make.documents(d="Before. " + TEXT)
    spans = make.spans(docs, [("d", 8, 8 + len(TEXT))])
    questions = make.questions("when?", "where?")
    found = ReviewStore(f"sqlite:///{tmp_path / 'review.sqlite'}")
    found.append_queue(from_rows("queue", [
        {"item_id": f"i{n}{reason[0]}", "question_id": q, "span_id": f"d#8-{8 + len(TEXT)}", "campaign": "rebuild",
         "wave": 1, "reason": reason, "stratum": "STRATUM", "stratum_size": 2, "u": 0.5, "order": n}
        for n, q in enumerate(questions.column("question_id").to_pylist()) for reason in ("positive", "second")]))
    found.set_passages(questions=questions, spans=spans, documents=docs)
    yield found
    found.close()


def rewrite(path: Path, *changes: dict[str, Any]) -> None:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        for row, change in zip(rows, changes, strict=False):
            row.update(change)
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    else:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for row, change in zip(lines, changes, strict=False):
            row.update(change)
        path.write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")


@pytest.mark.parametrize("name", ["work.jsonl", "work.csv"])
def test_round_trip(store: ReviewStore, make: Any, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert export_items(store, path, assessor="ada", now=make.t0) == 2  # second items wait for another person
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(positive|second|stratum|reason|wave)\b", text.lower())
    quote = "We open at nine, 😀 always."
    rewrite(path, {"answer": "yes", "evidence": [quote] if name.endswith("jsonl") else quote, "seconds": "7.5"},
            {"answer": "Can't tell"})
    assert import_answers(store, path, time=make.t0) == 2
    assert import_answers(store, path, time=make.t0) == 2  # again: nothing is stored twice
    rows = store.labels().to_pylist()
    assert [(r["item_id"], r["relevant"], r["reason"], r["origin"], r["assessor"], r["seconds"]) for r in rows] == [
        ("i0p", True, None, "import", "ada", 7.5), ("i1p", None, "cant_tell", "import", "ada", None)]
    start = ("Before. " + TEXT).index(quote)
    assert rows[0]["evidence"] == [{"start": start, "end": start + len(quote)}]
    assert export_items(store, path, assessor="ada", now=make.t0) == 0
    assert export_items(store, path, assessor="ben", now=make.t0) == 2


def test_blank_answers_are_skipped(store: ReviewStore, make: Any, tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    export_items(store, path, assessor="ada", now=make.t0)
    assert import_answers(store, path, time=make.t0) == 0
    rewrite(path, {"answer": "yes"})
    assert import_answers(store, path, time=make.t0) == 1
    assert store.labels().to_pylist()[0]["evidence_source"] == "whole_span"


@pytest.mark.parametrize(("change", "message"), [
    ({"answer": "maybe"}, r"line 2: answer 'maybe' is not known; allowed: yes, no, cant_tell, later"),
    ({"answer": "no", "item_id": "i9"}, "line 2: item 'i9' is not in the queue"),
    ({"answer": "no", "assessor": ""}, "line 2: no assessor"),
    ({"answer": "no", "edition": "old"}, "line 2: the passage of item 'i1p' has changed"),
    ({"answer": "yes", "evidence": ["We open at ten."]},
     "line 2: the evidence 'We open at ten.' is not in the passage"),
    ({"answer": "no", "evidence": ["Bring a card."]}, "line 2: evidence is given with the answer 'no'"),
    ({"answer": "no", "seconds": "long"}, "line 2: seconds 'long' is no reading time"),
    ({"answer": "no", "item_id": "i0p"}, "line 2: item 'i0p' is answered twice"),
    ({"answer": "no", "item_id": "i0s"}, "line 2: 'ada' has read this pair already"),
])
def test_an_error_names_the_line_and_nothing_is_stored(store: ReviewStore, make: Any, tmp_path: Path,
                                                       change: dict[str, Any], message: str) -> None:
    path = tmp_path / "work.jsonl"
    export_items(store, path, assessor="ada", now=make.t0)
    rewrite(path, {"answer": "yes"}, change)
    with pytest.raises(DataError, match=message) as caught:
        import_answers(store, path, time=make.t0)
    assert str(path) in str(caught.value)
    assert len(store.labels()) == 0


def test_a_csv_without_its_columns_is_refused(store: ReviewStore, make: Any, tmp_path: Path) -> None:
    path = tmp_path / "work.csv"
    path.write_text("item_id,answer\ni0p,yes\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1: no column 'edition'"):
        import_answers(store, path, time=make.t0)
