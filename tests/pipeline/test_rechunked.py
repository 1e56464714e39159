"""A rebuild on another chunking: what people said of the old spans answers the new ones, and the rest is asked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goldset.config import load_config
from goldset.pipeline import Artifacts, open_review, publish, rebuild, replay_review, store_of
from goldset.review import ReviewStore, resolve
from goldset.text import question_id
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour
from tests.pipeline.golden import BICYCLE, GATE, HELICOPTER, LOST, MUZZLE, REFUND, WINTER

Pair = tuple[str, str]
TEXTS = {question_id(text): text for text in golden.ASKED}


def part(doc_id: str, first: int, last: int) -> str:
    """The span of some sentences of a document."""
    start, end = golden.place(doc_id, first, last)
    return f"{doc_id}#{start}-{end}"


def rechunk(path: Path, cuts: Callable[[int], list[tuple[int, int]]]) -> None:
    """Cut every document anew, disjointly: number of sentences -> first and last of each chunk."""
    rows: list[dict[str, Any]] = []
    now: dict[str, list[tuple[str, int, int]]] = {}
    for name, sentences in golden.DOCUMENTS.items():
        for first, last in cuts(len(sentences)):
            start, end = golden.place(name, first, last)
            now.setdefault(name, []).append((f"{name}/{first}", first, last))
            rows.append({"chunk_id": f"{name}/{first}", "doc_id": name, "text": " ".join(sentences[first : last + 1]),
                         "start": start, "end": end})
    golden.jsonl(path.parent / "chunks.jsonl", rows)

    def holders(old: str) -> list[str]:
        doc_id, first, last = golden.CHUNKS[old]
        return [chunk for chunk, low, high in now[doc_id] if low <= last and high >= first]

    lists = {text: list(dict.fromkeys(chunk for old in ids for chunk in holders(old)))
             for text, ids in golden.PRODUCTION.items()}
    (path.parent / "production.run").write_text("\n".join(golden.run_lines(lists)) + "\n", encoding="utf-8")


def threes(count: int) -> list[tuple[int, int]]:
    return [(first, min(first + 2, count - 1)) for first in range(0, count, 3)]


@pytest.fixture
def moved(copy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The finished project, cut into threes; the system ``browse`` returns nothing now."""
    monkeypatch.setattr(golden, "BROWSED", {})
    rechunk(copy, threes)
    return copy


def open_pairs(path: Path) -> tuple[Artifacts, dict[str, Any], set[Pair]]:
    config = load_config(path)
    artifacts = rebuild(config, quiet=True)
    progress = open_review(config, artifacts)
    store = store_of(config, artifacts)
    answered = set(store.labels().column("item_id").to_pylist())
    return artifacts, progress, {(TEXTS[row["question_id"]], row["span_id"]) for row in store.queue().to_pylist()
                                 if row["item_id"] not in answered}


def decided(path: Path, artifacts: Artifacts) -> dict[Pair, tuple[bool, list[tuple[int, int]]]]:
    store = store_of(load_config(path), artifacts)
    return {(TEXTS[row["question_id"]], row["span_id"]): (
        row["relevant"], [(piece["start"], piece["end"]) for piece in row["evidence"]])
        for row in resolve(queue=store.queue(), labels=store.labels()).to_pylist() if row["status"] == "decided"}


def truth(text: str, span: str) -> list[tuple[int, int]]:
    """Sentences of a span that the readers, adjudicated, point at."""
    doc_id, _, ends = span.partition("#")
    start, end = map(int, ends.split("-"))
    places = [golden.place(doc, number) for doc, number in [*golden.FOUND[text], *golden.BEN_TOO.get(text, [])]
              if doc == doc_id]
    return [place for place in places if start <= place[0] and place[1] <= end]


# Long documents become the sentences 0-2, 3-5 and 6-7; they were read as 0-3 and 4-7. What follows from that, pair by
# pair of the new pool (bm25 and production): "same" text, "yes" by evidence, "no" by refused spans, else "ask".
EXPECTED: dict[Pair, str] = {
    (WINTER, part("ferry", 0, 2)): "ask",      # of a span that answers, without its evidence
    (WINTER, part("ferry", 3, 5)): "yes",      # holds sentence 3
    (WINTER, part("ferry", 6, 7)): "no",       # inside 4-7, refused
    (WINTER, golden.WEATHER): "ask",           # rejected by the judge and not in the sample
    (BICYCLE, part("bikes", 0, 2)): "yes",     # holds sentences 1 and, after ben, 2
    (BICYCLE, part("bikes", 3, 5)): "ask",
    (BICYCLE, golden.PARKING): "ask",
    (REFUND, part("tickets", 0, 2)): "no",     # inside 0-3, refused
    (REFUND, part("tickets", 3, 5)): "yes",    # holds 4 and 5
    (REFUND, part("tickets", 6, 7)): "ask",
    (REFUND, golden.WEATHER): "same",          # read in the sample, no
    (GATE, part("pier", 0, 2)): "yes",         # ada yes, ben no, cleo yes
    (GATE, part("pier", 3, 5)): "ask",
    (GATE, part("pier", 6, 7)): "yes",
    (GATE, part("ferry", 3, 5)): "ask",
    (GATE, part("ferry", 6, 7)): "ask",
    (LOST, golden.PROPERTY): "same",
    (LOST, golden.DOGS): "ask",
    (HELICOPTER, golden.WEATHER): "same",
    (HELICOPTER, part("pier", 3, 5)): "ask",   # sentence 3 was never read for this question
    (HELICOPTER, part("pier", 6, 7)): "no",
    (MUZZLE, golden.PARKING): "ask",
    (MUZZLE, golden.WEATHER): "ask",
    (MUZZLE, golden.DOGS): "same",             # not in the pool any more: the yes comes along without an item
}


