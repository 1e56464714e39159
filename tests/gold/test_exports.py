"""Gold on chunks: which chunk stands for a gold that no chunk delivers alone, and files that we read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goldset.formats.sets import Corpus, load_set
from goldset.formats.writers import WRITERS
from goldset.gold import export_set
from goldset.gold.exports import FORMATS, project
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour, harbour
from tests.test_served import DOC, chunks_of, gold_of, prose, spans_of

__all__ = ["harbour"]


def test_the_chunk_with_most_of_the_evidence_stands_for_a_gold_that_none_delivers() -> None:
    # Evidence [200,220), 18 visible code points; chunk a = [0,206) has 6 of them and two thirds of the span, b the
    # other 12. Neither has nine tenths; in words served, b is what a reader needs more of.
    own = chunks_of(DOC, ("d", 0, 300))
    made = spans_of(DOC, own)
    corpus = Corpus(own, made.spans, made.links)
    gold = gold_of(("q", "d#0-300", [(200, 220)]))
    found = project(gold=gold, corpus=corpus, chunks=chunks_of(DOC, ("d", 0, 206), ("d", 206, 300)))
    assert found.rows == [("q", "d:206-300", 1.0)]
    assert (found.alone, found.together, found.nowhere) == (0, 1, 0)
    # Without evidence the span decides: half of it must be held, and the first chunk does that alone.
    found = project(gold=gold_of(("q", "d#0-300", [])), corpus=corpus,
                    chunks=chunks_of(DOC, ("d", 0, 206), ("d", 206, 300)))
    assert found.rows == [("q", "d:0-206", 1.0)]
    # As much evidence in each, [190,209) has 9 visible code points before 200 and 9 after: the span decides.
    found = project(gold=gold_of(("q", "d#0-300", [(190, 209)])), corpus=corpus,
                    chunks=chunks_of(DOC, ("d", 0, 200), ("d", 200, 300)))
    assert found.rows == [("q", "d:0-200", 1.0)]


def test_a_twin_counts_at_its_own_place() -> None:
    # e repeats d after ten other code points: evidence [200,220) of d is [210,230) of e. d itself is not indexed.
    texts = {**DOC, "e": "x" * 9 + " " + DOC["d"]}
    own = chunks_of(texts, ("d", 0, 300), ("e", 0, 9), ("e", 10, 310))
    made = spans_of(texts, own)
    assert made.report["twins"] == 1
    found = project(gold=gold_of(("q", "d#0-300", [(200, 220)])), corpus=Corpus(own, made.spans, made.links),
                    chunks=chunks_of(texts, ("e", 0, 216), ("e", 216, 310)))
    assert found.rows == [("q", "e:216-310", 1.0)]


def test_a_gold_in_no_chunk_is_counted() -> None:
    own = chunks_of(DOC, ("d", 0, 100), ("d", 100, 300))
    made = spans_of(DOC, own)
    gold = gold_of(("q", "d#0-100", [(0, 20)]), ("q", "d#100-300", [(150, 160)]))
    found = project(gold=gold, corpus=Corpus(own, made.spans, made.links), chunks=chunks_of(DOC, ("d", 100, 300)))
    assert found.rows == [("q", "d:100-300", 1.0)]
    assert (found.alone, found.together, found.nowhere) == (1, 0, 1)


def test_evidence_lengths_as_counted_by_hand() -> None:
    assert len("".join(prose(300)[200:220].split())) == 18
    assert len("".join(prose(300)[200:206].split())) == 6
    assert [len("".join(prose(300)[low:high].split())) for low, high in ((190, 200), (200, 209))] == [9, 9]


READ_BACK = {"qrels": "qrels.txt", "beir": "beir", "jsonl": "questions.jsonl", "csv": "questions.csv",
             "ragas": "ragas.jsonl", "llamaindex": "llamaindex.json", "langsmith": "langsmith.jsonl"}


@pytest.mark.parametrize("name", WRITERS)
def test_each_format_is_read_back_with_the_same_gold(harbour: Harbour, tmp_path: Path, name: str) -> None:
    labelled = harbour.published.outcome.labelled
    export_set(labelled, tmp_path, formats=[name])
    lines = (tmp_path / "weights.tsv").read_text().splitlines()[1:]
    expected = {tuple(line.split("\t")[:2]) for line in lines}
    read = load_set(tmp_path / READ_BACK[name])
    texts = {text for text in golden.ASKED if text != golden.HELICOPTER}  # nobody found anything for that one
    if read.questions is not None:
        names = dict(zip(*(read.questions.column(column).to_pylist() for column in ("question_id", "text")),
                         strict=True))
        assert set(names.values()) >= texts
    assert {(row["question_id"], row["span_id"]) for row in read.gold.to_pylist()} == expected
    assert json.loads((tmp_path / "export.json").read_text())["formats"] == [name]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["weights.tsv", "export.json", READ_BACK[name]])


def test_the_command_offers_what_can_be_written() -> None:
    from goldset.cli.export import FORMATS as OFFERED

    assert list(OFFERED) == list(WRITERS)
    assert set(FORMATS) <= set(WRITERS)
