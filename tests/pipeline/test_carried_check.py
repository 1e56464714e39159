"""A second rebuild reads a share of what it carries again: the whole way to the version, and to the third rebuild.

Of the golden project people decided thirteen pairs. GATE P1 was adjudicated; of the other twelve half are a yes (WINTER
F1, BICYCLE B1, REFUND T2, GATE P2, LOST PROPERTY, MUZZLE DOGS), half a no. The new question brings two pairs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goldset.config import Config, load_config
from goldset.pipeline import Artifacts, Published, open_review, publish, rebuild, replay_review, store_of
from goldset.schemas import CHECK
from goldset.text import question_id
from tests.cli.conftest import Goldset, goldset
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour
from tests.pipeline.test_contract import add_question

__all__ = ["goldset"]

MINOR = "version: 1.1\n\nRelevant is what answers well.\n"


def again(path: Path, share: float = 1.0) -> tuple[Config, Artifacts, dict[str, Any]]:
    """Rebuild with a share of the carried answers read again."""
    text = path.read_text()
    path.write_text(text.replace("carried_share = 0.0", f"carried_share = {share}"))
    config = load_config(path)
    artifacts = rebuild(config, quiet=True)
    return config, artifacts, open_review(config, artifacts)


def standing(version: Published) -> dict[tuple[str, str], tuple[Any, ...]]:
    """What a version says of each pair, with its chance, evidence and weight."""
    found = version.outcome.labelled
    gold = {(row["question_id"], row["span_id"]): (row["evidence"], row["weight"]) for row in found.gold.to_pylist()}
    return {pair: (row["relevant"], row["inclusion_prob"], row["stratum"], gold.get(pair))
            for row in found.judgments.to_pylist() if (pair := (row["question_id"], row["span_id"]))}


def test_the_share_is_read_again_and_nothing_else(copy: Path) -> None:
    new = add_question(copy)
    config, artifacts, progress = again(copy, 0.3)
    # ceil(0.3 * 6) = 2 of each kind; the four others are the two new pairs, each read twice.
    assert progress["open"] == 2 * 2 + 4
    assert progress["reread"]["carried"] == {"yes": 6, "no": 6}
    rows = [row for row in store_of(config, artifacts).queue().to_pylist() if row["reason"] == CHECK]
    assert sorted(row["stratum"] for row in rows) == ["carried_no"] * 2 + ["carried_yes"] * 2
    assert {row["stratum_size"] for row in rows} == {6}
    assert (question_id(golden.GATE), golden.P1) not in {(row["question_id"], row["span_id"]) for row in rows}
    assert new not in {row["question_id"] for row in rows}


def test_weights_evidence_and_hash_do_not_change(harbour: Harbour, copy: Path) -> None:
    # Everything is read again and answered as before: the version is the same, the find of the sample keeps 11/5.
    (copy.parent / "relevance.md").write_text(MINOR)
    config, artifacts, _ = again(copy)
    replay_review(config)
    assert {row["assessor"] for row in store_of(config, artifacts).labels().to_pylist()
            if row["origin"] != "carried"} == {"cleo"}  # who had read none of these pairs
    published = publish(config)
    assert not published.new
    assert standing(published) == standing(harbour.published)
    assert standing(published)[question_id(golden.MUZZLE), golden.DOGS][1] == pytest.approx(5 / 11)
    found = store_of(config, artifacts)
    assert len(found.queue()) == 27 + 12


def test_status_manifest_and_report_tell_the_agreement(copy: Path, goldset: Goldset) -> None:
    add_question(copy)
    found = {"question": "parking costs", "evidence": golden.ranges([("parking", 0)])}
    golden.jsonl(copy.parent / "labels.jsonl",
                 [*golden.labels(), *({**found, "assessor": name} for name in ("ada", "ben"))])
    config, _, _ = again(copy, 0.3)
    before = goldset("review", "status", "-c", copy).out
    assert "4 of 12 carried answers (6 yes, 6 no) are read again, blind; 4 open" in before
    replay_review(config)
    # 4 of 4: Wilson's lower end is n/(n + z²) = 4/7.841 = 0.510.
    words = "the answers agree on 4 of 4 (95 % 51.0 to 100.0 %); positive agreement 1.000"
    assert words in goldset("review", "status", "-c", copy).out
    published = publish(config)
    assert words in published.text()
    assert published.manifest["carried"] == published.summary()["carried"]
    assert published.manifest["carried"]["agreement_interval"] == pytest.approx([0.510109, 1.0], abs=1e-5)
    assert words in (published.path / "report.html").read_text(encoding="utf-8").replace("\n", " ")


def test_a_difference_is_adjudicated_wins_and_is_never_asked_again(copy: Path) -> None:
    # cleo, who reads again, now says no to the bicycle's price; dan, asked at last, agrees with her.
    (copy.parent / "relevance.md").write_text(MINOR)
    other = [{**row, "evidence": []} if row["question"] == golden.BICYCLE and row["assessor"] == "cleo" else row
             for row in golden.labels()]
    dan = {"question": golden.BICYCLE, "assessor": "dan", "evidence": []}
    golden.jsonl(copy.parent / "labels.jsonl", [*other, dan])
    config, artifacts, _ = again(copy)
    progress = replay_review(config)
    pair = (question_id(golden.BICYCLE), golden.B1)
    assert (progress["open"], progress["conflicts"]) == (0, 0)
    assert progress["reread"]["n"] == 12
    assert progress["reread"]["agreement"] == pytest.approx(11 / 12)
    # Of six yes five are confirmed: 2a / (2a + b + c) = 10 / 11.
    assert progress["reread"]["positive_agreement"] == pytest.approx(10 / 11)
    second = publish(config)
    assert standing(second)[pair][0] is False
    assert pair not in {(row["question_id"], row["span_id"]) for row in second.outcome.labelled.gold.to_pylist()}

    # The third rebuild carries it all: the answer, its check and its adjudication.
    (copy.parent / "relevance.md").write_text(MINOR.replace("1.1", "1.2"))
    config, artifacts, progress = again(copy)
    assert progress["open"] == 0
    assert {row["origin"] for row in store_of(config, artifacts).labels().to_pylist()} == {"carried"}
    assert progress["reread"]["agreement"] == pytest.approx(11 / 12)
    third = publish(config)
    assert not third.new
    assert standing(third) == standing(second)
    # Nor does the overruled answer come back where neither second labels nor new checks are wanted.
    (copy.parent / "relevance.md").write_text(MINOR.replace("1.1", "1.3"))
    copy.write_text(copy.read_text().replace("second_share = 1.0", "second_share = 0.0")
                    .replace("carried_share = 1.0", "carried_share = 0.0"))
    config, _, _ = again(copy, 0.0)
    assert standing(publish(config))[pair][0] is False


def test_an_answer_that_follows_on_other_spans_is_read_again(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GATE P1 was adjudicated on the old spans. Its answer on the new ones is carried; what a check says against it is
    # settled by people, not by the old adjudication.
    from tests.pipeline.test_rechunked import part, rechunk, threes

    monkeypatch.setattr(golden, "BROWSED", {})
    rechunk(copy, threes)
    copy.write_text(copy.read_text().replace("second_share = 1.0", "second_share = 0.0"))
    config, artifacts, progress = again(copy)
    store = store_of(config, artifacts)
    pair = (question_id(golden.GATE), part("pier", 0, 2))
    item = next(row for row in store.queue().to_pylist()
                if row["reason"] == CHECK and (row["question_id"], row["span_id"]) == pair)
    said = next(row for row in store.labels().to_pylist() if (row["question_id"], row["span_id"]) == pair)
    assert (said["assessor"], said["relevant"], "on other spans" in said["note"]) == ("cleo", True, True)
    store.append_labels([{**said, "label_id": "new", "item_id": item["item_id"], "assessor": "dan", "relevant": False,
                          "evidence": [], "evidence_source": None, "origin": "page", "note": None}])
    progress = open_review(config, artifacts)
    assert progress["conflicts"] == 1
    assert progress["reasons"]["adjudication"] == {"answered": 0, "open": 1}