def test_people_are_asked_only_what_does_not_follow(harbour: Harbour, moved: Path) -> None:
    artifacts, progress, waiting = open_pairs(moved)
    pooled = {(TEXTS[row["question_id"]], row["span_id"]) for row in artifacts.table("candidates").to_pylist()}
    assert pooled | {(MUZZLE, golden.DOGS)} == set(EXPECTED)
    found = decided(moved, artifacts)
    # A rejection that the sample leaves out is asked of nobody; all others are.
    queued = {(TEXTS[row["question_id"]], row["span_id"]) for row in
              store_of(load_config(moved), artifacts).queue().to_pylist()}
    assert waiting == {pair for pair, how in EXPECTED.items() if how == "ask"} & queued
    assert set(found) == {pair for pair, how in EXPECTED.items() if how != "ask"}
    for (text, span), (relevant, evidence) in found.items():
        assert relevant is bool(truth(text, span)), (text, span)
        assert evidence == truth(text, span)
        assert EXPECTED[text, span] in ("same", "yes" if relevant else "no")
    # Less than a first rebuild of the same corpus asks.
    fresh = golden.copied(moved, moved.parent.parent / "fresh")
    shutil.rmtree(fresh.parent / "workspace")
    assert open_pairs(fresh)[1]["open"] == progress["items"] - 1  # the adjudication needs answers that differ
    assert progress["answered"] == progress["carried"]["items"] == 23


def test_everything_is_on_record(moved: Path) -> None:
    artifacts, _, _ = open_pairs(moved)
    config = load_config(moved)
    store = store_of(config, artifacts)
    queue = {row["item_id"]: row for row in store.queue().to_pylist()}
    labels = store.labels().to_pylist()
    hashes = dict(zip(*(artifacts.table("spans").column(name).to_pylist() for name in ("span_id", "text_hash")),
                      strict=True))
    earlier = {row["label_id"]: row for row in ReviewStore(config.review_url).labels().to_pylist()}
    for row in labels:
        assert row["origin"] == "carried"
        assert row["span_text_hash"] == hashes[row["span_id"]]
        assert row["seconds"] is None
        names = row["note"].removeprefix("carried from ").split(", on other spans")[0].split(", ")
        assert set(names) <= set(earlier)
        assert row["assessor"] in {earlier[name]["assessor"] for name in names}
        assert row["time"] in {earlier[name]["time"] for name in names}
    # First and second reader stay two people, and their difference about the gate comes back with its adjudication.
    gate = {queue[row["item_id"]]["reason"]: (row["assessor"], row["relevant"]) for row in labels
            if TEXTS[row["question_id"]] == GATE and row["span_id"] == part("pier", 0, 2)}
    assert gate["adjudication"] == ("cleo", True)
    assert {gate[layer] for layer in ("no_verdict", "second")} == {("ada", True), ("ben", False)}


def test_the_version_on_the_new_spans_has_the_same_gold(harbour: Harbour, moved: Path) -> None:
    config = load_config(moved)
    artifacts = rebuild(config, quiet=True)
    open_review(config, artifacts)
    replay_review(config)
    published = publish(config)

    def evidence(version: Any) -> set[tuple[str, str, int, int]]:
        documents = dict(zip(*(version.outcome.labelled.corpus.spans.column(name).to_pylist()
                               for name in ("span_id", "doc_id")), strict=True))
        return {(row["question_id"], documents[row["span_id"]], piece["start"], piece["end"])
                for row in version.outcome.labelled.gold.to_pylist() for piece in row["evidence"]}

    assert published.path.name == "v2"
    # Six rejections under the new chunks (judged pairs that kept their spans), five drawn. REFUND/weather and MUZZLE/
    # dogs come from the old sample, and only the first is in the pool: drawn before and now, it stays in the sample.
    assert published.manifest["sampling"]["strata"] == [{"stratum": "rejection", "size": 6, "read": 5, "found": 0}]
    assert {row["weight"] for row in published.outcome.labelled.gold.to_pylist()} == {1.0}
    assert evidence(published) == evidence(harbour.published)
    # Nothing is asked or carried again.
    before = len(store_of(config, artifacts).labels())
    assert not publish(config).new
    assert len(store_of(config, artifacts).labels()) == before


