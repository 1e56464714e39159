"""Anybody's questions with gold: recognised by looking, the mapping said, gold texts found in the corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goldset.errors import DataError, UsageError
from goldset.formats.locating import Locator
from goldset.formats.sets import LabelledSet, load_set
from goldset.text import question_id
from tests.cli.conftest import Goldset, goldset

__all__ = ["goldset"]

PASSAGES = {"d1": "The ferry leaves the north pier at nine on weekdays.",
            "d2": "Bicycles travel free; dogs need a ticket of their own, which costs four euros.",
            "d3": "Lost property is kept for four weeks at the harbour office."}
FIRST, SECOND = "when does the ferry leave", "may I bring my dog"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in PASSAGES.items()))
    return path


def written(folder: Path, name: str, content: str | bytes | Any) -> Path:
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def gold(labelled: LabelledSet) -> set[tuple[str, str]]:
    """(question text, passage) of the gold."""
    assert labelled.questions is not None
    table = labelled.questions
    texts = dict(zip(table.column("question_id").to_pylist(), table.column("text").to_pylist(), strict=True))
    return {(texts[row["question_id"]], row["span_id"]) for row in labelled.gold.to_pylist()}


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


BY_ID = {(FIRST, "d1"), (SECOND, "d2")}
FILES: list[tuple[str, str, Any, str]] = [
    ("JSON lines with ids", "set.jsonl", lines({"question": FIRST, "gold_ids": ["d1"]},
                                               {"question": SECOND, "gold_ids": ["d2"]}),
     "questions with gold, JSON lines: question = 'question', ids = 'gold_ids'"),
    ("JSON lines with texts", "set.jsonl", lines({"query": FIRST, "gold_text": "the FERRY  leaves the north pier"},
                                                 {"query": SECOND, "gold_text": PASSAGES["d2"]}),
     "question = 'query', texts = 'gold_text'"),
    ("CSV with a byte order mark, CRLF and a blank line", "set.csv",
     b"\xef\xbb\xbfquestion,doc_id\r\n\r\n" + f'"{FIRST}",d1\r\n{SECOND},"d2"\r\n'.encode(),
     "CSV with a header: question = 'question', ids = 'doc_id'"),
    ("CSV without a header", "set.csv", f"{FIRST},d1\n{SECOND},d2\n",
     "CSV without a header: question = 'column 1', ids = 'column 2'"),
    ("CSV without a header, gold as text", "set.csv", f'{FIRST}\t"{PASSAGES["d1"]}"\n{SECOND}\t"{PASSAGES["d2"]}"\n',
     "TSV without a header: question = 'column 1', texts = 'column 2'"),
    ("semicolons", "set.txt", f"id;question;gold_ids\n1;{FIRST};d1\n2;{SECOND};d2\n", "question id = 'id'"),
    ("Ragas test set", "testset.jsonl",
     lines({"user_input": FIRST, "reference_contexts": [PASSAGES["d1"]], "reference": "At nine.",
            "synthesizer_name": "single_hop_specific_query_synthesizer"},
           {"user_input": SECOND, "reference_contexts": [PASSAGES["d2"]], "reference": "Yes.",
            "synthesizer_name": "single_hop_specific_query_synthesizer"}),
     "Ragas data set, JSON lines: question = 'user_input', texts = 'reference_contexts'"),
    ("Ragas test set as pandas writes it to CSV", "testset.csv",
     f'user_input,reference_contexts,reference,synthesizer_name\n{FIRST},"[\'{PASSAGES["d1"]}\']",nine,x\n'
     f'{SECOND},"[\'{PASSAGES["d2"]}\']",yes,x\n', "Ragas data set, CSV with a header"),
    ("Ragas with ids, retrieved ones ignored", "eval.jsonl",
     lines({"user_input": FIRST, "retrieved_context_ids": ["d3"], "reference_context_ids": ["d1"], "response": "x"},
           {"user_input": SECOND, "retrieved_context_ids": ["d3"], "reference_context_ids": ["d2"], "response": "x"}),
     "ids = 'reference_context_ids'"),
    ("LlamaIndex embedding pairs", "pairs.json",
     {"queries": {"a": FIRST, "b": SECOND}, "corpus": PASSAGES, "relevant_docs": {"a": ["d1"], "b": ["d2"]},
      "mode": "text"}, "LlamaIndex embedding data set: question = 'queries', ids = 'relevant_docs', its own corpus"),
    ("LlamaIndex labelled RAG data set", "rag_dataset.json",
     {"examples": [{"query": text, "query_by": {"model_name": "m", "type": "ai"}, "reference_answer": "x",
                    "reference_contexts": [PASSAGES[name]], "reference_answer_by": None}
                   for text, name in ((FIRST, "d1"), (SECOND, "d2"))]}, "LlamaIndex labelled RAG data set"),
    ("LangSmith export", "dataset.jsonl",
     lines({"id": "e1", "inputs": {"question": FIRST}, "outputs": {"answer": "nine", "documents": [
         {"page_content": PASSAGES["d1"], "metadata": {"source": "x"}}]}},
           {"id": "e2", "inputs": {"question": SECOND}, "outputs": {"answer": "yes", "documents": [
               {"page_content": PASSAGES["d2"], "metadata": {"id": "d2"}}]}}),
     "LangSmith examples, JSON lines: question = 'question', texts = 'documents'"),
    ("LangSmith chat in a list", "dataset.json",
     [{"inputs": {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"},
                               {"role": "user", "content": text}]}, "outputs": {"doc_ids": [name]}}
      for text, name in ((FIRST, "d1"), (SECOND, "d2"))], "question = 'messages', ids = 'doc_ids'"),
]


@pytest.mark.parametrize(("name", "content", "said"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_files_are_recognised_by_looking(tmp_path: Path, corpus: Path, name: str, content: Any, said: str) -> None:
    labelled = load_set(written(tmp_path, name, content), corpus=corpus)
    assert gold(labelled) == BY_ID
    (mapping,) = labelled.mapping
    assert said in mapping
    assert labelled.corpus is not None
    assert len(labelled.corpus.chunks) == 3


def test_what_the_reader_passed_over_is_noted(tmp_path: Path) -> None:
    content = (b"\xef\xbb\xbfquestion,doc_id\r\n\r\n,d9\r\nwhere is the pier,d1\r\n"
               b"where is the pier,d1\r\nwho sells tickets,\r\n")
    labelled = load_set(written(tmp_path, "set.csv", content))
    notes = {note.kind: (note.count, note.where.rpartition(", ")[2]) for note in labelled.notes}
    assert notes == {"bom": (1, "line 1"), "blank_lines": (1, "line 2"), "empty_question": (1, "line 3"),
                     "repeated_judgment": (1, "line 5"), "question_without_gold": (1, "line 6")}


def test_ids_stay_opaque_and_lists_in_one_cell_are_split(tmp_path: Path) -> None:
    labelled = load_set(written(tmp_path, "set.csv", "qid,question,gold_ids\n007,where is it,07|7\n7,who is it,7\n"))
    pairs = {(row["question_id"], row["span_id"]) for row in labelled.gold.to_pylist()}
    assert pairs == {("007", "07"), ("007", "7"), ("7", "7")}
    assert labelled.mapping[0].endswith("question id = 'qid', ids separated by '|'")


def test_questions_without_an_id_get_ours_and_conversations_keep_their_turns(tmp_path: Path) -> None:
    rows = lines({"messages": [{"type": "human", "content": "a"}, {"type": "ai", "content": "b"},
                               {"type": "human", "content": "c"}], "gold_ids": ["d1"]})
    labelled = load_set(written(tmp_path, "set.jsonl", rows))
    assert labelled.questions is not None
    (row,) = labelled.questions.to_pylist()
    assert row["question_id"] == question_id("c", [("user", "a"), ("assistant", "b")])
    assert [turn["text"] for turn in row["context"]] == ["a", "b"]


def test_graded_rows_need_a_threshold_and_negatives_stay_judged(tmp_path: Path) -> None:
    path = written(tmp_path, "set.csv", "question,doc_id,relevance\nwhere is it,d1,2\nwhere is it,d2,1\n")
    with pytest.raises(DataError, match="--relevant-from"):
        load_set(path)
    labelled = load_set(path, relevant_from=2)
    assert labelled.judgments.column("relevant").to_pylist() == [True, False]
    assert labelled.judgments.column("grade").to_pylist() == [2, 1]


def test_gold_that_is_nowhere_does_not_resolve_and_changed_text_is_told(tmp_path: Path, corpus: Path) -> None:
    path = written(tmp_path, "set.jsonl", lines(
        {"question": FIRST, "gold_text": "The ferry no longer runs."},
        {"question": SECOND, "gold_ids": ["d2"], "gold_text": "Dogs travel free."}))
    labelled = load_set(path, corpus=corpus)
    spans = labelled.gold.column("span_id").to_pylist()
    assert spans[0].startswith("text:")
    assert spans[1] == "d2"
    assert labelled.locate is not None
    assert labelled.locate(question_id(FIRST), spans[0]) == f"{path}, line 1"
    assert labelled.changed == ((question_id(SECOND), "d2"),)


ERRORS: list[tuple[str, str, str]] = [
    ("set.jsonl", lines({"user_input": "a", "retrieved_contexts": ["x"], "response": "y"}),
     "no column names the gold .*columns found: user_input, retrieved_contexts, response.*retrieved contexts are no"),
    ("set.jsonl", lines({"question": "a", "answer": "y", "contexts": ["x"], "ground_truth": "z"}),
     "no column names the gold"),
    ("set.jsonl", lines({"text": "a", "gold_ids": ["x"]}), "no column holds the question; columns found: text"),
    ("set.jsonl", lines({"question": "a", "gold_ids": ["x"]}) + "{broken\n", "line 2: not JSON"),
    ("set.csv", 'question,doc_id\nwhere is it,d1,extra\n', "line 2: 3 fields where line 1 has 2"),
    ("set.csv", 'question,doc_id\n"where is it,d1\n', "line 2: not CSV"),
    ("set.csv", "a,b\nc,d\n", "no header, and the columns do not tell"),
    ("set.csv", "qid,question,doc_id\n1,who is it there,d1\n1,what is it then,d2\n",
     "line 3: question id '1' stands for 'who is it there' and"),
    ("set.csv", "question,doc_id,relevance\nwho is it there,d1,1\nwho is it there,d1,0\n",
     "line 3: grade 0 .* line 2 says 1"),
    ("set.csv", "question,doc_id,relevance\nwho is it there,d1,0.5\n", "line 2: grade '0.5' is not a whole number"),
    ("set.json", json.dumps({"rows": []}, indent=1), "a JSON object with rows; known are LlamaIndex"),
]


@pytest.mark.parametrize(("name", "content", "says"), ERRORS)
def test_errors_name_the_place_and_what_is_allowed(tmp_path: Path, name: str, content: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        load_set(written(tmp_path, name, content))


def test_examples_carry_their_questions(tmp_path: Path) -> None:
    path = written(tmp_path, "set.csv", f"{FIRST},d1\n")
    with pytest.raises(UsageError, match="carries its questions"):
        load_set(path, questions=path)


@pytest.mark.parametrize("content", ["q1 0 d1 1\n", 'q1\t0\td1\t"1"\n', "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
                                     "q1\td1\t1\n", "  q1   0  d1   1\n"])
@pytest.mark.parametrize("name", ["qrels.txt", "qrels.tsv", "qrels.csv"])
def test_qrels_stay_qrels_whatever_they_are_called(tmp_path: Path, content: str, name: str) -> None:
    labelled = load_set(written(tmp_path, name, content))
    assert labelled.kind == "trec"
    assert labelled.gold.select(["question_id", "span_id"]).to_pylist() == [{"question_id": "q1", "span_id": "d1"}]
    assert "qrels" in labelled.mapping[0]


def test_locator_finds_equal_held_and_spanning_texts() -> None:
    passages = {"a": "One two three four five six seven.", "b": "Eight nine ten eleven twelve thirteen fourteen.",
                "c": "one two three", "d": "One two three four five six seven."}
    locator = Locator(passages)
    assert locator.find("ONE two  three four five six seven.").ids == ("a",)
    assert locator.find("One two three four five six seven.").places == 2  # a and d
    assert locator.find("nine ten eleven").ids == ("b",)
    assert locator.find("One two three four five six seven. Eight nine ten eleven twelve thirteen fourteen.").ids == (
        "a", "d", "b")
    assert locator.find("five six seven. Eight").ids == ()  # never across two passages
    assert locator.find(" ").ids == ()


def test_the_audit_prints_what_it_took_for_what(goldset: Goldset, tmp_path: Path, corpus: Path) -> None:
    path = written(tmp_path, "set.csv", f"{FIRST},d1\n{SECOND},d2\n")
    done = goldset("audit", path, "--corpus", corpus, "--json")
    assert f"read {path}: questions with gold, CSV without a header: question = 'column 1'" in done.err
    assert json.loads(done.out)["schema"] == "goldset.audit/1"


@pytest.mark.parametrize("between", ["\n", " ", ": ", " - ", ". "])
def test_a_gold_text_may_begin_with_the_title_of_its_passage(between: str) -> None:
    # The title is longer than the text, so that text alone covers less than the 0.8 that a made-up text needs.
    title = "Fares for travellers with dogs, cats and other small animals in baskets"
    text = "They pay half a ticket at most."
    locator = Locator({"d1": "Something else stands here altogether.", "d2": text}, {"d2": title})
    assert locator.find(f"{title}{between}{text}").ids == ("d2",)
    assert locator.find(text).ids == ("d2",)
    assert locator.find(f"{title}{between}Nothing of the kind is known here to anybody.").ids == ()


def test_the_index_that_pandas_writes_is_no_column(tmp_path: Path, corpus: Path) -> None:
    # DataFrame.to_csv() without index=False: an unnamed first column that numbers the rows.
    path = written(tmp_path, "ragas.csv", ",user_input,reference_contexts,reference,synthesizer_name\n"
                   f"0,{FIRST},\"['{PASSAGES['d1']}']\",at nine,single_hop\n"
                   f"1,{SECOND},\"['{PASSAGES['d2']}']\",yes,single_hop\n")
    labelled = load_set(path, corpus=corpus)
    assert "Ragas data set, CSV with a header: question = 'user_input', texts = 'reference_contexts'" in \
        labelled.mapping[0]
    assert labelled.gold.select(["question_id", "span_id"]).to_pylist() == [
        {"question_id": question_id(text, ()), "span_id": span} for text, span in ((FIRST, "d1"), (SECOND, "d2"))]
