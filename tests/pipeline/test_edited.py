"""Documents change between two rebuilds: what is carried, asked again and lost is what ``goldset reanchor`` says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goldset.config import load_config
from goldset.formats.sets import load_set
from goldset.gold import Anchor
from goldset.pipeline import open_review, rebuild, store_of
from goldset.pipeline.reanchor import reanchor_version
from goldset.review import resolve
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour

Texts = dict[str, str]
Range = tuple[str, int, int]  # document, start, end
PEARS = "Crème brûlée 🏳️‍🌈 is sold; שלום עולם. "


def edited(texts: Texts) -> Texts:
    """WINTER's sentence moves, REFUND's two are in a renamed document, BICYCLE's is changed, one of GATE's is gone."""
    texts["ferry"] = f"Prices and times may change without a notice. {texts['ferry']}"
    texts["fares"] = texts.pop("tickets")
    texts["bikes"] = texts["bikes"].replace("three crowns", "four crowns")
    texts["pier"] = texts["pier"].replace(f"{golden.LONG['pier'][6]} ", "")
    return texts


def written_anew(texts: Texts) -> Texts:
    """Line ends, byte order mark, curly quotes, capitals: nothing that a reader would call a change."""
    texts["ferry"] = "\ufeff" + texts["ferry"].replace(". ", ".\r\n").replace("'", "\u2019")
    texts["tickets"] = texts["tickets"].upper()
    texts["pier"] = texts["pier"].replace(" ", "\u00a0\n")
    return texts


def among_others(texts: Texts) -> Texts:
    """Marks, emoji, right to left: in front of and between what answers."""
    texts["ferry"] = PEARS + texts["ferry"]
    texts["tickets"] = texts["tickets"].replace("Refunds", PEARS + "Refunds")
    texts["pier"] = texts["pier"].replace("Anglers", PEARS + "Anglers")
    return texts


def put(path: Path, texts: Texts) -> None:
    """Documents, and halves of them as chunks; production returns all chunks of all documents."""
    golden.jsonl(path.parent / "documents.jsonl", ({"doc_id": name, "text": text} for name, text in texts.items()))
    rows: list[dict[str, Any]] = []
    for name, text in texts.items():
        middle = text.index(".", len(text) // 2) + 1 if len(text) > 150 else len(text)
        rows += [{"chunk_id": f"{name}/{part}", "doc_id": name, "text": text[slice(*place)], "start": place[0],
                  "end": place[1]} for part, place in enumerate(((0, middle), (middle, len(text))))
                 if place[0] < place[1]]
    golden.jsonl(path.parent / "chunks.jsonl", rows)
    lists = {text: [row["chunk_id"] for row in rows] for text in golden.PRODUCTION}
    (path.parent / "production.run").write_text("\n".join(golden.run_lines(lists)) + "\n", encoding="utf-8")


@pytest.mark.parametrize(("edit", "lost"), [(edited, 1), (written_anew, 0), (among_others, 0)])
def test_rebuild_and_reanchor_agree(harbour: Harbour, copy: Path, monkeypatch: pytest.MonkeyPatch,
                                    edit: Callable[[Texts], Texts], lost: int) -> None:
    monkeypatch.setattr(golden, "BROWSED", {})
    put(copy, edit({name: " ".join(sentences) for name, sentences in golden.DOCUMENTS.items()}))
    told = reanchor_version(load_set(harbour.published.path), copy.parent / "documents.jsonl")
    config = load_config(copy)
    artifacts = rebuild(config, quiet=True)
    progress = open_review(config, artifacts)
    store, spans = store_of(config, artifacts), {row["span_id"]: row for row in artifacts.table("spans").to_pylist()}
    answered = set(store.labels().column("item_id").to_pylist())
    waiting = {(row["question_id"], row["span_id"]) for row in store.queue().to_pylist()
               if row["item_id"] not in answered}
    carried: dict[str, set[Range]] = {}
    for row in resolve(queue=store.queue(), labels=store.labels()).to_pylist():
        if row["relevant"]:
            doc_id = spans[row["span_id"]]["doc_id"]
            carried.setdefault(row["question_id"], set()).update(
                (doc_id, part["start"], part["end"]) for part in row["evidence"])
    assert progress["lost"] == len(told.stale) == lost
    gold: dict[tuple[str, str], list[Anchor]] = {}
    for anchor in told.anchors:
        gold.setdefault((anchor.question_id, anchor.span_id), []).append(anchor)
    seen = set()
    for (question, span_id), anchors in gold.items():
        if (question, span_id) in told.stale:
            continue
        places = {(anchor.new_doc_id or "", anchor.new_start or 0, anchor.new_end or 0) for anchor in anchors}
        whole = any(all(holds(span, place) for place in places) for span in spans.values())
        if whole and all(anchor.similarity == 1 for anchor in anchors):
            assert places <= carried[question]
            seen.add("carried")
        else:  # altered, or divided by the new chunks
            assert not places & carried.get(question, set())
            assert all(any(asked == question and touches(spans[span], place) for asked, span in waiting)
                       for place in places)
            seen.add("asked")
    assert "carried" in seen
    assert "asked" in seen or edit is not edited


def holds(span: dict[str, Any], place: Range) -> bool:
    return bool(span["doc_id"] == place[0] and span["start"] <= place[1] and place[2] <= span["end"])


def touches(span: dict[str, Any], place: Range) -> bool:
    return bool(span["doc_id"] == place[0] and span["start"] < place[2] and place[1] < span["end"])