@pytest.mark.parametrize(("version", "by_rules"), [("1.1", True), ("2.0", False)])
def test_a_major_change_of_the_rubric_carries_nothing(moved: Path, version: str, by_rules: bool) -> None:
    (moved.parent / "relevance.md").write_text(f"version: {version}\n\nRelevant is what answers well.\n")
    artifacts, progress, _ = open_pairs(moved)
    notes = store_of(load_config(moved), artifacts).labels().column("note").to_pylist()
    assert any("on other spans" in note for note in notes) is by_rules
    assert (progress["carried"]["items"] > 0) is by_rules


def test_without_the_old_spans_only_the_same_text_carries(moved: Path) -> None:
    config = load_config(moved)
    shutil.rmtree(config.workspace / "artifacts/spans")
    shutil.rmtree(config.workspace / "artifacts/corpus")
    artifacts, progress, _ = open_pairs(moved)
    found = decided(moved, artifacts)
    assert set(found) == {pair for pair, how in EXPECTED.items() if how == "same"}
    assert progress["open"] > 0


def test_a_yes_whose_evidence_is_divided_is_asked_again(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The refund takes sentences 4 and 5; the new chunks end after 4. The judge rejects everything, and the sample is
    # one pair: without a check both halves would go unread and the gold be gone.
    monkeypatch.setattr(golden, "BROWSED", {})
    rechunk(copy, lambda count: [(0, 4), (5, count - 1)] if count > 4 else [(0, count - 1)])
    copy.write_text(copy.read_text().replace("rejection_min = 5", "rejection_min = 1"))
    artifacts = rebuild(load_config(copy), quiet=True, until="pool")
    golden.jsonl(copy.parent / "verdicts.jsonl", [
        {"question_id": row["question_id"], "span_id": row["span_id"], "relevant": False}
        for row in artifacts.table("candidates").to_pylist()])
    artifacts, progress, waiting = open_pairs(copy)
    halves = {(REFUND, part("tickets", 0, 4)), (REFUND, part("tickets", 5, 7))}
    assert halves <= waiting
    store = store_of(load_config(copy), artifacts)
    assert {(TEXTS[row["question_id"]], row["span_id"]) for row in store.queue().to_pylist()
            if row["reason"] == "divided"} == halves
    assert progress["reasons"]["divided"] == {"answered": 0, "open": 2}
    replay_review(load_config(copy))
    published = publish(load_config(copy))
    gold = {row["span_id"]: row["weight"] for row in published.outcome.labelled.gold.to_pylist()
            if TEXTS[row["question_id"]] == REFUND}
    assert gold == {span: 1.0 for _, span in halves}


@pytest.mark.parametrize(("now", "lost"), [("In autumn the last boat retires at four o'clock.", 0),
                                           ("Gulls nest under the roof of an old boat in May.", 1)])
def test_a_yes_whose_text_changed_is_asked_again_and_one_that_is_gone_is_told(moved: Path, now: str, lost: int) -> None:
    before = golden.LONG["ferry"][3]
    assert len(now) == len(before)
    for name in ("documents.jsonl", "chunks.jsonl"):
        file = moved.parent / name
        file.write_text(file.read_text().replace(before, now))
    _, progress, waiting = open_pairs(moved)
    assert progress["lost"] == lost
    assert (WINTER, part("ferry", 3, 5)) in waiting
    assert (REFUND, part("tickets", 3, 5)) not in waiting


def test_a_new_difference_goes_to_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # At first one person read each pair; now a second one reads too, and says no where the first one's yes was carried.
    # What the first one decided must not settle the difference.
    monkeypatch.setattr(golden, "BROWSED", {})
    path = golden.write(tmp_path / "harbour")
    path.write_text(path.read_text().replace("second_share = 1.0", "second_share = 0.0"))
    config = load_config(path)
    open_review(config, rebuild(config, quiet=True))
    replay_review(config)
    rechunk(path, threes)
    path.write_text(path.read_text().replace("second_share = 0.0", "second_share = 1.0"))
    artifacts, progress, waiting = open_pairs(path)
    pair = (WINTER, part("ferry", 3, 5))
    assert pair in waiting
    store = store_of(load_config(path), artifacts)
    items = {row["reason"]: row["item_id"] for row in store.queue().to_pylist()
             if (TEXTS[row["question_id"]], row["span_id"]) == pair}
    said = next(row for row in store.labels().to_pylist() if row["item_id"] == items["no_verdict"])
    assert (said["assessor"], said["relevant"]) == ("ada", True)
    store.append_labels([{**said, "label_id": "new", "item_id": items["second"], "assessor": "dan", "relevant": False,
                          "evidence": [], "evidence_source": None, "origin": "page", "note": None}])
    _, progress, waiting = open_pairs(path)
    assert progress["reasons"]["adjudication"] == {"answered": 0, "open": 1}
    assert progress["conflicts"] == 1
    assert pair in waiting
