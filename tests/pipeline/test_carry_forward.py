"""The second rebuild: what people said of the same question and the same text is not asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goldset.config import Config, load_config
from goldset.pipeline import Artifacts, open_review, publish, rebuild, replay_review, store_of
from goldset.text import question_id
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour
from tests.pipeline.test_contract import add_question

ITEMS = 27  # of the first rebuild, its adjudication included
AT_ONCE = 26  # of them in its first wave, and the second labels of every yes


def _second(path: Path) -> tuple[Config, Artifacts, dict[str, Any]]:
    config = load_config(path)
    artifacts = rebuild(config, quiet=True)
    return config, artifacts, open_review(config, artifacts)


def _open(config: Config, artifacts: Artifacts) -> list[tuple[str, str]]:
    store = store_of(config, artifacts)
    answered = set(store.labels().column("item_id").to_pylist())
    return sorted({(row["question_id"], row["span_id"]) for row in store.queue().to_pylist()
                   if row["item_id"] not in answered})


def test_new_log_lines_ask_about_new_pairs_only(harbour: Harbour, copy: Path) -> None:
    new = add_question(copy)
    config, artifacts, progress = _second(copy)
    # 2 pairs of the new question, each read twice; all that was answered is carried.
    assert [progress[name] for name in ("items", "answered", "open", "conflicts")] == [ITEMS + 4, ITEMS, 4, 0]
    assert _open(config, artifacts) == sorted([(new, golden.B1), (new, golden.PARKING)])
    labels = store_of(config, artifacts).labels().to_pylist()
    assert {row["origin"] for row in labels} == {"carried"}
    assert {row["note"].startswith("carried from r") for row in labels} == {True}
    # Two different people stand behind the two items of a pair, as before, and a third where they differed.
    people: dict[tuple[str, str], list[str]] = {}
    for row in labels:
        people.setdefault((row["question_id"], row["span_id"]), []).append(row["assessor"])
    assert all(len(set(names)) == len(names) for names in people.values())
    assert sorted({len(names) for names in people.values()}) == [2, 3]


def test_the_next_version_keeps_the_gold_and_adds_the_new(harbour: Harbour, copy: Path) -> None:
    add_question(copy)
    found = {"question": "parking costs", "evidence": golden.ranges([("parking", 0)])}
    more = [{**found, "assessor": name} for name in ("ada", "ben")]
    golden.jsonl(copy.parent / "labels.jsonl", [*golden.labels(), *more])
    config, artifacts, _ = _second(copy)
    replay_review(config)
    asked = [row for row in store_of(config, artifacts).labels().to_pylist() if row["origin"] != "carried"]
    assert {row["question_id"] for row in asked} == {question_id("parking costs")}
    assert len(asked) == 4
    published = publish(config)
    assert published.path.name == "v2"

    def gold(version: Any) -> dict[tuple[str, str], Any]:
        return {(row["question_id"], row["span_id"]): (row["evidence"], row["weight"])
                for row in version.outcome.labelled.gold.to_pylist()}

    before, after = gold(harbour.published), gold(published)
    assert set(after) == set(before) | {(question_id("parking costs"), golden.PARKING)}
    assert all(after[pair] == before[pair] for pair in before)


def test_an_unchanged_rebuild_carries_nothing(harbour: Harbour, copy: Path) -> None:
    config, artifacts, progress = _second(copy)
    assert (progress["items"], progress["open"]) == (ITEMS, 0)
    assert {row["origin"] for row in store_of(config, artifacts).labels().to_pylist()} == {"import"}


@pytest.mark.parametrize(("version", "items", "waiting"), [("1.1", ITEMS, 0), ("2.0", AT_ONCE, AT_ONCE)])
def test_a_minor_rubric_change_carries_and_a_major_one_does_not(copy: Path, version: str, items: int,
                                                                waiting: int) -> None:
    (copy.parent / "relevance.md").write_text(f"version: {version}\n\nRelevant is what answers well.\n")
    config, artifacts, progress = _second(copy)
    assert (progress["items"], progress["open"]) == (items, waiting)
    # The first rebuild's labels stay where they are, whatever happens after.
    assert len(store_of(config, artifacts).labels()) == items - waiting


def test_a_minor_rubric_change_gives_the_same_version(harbour: Harbour, copy: Path) -> None:
    (copy.parent / "relevance.md").write_text("version: 1.1\n\nRelevant is what answers well.\n")
    config, _, _ = _second(copy)
    published = publish(config)
    assert published.manifest["content_hash"] == harbour.published.manifest["content_hash"]
    assert not published.new


def test_a_passage_found_by_searching_comes_along(harbour: Harbour, copy: Path) -> None:
    config, artifacts, _ = _second(copy)
    store = store_of(config, artifacts)
    labels = store.labels().to_pylist()
    read = {(row["question_id"], row["span_id"]) for row in store.queue().to_pylist()}
    question = labels[0]["question_id"]
    span = next(row for row in artifacts.table("spans").to_pylist() if (question, row["span_id"]) not in read)
    store.append_labels([{**labels[0], "label_id": "found", "item_id": None, "span_id": span["span_id"],
                          "span_text_hash": span["text_hash"], "origin": "page", "relevant": True, "reason": None,
                          "evidence": [], "evidence_source": "whole_span"}])
    add_question(copy)
    config, artifacts, _ = _second(copy)
    carried = [row for row in store_of(config, artifacts).labels().to_pylist() if row["note"] == "carried from found"]
    assert [(row["span_id"], row["item_id"], row["origin"]) for row in carried] == [(span["span_id"], None, "page")]


def test_answers_under_a_new_major_rubric_carry_on_from_there(copy: Path) -> None:
    (copy.parent / "relevance.md").write_text("version: 2.0\n\nRelevant is what answers well.\n")
    config, _, _ = _second(copy)
    assert replay_review(config)["open"] == 0
    new = add_question(copy)
    config, artifacts, _ = _second(copy)
    assert {pair[0] for pair in _open(config, artifacts)} == {new}


def test_a_changed_text_is_asked_again(copy: Path) -> None:
    # The same length, so the span keeps its id; the sentence that answers says something else now.
    for name in ("documents.jsonl", "chunks.jsonl"):
        path = copy.parent / name
        path.write_text(path.read_text().replace("A bicycle costs three crowns", "A bicycle costs seven crowns"))
    config, artifacts, progress = _second(copy)
    assert _open(config, artifacts) == [(question_id(golden.BICYCLE), golden.B1)]
    assert progress["open"] == 2  # its first and its second item


def test_a_span_with_another_end_keeps_its_yes_and_a_refusal_is_asked_again(harbour: Harbour, copy: Path) -> None:
    # The last sentence of pier grows by a word: the first half keeps id and text, the second half is another span.
    old, new = golden.DOCUMENTS["pier"][7], "Keepers lock the turnstile when waves come over us."
    end = golden.place("pier", 7)[1]
    for name in ("documents.jsonl", "chunks.jsonl"):
        file = copy.parent / name
        lines = file.read_text().replace(old, new).splitlines(keepends=True)
        file.write_text("".join(line.replace(f'"end": {end}}}', f'"end": {end + 3}}}') if '"pier-b"' in line else line
                                for line in lines))
    config, artifacts, _ = _second(copy)
    assert artifacts.report("corpus")["offsets"] == {"verified": 14}
    asked, moved = set(_open(config, artifacts)), f"pier#{golden.place('pier', 4)[0]}-{end + 3}"
    # The sentence that answers is the same, at the same place; what was refused may answer with the new word.
    assert (question_id(golden.HELICOPTER), moved) in asked
    assert (question_id(golden.GATE), moved) not in asked
    start, stop = golden.place("pier", 6)
    assert [row["evidence"] for row in store_of(config, artifacts).labels().to_pylist()
            if (row["question_id"], row["span_id"]) == (question_id(golden.GATE), moved)] == [
                [{"start": start, "end": stop}]] * 2  # both readers
    # The sample of the rejections may take in a pair that nobody had read; no pair that was read is asked again.
    read = {(row["question_id"], row["span_id"]) for row in harbour.published.outcome.labelled.judgments.to_pylist()}
    assert not asked & read
    assert (question_id(golden.GATE), golden.P1) in read
